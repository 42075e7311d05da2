/* Programs with their collectives written out, and the primitives that they are written out in. */
#include "printed.h"

enum { RANKS = 3, N = 40 };

static pld_scalar_t zero(void) { return PLD_INT(0); }

/* y becomes the sum of all x, of which rank `root` has the last word: a collective in a task, and one of the host. */
static pld_program_t *summed(int64_t root) {
  pld_program_t *p = pld_program_create("summed");
  pld_entry_t give = pld_entry_begin(p, "give"), take;
  pld_tensor_t x = pld_param_tensor(p, "x", PLD_DTYPE_F32, PLD_DIMS(N), PLD_IN), y, data, view, xs, ys;
  pld_buffer_t buffer;
  pld_scalar_t r;
  data = pld_param_window(p, "data", PLD_DTYPE_F32, PLD_DIMS(N));
  pld_at_begin(p, "give", NULL);
  pld_put(p, data, pld_rank(p, data), x, NULL);
  pld_allreduce(p, data, PLD_COMBINE_SUM, NULL);
  pld_task_end(p);
  pld_entry_end(p);
  take = pld_entry_begin(p, "take");
  y = pld_param_tensor(p, "y", PLD_DTYPE_F32, PLD_DIMS(N), PLD_OUT);
  data = pld_param_window(p, "data", PLD_DTYPE_F32, PLD_DIMS(N));
  pld_at_begin(p, "take", NULL);
  pld_get(p, y, pld_rank(p, data), data, NULL);
  pld_task_end(p);
  pld_entry_end(p);
  xs = pld_host_tensor(p, "xs", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, N), PLD_IN);
  ys = pld_host_tensor(p, "ys", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, N), PLD_OUT);
  buffer = pld_alloc_window(p, "buffer", PLD_DTYPE_F32, PLD_DIMS(N));
  view = pld_window(p, buffer, PLD_DTYPE_F32, PLD_DIMS(N));
  r = pld_ranks_begin(p, zero(), pld_world_size(p));
  pld_dispatch(p, give, r, PLD_ARGS(pld_of_tensor(pld_slice_rank(p, xs, r)), pld_of_tensor(view)));
  pld_ranks_end(p);
  pld_broadcast(p, view, PLD_INT(root), NULL);
  r = pld_ranks_begin(p, zero(), pld_world_size(p));
  pld_dispatch(p, take, r, PLD_ARGS(pld_of_tensor(pld_slice_rank(p, ys, r)), pld_of_tensor(view)));
  pld_ranks_end(p);
  return p;
}

/* Launches the program, which adds up. */
static void adds_up(const pld_program_t *p) {
  float x[RANKS][N], y[RANKS][N];
  pld_world_t *world = test_world(RANKS, 20000000);
  pld_executable_t *executable = NULL;
  pld_arg_t args[2];
  int rank, i;
  for (rank = 0; rank < RANKS; rank++)
    for (i = 0; i < N; i++) x[rank][i] = (float)(1000 * rank + i);
  memset(y, 0x55, sizeof y);
  args[0] = pld_arg_tensor(x, PLD_DTYPE_F32, PLD_DIMS(RANKS, N));
  args[1] = pld_arg_tensor(y, PLD_DTYPE_F32, PLD_DIMS(RANKS, N));
  CHECK_OK(pld_compile(p, world, NULL, &executable));
  CHECK_OK(pld_launch(executable, args, 2));
  for (rank = 0; rank < RANKS; rank++)
    for (i = 0; i < N; i++) CHECK(y[rank][i] == (float)(3000 + 3 * i));
  pld_executable_destroy(executable);
  pld_world_destroy(world);
}

static void written_out(void) {
  static const char *const after[] = {"get_sum data_flat", "notify data_cells", "wait data_cells", "agree allreduce_sum"};
  pld_expand_options_t options;
  pld_program_t *p = summed(0), *expanded = NULL, *again = NULL, *parsed = NULL;
  struct text *before, *text, *other;
  size_t i;
  CHECK_STATUS(PLD_ERR_INVALID_STATE, pld_program_expand(p, NULL, &expanded));
  CHECK_ERROR("not finished");
  CHECK_OK(pld_program_finish(p, test_print_diagnostic, NULL));
  before = printed(p);
  CHECK_CONTAINS(before->bytes, "allreduce sum data\n");
  CHECK_CONTAINS(before->bytes, "broadcast data root 0\n");

  CHECK_OK(pld_expand_options_init(&options, sizeof options));
  options.nranks = RANKS;
  CHECK_OK(pld_program_expand(p, &options, &expanded));
  text = printed(expanded);
  for (i = 0; i < COUNT(after); i++) CHECK_CONTAINS(text->bytes, after[i]);
  CHECK(strstr(text->bytes, "allreduce sum") == NULL && strstr(text->bytes, "broadcast data") == NULL);

  /* It is a program like any other: it is checked, launched, read back, and has nothing more to write out. */
  {
    pld_check_options_t check;
    CHECK_OK(pld_check_options_init(&check, sizeof check));
    check.nranks = RANKS;
    check.schedules = 20;
    CHECK_OK(pld_check(expanded, &check, test_print_diagnostic, NULL, NULL));
  }
  adds_up(expanded);
  adds_up(p);
  CHECK_OK(pld_program_parse(text->bytes, text->size, "expanded.pld", test_print_diagnostic, NULL, &parsed));
  CHECK_OK(pld_program_expand(parsed, &options, &again));
  other = printed(again);
  CHECK(text->size == other->size && memcmp(text->bytes, other->bytes, text->size) == 0);
  free(other);
  pld_program_destroy(again);

  /* Unchecked ranks do not compare what they call. */
  options.unchecked = 1;
  CHECK_OK(pld_program_expand(p, &options, &again));
  other = printed(again);
  CHECK(strstr(other->bytes, "agree") == NULL);
  free(other);
  pld_program_destroy(again);

  /* On hosts of one rank each, what goes between them is pushed into a stage of its own. */
  options.ranks_per_host = 1;
  CHECK_OK(pld_program_expand(p, &options, &again));
  other = printed(again);
  CHECK_CONTAINS(other->bytes, "data_shards");
  CHECK(strstr(text->bytes, "data_shards") == NULL);
  free(other);
  adds_up(again);
  pld_program_destroy(again);

  /* The program itself is as it was. */
  other = printed(p);
  CHECK(strcmp(before->bytes, other->bytes) == 0);
  free(other);
  free(before);
  free(text);
  pld_program_destroy(parsed);
  pld_program_destroy(expanded);
  pld_program_destroy(p);
}

static void worlds_that_do_not_fit(void) {
  pld_expand_options_t options;
  pld_program_t *p = summed(2), *out = p;
  CHECK_OK(pld_program_finish(p, test_print_diagnostic, NULL));
  CHECK_OK(pld_expand_options_init(&options, sizeof options));
  /* Without a number there are two ranks, of which none is rank 2. */
  CHECK_STATUS(PLD_ERR_VERIFY, pld_program_expand(p, NULL, &out));
  CHECK_ERROR("test_expand.c:");
  options.nranks = 257;
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_program_expand(p, &options, &out));
  CHECK_ERROR("nranks is 257");
  options.nranks = RANKS;
  options.transport = 77;
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_program_expand(p, &options, &out));
  CHECK_ERROR("transport 77 is unknown");
  options.transport = PLD_TRANSPORT_SHM;
  options.struct_size = 2;
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_program_expand(p, &options, &out));
  CHECK_ERROR("pld_expand_options_init");
  CHECK(out == p);
  options.struct_size = (uint32_t)sizeof options;
  options.crowded = 1;
  CHECK_OK(pld_program_expand(p, &options, &out));
  pld_program_destroy(out);
  pld_program_destroy(p);
}

/* Each rank combines all rows `me` into an f32, from the next rank on, if it has been told as many as there are. */
static pld_program_t *combined(pld_combine_t op, int *line) {
  pld_program_t *p = pld_program_create("combined");
  pld_entry_t entry = pld_entry_begin(p, "combine");
  pld_tensor_t x = pld_param_tensor(p, "x", PLD_DTYPE_BF16, PLD_DIMS(PLD_WORLD, 4, N), PLD_IN);
  pld_tensor_t y = pld_param_tensor(p, "y", PLD_DTYPE_F32, PLD_DIMS(4 * N), PLD_OUT);
  pld_tensor_t data = pld_param_window(p, "data", PLD_DTYPE_BF16, PLD_DIMS(PLD_WORLD, 4, N)), flat, xs, ys;
  pld_scalar_t told = pld_param_scalar(p, "told", PLD_DTYPE_I32), me, ranks, next, r;
  pld_buffer_t buffer;
  pld_at_begin(p, "combine", NULL);
  me = pld_let(p, "me", pld_rank(p, data));
  ranks = pld_let(p, "n", pld_nranks(p, data));
  next = pld_let(p, "next", pld_mod(p, pld_add(p, me, PLD_INT(1)), ranks));
  *line = __LINE__ + 1;
  pld_require(p, told, PLD_CMP_EQ, ranks, next);
  pld_require(p, told, PLD_CMP_GT, zero(), pld_no_scalar());
  pld_put(p, data, me, x, NULL);
  pld_barrier(p, data, NULL);
  flat = pld_flatten(p, data);
  pld_tensor_name(p, flat, "flat");
  pld_get_reduce(p, y, next, pld_add(p, next, ranks), flat, op,
                 PLD_REGION(PLD_AT(zero()), PLD_AT(pld_mul(p, me, PLD_INT(4 * N))), PLD_DIMS(4 * N)));
  pld_barrier(p, data, NULL);
  pld_task_end(p);
  pld_entry_end(p);
  xs = pld_host_tensor(p, "xs", PLD_DTYPE_BF16, PLD_DIMS(PLD_WORLD, PLD_WORLD, 4, N), PLD_IN);
  ys = pld_host_tensor(p, "ys", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, 4 * N), PLD_OUT);
  told = pld_host_scalar(p, "told", PLD_DTYPE_I32);
  buffer = pld_alloc_window(p, "buffer", PLD_DTYPE_BF16, PLD_DIMS(PLD_WORLD, 4, N));
  r = pld_ranks_begin(p, zero(), pld_world_size(p));
  pld_dispatch(p, entry, r,
               PLD_ARGS(pld_of_tensor(pld_slice_rank(p, xs, r)), pld_of_tensor(pld_slice_rank(p, ys, r)),
                        pld_of_tensor(pld_window(p, buffer, PLD_DTYPE_BF16, PLD_DIMS(PLD_WORLD, 4, N))),
                        pld_of_scalar(told)));
  pld_ranks_end(p);
  CHECK_OK(pld_program_finish(p, test_print_diagnostic, NULL));
  return p;
}

static float given(int rank, int place) { return (float)((rank * 31 + place * 7) % 100 - 40); }

static void primitives(void) {
  static uint16_t x[RANKS][RANKS * 4 * N];
  static float y[RANKS][4 * N];
  pld_world_t *world = test_world(RANKS, 20000000);
  pld_combine_t op;
  for (op = PLD_COMBINE_SUM; op <= PLD_COMBINE_MIN; op++) {
    int line, rank, i;
    pld_executable_t *executable = NULL;
    pld_arg_t args[3];
    char place[64];
    pld_program_t *p = combined(op, &line);
    for (rank = 0; rank < RANKS; rank++)
      for (i = 0; i < RANKS * 4 * N; i++) {
        /* The upper half of a small whole number, as a float, is all of it. */
        float value = given(rank, i);
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        x[rank][i] = (uint16_t)(bits >> 16);
      }
    args[0] = pld_arg_tensor(x, PLD_DTYPE_BF16, PLD_DIMS(RANKS, RANKS, 4, N));
    args[1] = pld_arg_tensor(y, PLD_DTYPE_F32, PLD_DIMS(RANKS, 4 * N));
    CHECK_OK(pld_compile(p, world, NULL, &executable));

    args[2] = pld_arg_int(RANKS + 4);
    CHECK_STATUS(PLD_ERR_OUT_OF_BOUNDS, pld_launch(executable, args, 3));
    CHECK_ERROR("7");
    CHECK_ERROR("told == n");
    snprintf(place, sizeof place, "test_expand.c:%d", line);
    CHECK_ERROR(place);

    args[2] = pld_arg_int(RANKS);
    memset(y, 0x55, sizeof y);
    CHECK_OK(pld_launch(executable, args, 3));
    for (rank = 0; rank < RANKS; rank++)
      for (i = 0; i < 4 * N; i++) {
        const int at = rank * 4 * N + i;
        float a = given(0, at), b = given(1, at), c = given(2, at), low = a, high = a;
        if (b < low) low = b;
        if (c < low) low = c;
        if (b > high) high = b;
        if (c > high) high = c;
        if (op == PLD_COMBINE_SUM) CHECK(y[rank][i] == a + b + c);
        if (op == PLD_COMBINE_PROD) CHECK(y[rank][i] == a * b * c);
        if (op == PLD_COMBINE_MAX) CHECK(y[rank][i] == high);
        if (op == PLD_COMBINE_MIN) CHECK(y[rank][i] == low);
      }
    pld_executable_destroy(executable);
    pld_program_destroy(p);
  }
  pld_world_destroy(world);
}

int main(void) {
  test_deadline(120);
  written_out();
  worlds_that_do_not_fit();
  primitives();
  return 0;
}
