/* Collectives that go wrong: ranks that differ, and calls that are refused. */
#include "pld_test.h"

enum { RANKS = 3, N = 8 };

static pld_scalar_t zero(void) { return PLD_INT(0); }

/* What a task does with the window w[ranks, N] f32; the line of the call. */
typedef int call_fn(pld_program_t *p, pld_tensor_t w);

static int sum(pld_program_t *p, pld_tensor_t w) { return pld_allreduce(p, w, PLD_COMBINE_SUM, NULL), __LINE__; }
static int maximum(pld_program_t *p, pld_tensor_t w) { return pld_allreduce(p, w, PLD_COMBINE_MAX, NULL), __LINE__; }
static int barrier(pld_program_t *p, pld_tensor_t w) { return pld_barrier(p, w, NULL), __LINE__; }
static int scatter(pld_program_t *p, pld_tensor_t w) { return pld_reduce_scatter(p, w, PLD_COMBINE_SUM, NULL), __LINE__; }
static int from_1(pld_program_t *p, pld_tensor_t w) { return pld_broadcast(p, w, PLD_INT(1), NULL), __LINE__; }
static int from_own(pld_program_t *p, pld_tensor_t w) { return pld_broadcast(p, w, pld_rank(p, w), NULL), __LINE__; }
static int row(pld_program_t *p, pld_tensor_t w) {
  pld_tensor_t first = pld_slice(p, w, PLD_AT(zero(), zero()), PLD_DIMS(1, N));
  return pld_allreduce(p, first, PLD_COMBINE_SUM, NULL), __LINE__;
}
static int ring(pld_program_t *p, pld_tensor_t w) {
  pld_collective_options_t o = pld_collective_defaults();
  o.mode = PLD_COLLECTIVE_RING;
  return pld_allreduce(p, w, PLD_COMBINE_SUM, &o), __LINE__;
}

/* Rank 1 makes one call, the others another one; the lines of both. */
static pld_program_t *differing(call_fn *one, call_fn *other, int *line, int *other_line) {
  pld_program_t *p = pld_program_create("differing");
  pld_entry_t entry = pld_entry_begin(p, "e");
  pld_tensor_t w = pld_param_window(p, "w", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, N));
  pld_buffer_t buffer;
  pld_scalar_t r;
  pld_at_begin(p, "t", NULL);
  pld_if_begin(p, pld_eq(p, pld_rank(p, w), PLD_INT(1)));
  *line = one(p, w);
  pld_else(p);
  *other_line = other(p, w);
  pld_if_end(p);
  pld_task_end(p);
  pld_entry_end(p);
  buffer = pld_alloc_window(p, "w_buf", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, N));
  r = pld_ranks_begin(p, zero(), pld_world_size(p));
  pld_dispatch(p, entry, r, PLD_ARGS(pld_of_tensor(pld_window(p, buffer, PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, N)))));
  pld_ranks_end(p);
  CHECK_OK(pld_program_finish(p, NULL, NULL));
  return p;
}

static pld_status_t launch(const pld_program_t *p, pld_world_t *world, int unchecked) {
  pld_compile_options_t options;
  pld_executable_t *x = NULL;
  pld_status_t status;
  CHECK_OK(pld_compile_options_init(&options, sizeof options));
  options.unchecked = (uint32_t)unchecked;
  CHECK_OK(pld_compile(p, world, &options, &x));
  status = pld_launch(x, NULL, 0);
  pld_executable_destroy(x);
  return status;
}

/* Checked, the ranks say at once who calls what; unchecked, they wait for each other in vain. Then the world goes on. */
static void ranks_that_differ(void) {
  static const struct {
    call_fn *one, *other;
    const char *says, *says_other;
  } cases[] = {
      {sum, maximum, "allreduce_sum", "allreduce_max"}, {sum, barrier, "allreduce_sum", "barrier"},
      {sum, row, "_3x8_f32", "_1x8_f32"},               {sum, ring, "allreduce_sum", "_ring"},
      {scatter, from_1, "reduce_scatter", "broadcast"}, {from_own, from_own, "broadcast", "root"},
  };
  pld_world_t *world = test_world(RANKS, 20000000), *hasty = test_world(RANKS, 2000000);
  size_t i;
  for (i = 0; i < COUNT(cases); i++) {
    int line, other_line;
    char place[64];
    pld_program_t *p = differing(cases[i].one, cases[i].other, &line, &other_line);
    CHECK_STATUS(PLD_ERR_MISMATCH, launch(p, world, 0));
    CHECK_ERROR(cases[i].says);
    CHECK_ERROR(cases[i].says_other);
    if (cases[i].one != cases[i].other) CHECK_ERROR("rank 1");
    snprintf(place, sizeof place, "test_collective_mistakes.c:%d", line);
    CHECK_ERROR(place);
    snprintf(place, sizeof place, "test_collective_mistakes.c:%d", other_line);
    CHECK_ERROR(place);
    if (i == 0) CHECK_STATUS(PLD_ERR_TIMEOUT, launch(p, hasty, 1));
    pld_program_destroy(p);

    p = differing(scatter, scatter, &line, &other_line);
    CHECK_OK(launch(p, world, 0));
    pld_program_destroy(p);
  }
  pld_world_destroy(world);
  pld_world_destroy(hasty);
}

struct findings {
  char text[4096];
};

static void collect(const pld_diagnostic_t *d, void *user_data) {
  struct findings *f = (struct findings *)user_data;
  strncat(f->text, d->text, sizeof f->text - strlen(f->text) - 1);
}

/* What a task does with x[4, N] f32, and w[ranks, N] and v[ranks, N] of the windows. */
typedef void mistake_fn(pld_program_t *p, pld_tensor_t x, pld_tensor_t w, pld_tensor_t v);

static void unknown_combination(pld_program_t *p, pld_tensor_t x, pld_tensor_t w, pld_tensor_t v) {
  (void)x, (void)v;
  pld_allreduce(p, w, 0, NULL);
}
static void unknown_combination_of_rows(pld_program_t *p, pld_tensor_t x, pld_tensor_t w, pld_tensor_t v) {
  (void)x, (void)v;
  pld_reduce_scatter(p, w, 5, NULL);
}
static void unknown_mode(pld_program_t *p, pld_tensor_t x, pld_tensor_t w, pld_tensor_t v) {
  pld_collective_options_t o = pld_collective_defaults();
  (void)x, (void)v;
  o.mode = 6;
  pld_allreduce(p, w, PLD_COMBINE_SUM, &o);
}
static void ring_of_a_broadcast(pld_program_t *p, pld_tensor_t x, pld_tensor_t w, pld_tensor_t v) {
  pld_collective_options_t o = pld_collective_defaults();
  (void)x, (void)v;
  o.mode = PLD_COLLECTIVE_RING;
  pld_broadcast(p, w, zero(), &o);
}
static void cores_in_a_task(pld_program_t *p, pld_tensor_t x, pld_tensor_t w, pld_tensor_t v) {
  pld_collective_options_t o = pld_collective_defaults();
  (void)x;
  o.cores = 2;
  pld_all_to_all(p, w, v, &o);
}
static void garbage_size(pld_program_t *p, pld_tensor_t x, pld_tensor_t w, pld_tensor_t v) {
  pld_collective_options_t o = pld_collective_defaults();
  (void)x, (void)v;
  o.struct_size = 3;
  pld_allreduce(p, w, PLD_COMBINE_SUM, &o);
}
static void foreign_signal(pld_program_t *p, pld_tensor_t x, pld_tensor_t w, pld_tensor_t v) {
  pld_collective_options_t o = pld_collective_defaults();
  (void)x, (void)v;
  o.signal.id = 0x7fff0001;
  pld_allreduce(p, w, PLD_COMBINE_SUM, &o);
}
static void no_data(pld_program_t *p, pld_tensor_t x, pld_tensor_t w, pld_tensor_t v) {
  (void)x, (void)w, (void)v;
  pld_allreduce(p, pld_no_tensor(), PLD_COMBINE_SUM, NULL);
}
static void no_root(pld_program_t *p, pld_tensor_t x, pld_tensor_t w, pld_tensor_t v) {
  (void)x, (void)v;
  pld_broadcast(p, w, pld_no_scalar(), NULL);
}
static void no_counts(pld_program_t *p, pld_tensor_t x, pld_tensor_t w, pld_tensor_t v) {
  (void)v;
  pld_all_to_all_v(p, pld_rows(w, pld_no_tensor()), pld_rows(x, x), NULL);
}
static void offsets_of_one_side(pld_program_t *p, pld_tensor_t x, pld_tensor_t w, pld_tensor_t v) {
  pld_all_to_all_v(p, pld_rows_at(w, v, v), pld_rows(x, x), NULL);
}
static void sum_of_a_tensor(pld_program_t *p, pld_tensor_t x, pld_tensor_t w, pld_tensor_t v) {
  (void)w, (void)v;
  pld_allreduce(p, x, PLD_COMBINE_SUM, NULL);
}
static void in_place(pld_program_t *p, pld_tensor_t x, pld_tensor_t w, pld_tensor_t v) {
  (void)x, (void)v;
  pld_all_to_all(p, w, w, NULL);
}
static void too_large_a_source(pld_program_t *p, pld_tensor_t x, pld_tensor_t w, pld_tensor_t v) {
  (void)v;
  pld_allgather(p, w, x, NULL);
}
static void counts_that_are_rows(pld_program_t *p, pld_tensor_t x, pld_tensor_t w, pld_tensor_t v) {
  pld_all_to_all_v(p, pld_rows(w, v), pld_rows(x, x), NULL);
}
static void chunks(pld_program_t *p, pld_tensor_t x, pld_tensor_t w, pld_tensor_t v) {
  pld_transfer_t t = pld_whole();
  (void)v;
  t.chunk_rows = t.chunk_cols = 1;
  pld_get_reduce(p, x, zero(), pld_nranks(p, w), w, PLD_COMBINE_SUM, &t);
}
static void unknown_comparison(pld_program_t *p, pld_tensor_t x, pld_tensor_t w, pld_tensor_t v) {
  (void)x, (void)w, (void)v;
  pld_require(p, zero(), 7, zero(), pld_no_scalar());
}
static void flat_nothing(pld_program_t *p, pld_tensor_t x, pld_tensor_t w, pld_tensor_t v) {
  (void)x, (void)w, (void)v;
  pld_flatten(p, pld_no_tensor());
}

static void refusals(void) {
  static const struct {
    mistake_fn *make;
    const char *code, *says;
  } cases[] = {
      {unknown_combination, "PLD-B008", "combination 0 is unknown"},
      {unknown_combination_of_rows, "PLD-B008", "combination 5 is unknown"},
      {unknown_mode, "PLD-B008", "collective mode 6 is unknown"},
      {ring_of_a_broadcast, "PLD-V099", "broadcast has no mode ring"},
      {cores_in_a_task, "PLD-V100", "all_to_all on 2 cores"},
      {garbage_size, "PLD-B008", "struct_size is 3"},
      {foreign_signal, "PLD-B001", "the signal is no tensor of this program"},
      {no_data, "PLD-B001", "data is no tensor: the handle is zero"},
      {no_root, "PLD-B001", "root is no scalar: the handle is zero"},
      {no_counts, "PLD-B001", "recv.counts is no tensor: the handle is zero"},
      {offsets_of_one_side, "PLD-B008", "only one side of this all_to_all_v has offsets"},
      {sum_of_a_tensor, "PLD-V041", "allreduce works on windows, but x is a tensor"},
      {in_place, "PLD-V103", "all_to_all is given w twice, and writes it"},
      {too_large_a_source, "PLD-V101", "as many elements in x as in each row of w"},
      {counts_that_are_rows, "PLD-V102", "does not hold an i32 or i64 for each rank"},
      {chunks, "PLD-B008", "neither atomic nor chunked"},
      {unknown_comparison, "PLD-B008", "comparison 7 is unknown"},
      {flat_nothing, "PLD-B001", "the tensor is no tensor: the handle is zero"},
  };
  size_t i;
  for (i = 0; i < COUNT(cases); i++) {
    pld_program_t *p = pld_program_create("refused");
    struct findings f;
    pld_tensor_t x, w, v;
    memset(&f, 0, sizeof f);
    pld_entry_begin(p, "e");
    x = pld_param_tensor(p, "x", PLD_DTYPE_F32, PLD_DIMS(4, N), PLD_INOUT);
    w = pld_param_window(p, "w", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, N));
    v = pld_param_window(p, "v", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, N));
    pld_at_begin(p, "t", NULL);
    cases[i].make(p, x, w, v);
    pld_task_end(p);
    pld_entry_end(p);
    CHECK_STATUS(PLD_ERR_VERIFY, pld_program_finish(p, collect, &f));
    CHECK_CONTAINS(f.text, cases[i].code);
    CHECK_CONTAINS(f.text, cases[i].says);
    CHECK_CONTAINS(f.text, "test_collective_mistakes.c:");
    pld_program_destroy(p);
  }
}

int main(void) {
  test_deadline(120);
  refusals();
  ranks_that_differ();
  return 0;
}
