/* Collectives, from the host driver and inside a task: what each one gives, for every type, combination, mode and count. */
#include "pld_test.h"

enum { RANKS = 3, MOST = 1100 };

enum kind { ALLREDUCE, REDUCE_SCATTER, BROADCAST, ALLGATHER, ALL_TO_ALL, KINDS };

struct call {
  enum kind kind;
  pld_dtype_t dtype;
  pld_combine_t op;
  pld_collective_mode_t mode;
  uint32_t cores;
  int64_t columns;
};

static pld_scalar_t zero(void) { return PLD_INT(0); }

/* Elements, as small whole numbers of any type. */

static size_t size_of(pld_dtype_t dtype) {
  switch (dtype) {
    case PLD_DTYPE_I8: return 1;
    case PLD_DTYPE_F16:
    case PLD_DTYPE_BF16: return 2;
    case PLD_DTYPE_I64: return 8;
    default: return 4;
  }
}

static void set(void *data, pld_dtype_t dtype, size_t at, int value) {
  float real = (float)value;
  uint32_t bits;
  memcpy(&bits, &real, sizeof bits);
  if (dtype == PLD_DTYPE_F32) ((float *)data)[at] = real;
  if (dtype == PLD_DTYPE_I32) ((int32_t *)data)[at] = value;
  if (dtype == PLD_DTYPE_I64) ((int64_t *)data)[at] = value;
  if (dtype == PLD_DTYPE_I8) ((int8_t *)data)[at] = (int8_t)value;
  if (dtype == PLD_DTYPE_BF16) ((uint16_t *)data)[at] = (uint16_t)(bits >> 16);
  if (dtype == PLD_DTYPE_F16) {
    /* Another exponent, and fewer places behind the point. */
    uint32_t magnitude = value == 0 ? 0 : ((bits & 0x7fffffffu) >> 13) - ((127u - 15u) << 10);
    ((uint16_t *)data)[at] = (uint16_t)((bits >> 31) << 15 | magnitude);
  }
}

/* The element is this number. */
static void check_element(const void *data, pld_dtype_t dtype, size_t at, int value, const char *what, int rank) {
  uint64_t expected = 0;
  set(&expected, dtype, 0, value);
  if (memcmp((const char *)data + at * size_of(dtype), &expected, size_of(dtype)) == 0) return;
  fprintf(stderr, "%s: element %u of rank %d is not %d\n", what, (unsigned)at, rank, value);
  exit(1);
}

/* What rank `rank` gives at `place`: for products small enough that four of them fit into an i8. */
static int given(const struct call *call, int rank, int64_t place) {
  int mixed = (int)((place * 7 + rank * 13 + place / 5 * rank) % 61);
  if (call->op == PLD_COMBINE_PROD) return mixed % 2 == 0 ? 2 : -1 - mixed % 3;
  return mixed - 30;
}

static int combined(const struct call *call, int64_t place) {
  int result = given(call, 0, place), rank;
  for (rank = 1; rank < RANKS; rank++) {
    int next = given(call, rank, place);
    if (call->op == PLD_COMBINE_SUM) result += next;
    if (call->op == PLD_COMBINE_PROD) result *= next;
    if (call->op == PLD_COMBINE_MAX && next > result) result = next;
    if (call->op == PLD_COMBINE_MIN && next < result) result = next;
  }
  return result;
}

enum { ROOT = 1 };

/* What rank `rank` has at `place` of the result. */
static int expected(const struct call *call, int rank, int64_t place) {
  const int64_t row = call->columns == 0 ? 0 : place / call->columns, column = place - row * call->columns;
  switch (call->kind) {
    case ALLREDUCE: return combined(call, place);
    case REDUCE_SCATTER: return row == rank ? combined(call, place) : given(call, rank, place);
    case BROADCAST: return given(call, ROOT, place);
    case ALLGATHER: return given(call, (int)row, column);
    default: return given(call, (int)row, rank * call->columns + column);
  }
}

/* Some collectives have a row for each rank, and some a source besides. */

static pld_dim_t rows_of_result(const struct call *call) {
  return call->kind == ALLREDUCE || call->kind == BROADCAST ? 1 : PLD_WORLD;
}

static pld_dim_t rows_of_source(const struct call *call) {
  return call->kind == ALLGATHER ? 1 : rows_of_result(call);
}

static int has_source(const struct call *call) { return call->kind == ALLGATHER || call->kind == ALL_TO_ALL; }

static void make(pld_program_t *p, const struct call *call, pld_tensor_t data, pld_tensor_t src, pld_tensor_t signal) {
  pld_collective_options_t o = pld_collective_defaults();
  o.mode = call->mode;
  o.cores = call->cores;
  o.signal = signal;
  switch (call->kind) {
    case ALLREDUCE: pld_allreduce(p, data, call->op, &o); break;
    case REDUCE_SCATTER: pld_reduce_scatter(p, data, call->op, &o); break;
    case BROADCAST: pld_broadcast(p, data, PLD_INT(ROOT), &o); break;
    case ALLGATHER: pld_allgather(p, data, src, &o); break;
    default: pld_all_to_all(p, data, src, &o); break;
  }
}

enum part { PUBLISH = 1, CALL = 2, READ_BACK = 4 };

/* An entry that does these parts of a call: x into the window, the collective, the result into y. Whole tensors are
   copied by transfers to the own rank. */
static pld_entry_t entry_of(pld_program_t *p, const struct call *call, const char *name, int parts) {
  pld_entry_t entry = pld_entry_begin(p, name);
  pld_tensor_t x = {0}, y = {0}, data = {0}, src = {0};
  if (parts & PUBLISH)
    x = pld_param_tensor(p, "x", call->dtype, PLD_DIMS(rows_of_source(call), call->columns), PLD_IN);
  if (parts == PUBLISH) {
    src = pld_param_window(p, "src", call->dtype, PLD_DIMS(rows_of_source(call), call->columns));
  } else {
    data = pld_param_window(p, "data", call->dtype, PLD_DIMS(rows_of_result(call), call->columns));
    y = pld_param_tensor(p, "y", call->dtype, PLD_DIMS(rows_of_result(call), call->columns), PLD_OUT);
    src = has_source(call) ? x : data;
  }
  pld_at_begin(p, "all", NULL);
  if (parts & PUBLISH && src.id != x.id) pld_put(p, src, pld_rank(p, src), x, NULL);
  if (parts & CALL) make(p, call, data, src, pld_no_tensor());
  if (parts & READ_BACK) pld_get(p, y, pld_rank(p, data), data, NULL);
  pld_task_end(p);
  pld_entry_end(p);
  return entry;
}

enum { MOST_CALLS = 32 };

/* A program that makes all these calls: in the host driver, all on one signal if `shared`, or each in a task. */
static pld_program_t *program_of(const struct call *calls, size_t ncalls, int in_task, int shared) {
  pld_program_t *p = pld_program_create("calls");
  pld_entry_t first[MOST_CALLS], second[MOST_CALLS];
  pld_tensor_t xs[MOST_CALLS], ys[MOST_CALLS], signal = {0};
  pld_scalar_t r;
  size_t k;
  char name[32];
  for (k = 0; k < ncalls; k++) {
    snprintf(name, sizeof name, "publish_%u", (unsigned)k);
    first[k] = entry_of(p, &calls[k], name, in_task ? PUBLISH | CALL | READ_BACK : PUBLISH);
    snprintf(name, sizeof name, "read_back_%u", (unsigned)k);
    if (!in_task) second[k] = entry_of(p, &calls[k], name, READ_BACK);
  }
  for (k = 0; k < ncalls; k++) {
    const struct call *c = &calls[k];
    snprintf(name, sizeof name, "x%u", (unsigned)k);
    xs[k] = pld_host_tensor(p, name, c->dtype, PLD_DIMS(PLD_WORLD, rows_of_source(c), c->columns), PLD_IN);
    snprintf(name, sizeof name, "y%u", (unsigned)k);
    ys[k] = pld_host_tensor(p, name, c->dtype, PLD_DIMS(PLD_WORLD, rows_of_result(c), c->columns), PLD_OUT);
  }
  if (shared)
    signal = pld_window(p, pld_alloc_window(p, "signal_buf", PLD_DTYPE_I32, PLD_DIMS(1)), PLD_DTYPE_I32, PLD_DIMS(1));
  for (k = 0; k < ncalls; k++) {
    const struct call *c = &calls[k];
    pld_buffer_t buffer;
    pld_tensor_t data, src;
    snprintf(name, sizeof name, "data_%u", (unsigned)k);
    buffer = pld_alloc_window(p, name, c->dtype, PLD_DIMS(rows_of_result(c), c->columns));
    data = src = pld_window(p, buffer, c->dtype, PLD_DIMS(rows_of_result(c), c->columns));
    if (has_source(c) && !in_task) {
      snprintf(name, sizeof name, "src_%u", (unsigned)k);
      buffer = pld_alloc_window(p, name, c->dtype, PLD_DIMS(rows_of_source(c), c->columns));
      src = pld_window(p, buffer, c->dtype, PLD_DIMS(rows_of_source(c), c->columns));
    }
    r = pld_ranks_begin(p, zero(), pld_world_size(p));
    if (in_task) {
      pld_dispatch(p, first[k], r,
                   PLD_ARGS(pld_of_tensor(pld_slice_rank(p, xs[k], r)), pld_of_tensor(data),
                            pld_of_tensor(pld_slice_rank(p, ys[k], r))));
      pld_ranks_end(p);
      continue;
    }
    pld_dispatch(p, first[k], r, PLD_ARGS(pld_of_tensor(pld_slice_rank(p, xs[k], r)), pld_of_tensor(src)));
    pld_ranks_end(p);
    make(p, c, data, src, signal);
    r = pld_ranks_begin(p, zero(), pld_world_size(p));
    pld_dispatch(p, second[k], r, PLD_ARGS(pld_of_tensor(data), pld_of_tensor(pld_slice_rank(p, ys[k], r))));
    pld_ranks_end(p);
  }
  CHECK_OK(pld_program_finish(p, test_print_diagnostic, NULL));
  return p;
}

static int64_t numbered(pld_dim_t rows) { return rows == PLD_WORLD ? (int64_t)RANKS : rows; }

/* Launches the program twice, and checks every element of every call. */
static void run(pld_program_t *p, const struct call *calls, size_t ncalls, const pld_world_t *world) {
  pld_executable_t *x = NULL;
  pld_arg_t args[2 * MOST_CALLS];
  size_t k;
  int launch, rank;
  int64_t i;
  CHECK_OK(pld_compile(p, (pld_world_t *)world, NULL, &x));
  for (k = 0; k < ncalls; k++) {
    const struct call *c = &calls[k];
    const int64_t given_each = numbered(rows_of_source(c)) * c->columns;
    const int64_t result_each = numbered(rows_of_result(c)) * c->columns;
    void *in = calloc((size_t)(RANKS * given_each) + 1, size_of(c->dtype));
    void *out = calloc((size_t)(RANKS * result_each) + 1, size_of(c->dtype));
    CHECK(in != NULL && out != NULL);
    for (rank = 0; rank < RANKS; rank++)
      for (i = 0; i < given_each; i++) set(in, c->dtype, (size_t)(rank * given_each + i), given(c, rank, i));
    args[2 * k] = pld_arg_tensor(in, c->dtype, PLD_DIMS(RANKS, numbered(rows_of_source(c)), c->columns));
    args[2 * k + 1] = pld_arg_tensor(out, c->dtype, PLD_DIMS(RANKS, numbered(rows_of_result(c)), c->columns));
  }
  for (launch = 0; launch < 2; launch++) {
    CHECK_OK(pld_launch(x, args, 2 * ncalls));
    for (k = 0; k < ncalls; k++) {
      const struct call *c = &calls[k];
      const int64_t each = numbered(rows_of_result(c)) * c->columns;
      char what[64];
      snprintf(what, sizeof what, "call %u (kind %d, dtype %u, op %u, mode %u)", (unsigned)k, (int)c->kind,
               (unsigned)c->dtype, (unsigned)c->op, (unsigned)c->mode);
      for (rank = 0; rank < RANKS; rank++)
        for (i = 0; i < each; i++)
          check_element(args[2 * k + 1].tensor.data, c->dtype, (size_t)(rank * each + i), expected(c, rank, i), what, rank);
      memset(args[2 * k + 1].tensor.data, 0x55, (size_t)(RANKS * each) * size_of(c->dtype));
    }
  }
  for (k = 0; k < 2 * ncalls; k++) free(args[k].tensor.data);
  pld_executable_destroy(x);
}

static void run_everywhere(const struct call *calls, size_t ncalls, const pld_world_t *world) {
  int in_task;
  for (in_task = 0; in_task < 2; in_task++) {
    pld_program_t *p = program_of(calls, ncalls, in_task, 0);
    run(p, calls, ncalls, world);
    pld_program_destroy(p);
  }
}

/* Every type in every mode, and with every combination in one of them. */
static void all_combinations(const pld_world_t *world) {
  static const pld_dtype_t dtypes[] = {PLD_DTYPE_F32, PLD_DTYPE_F16, PLD_DTYPE_BF16,
                                       PLD_DTYPE_I32, PLD_DTYPE_I64, PLD_DTYPE_I8};
  static const pld_collective_mode_t modes[2][5] = {
      {PLD_COLLECTIVE_AUTO, PLD_COLLECTIVE_MESH, PLD_COLLECTIVE_RING, PLD_COLLECTIVE_TWO_PHASE,
       PLD_COLLECTIVE_HIERARCHICAL},
      {PLD_COLLECTIVE_AUTO, PLD_COLLECTIVE_MESH, PLD_COLLECTIVE_DIRECT, PLD_COLLECTIVE_DIRECT,
       PLD_COLLECTIVE_HIERARCHICAL}};
  struct call calls[COUNT(dtypes)];
  size_t mode, d;
  int kind;
  for (kind = ALLREDUCE; kind <= REDUCE_SCATTER; kind++)
    for (mode = 0; mode < 5; mode++) {
      for (d = 0; d < COUNT(dtypes); d++) {
        calls[d].kind = (enum kind)kind;
        calls[d].dtype = dtypes[d];
        calls[d].op = (pld_combine_t)(PLD_COMBINE_SUM + (d + mode) % 4);
        calls[d].mode = modes[kind][mode];
        calls[d].cores = 1;
        calls[d].columns = 67 + (int64_t)(3 * d + mode);
      }
      run_everywhere(calls, COUNT(calls), world);
    }
}

/* The others in every mode; counts of nothing, one, and more than a part; several blocks. */
static void all_moves_and_counts(const pld_world_t *world) {
  static const int64_t counts[] = {0, 1, 7, MOST};
  static const pld_collective_mode_t modes[] = {PLD_COLLECTIVE_AUTO, PLD_COLLECTIVE_MESH, PLD_COLLECTIVE_DIRECT};
  struct call calls[MOST_CALLS];
  size_t n = 0, count, mode;
  int kind;
  for (mode = 0; mode < COUNT(modes); mode++) {
    n = 0;
    for (kind = ALLREDUCE; kind < KINDS; kind++)
      for (count = 0; count < COUNT(counts); count++) {
        struct call *c = &calls[n++];
        c->kind = (enum kind)kind;
        c->dtype = kind % 2 == 0 ? PLD_DTYPE_I32 : PLD_DTYPE_F32;
        c->op = PLD_COMBINE_SUM;
        c->mode = modes[mode];
        if (kind == ALLREDUCE && c->mode == PLD_COLLECTIVE_DIRECT) c->mode = PLD_COLLECTIVE_RING;
        c->cores = 1;
        c->columns = counts[count];
      }
    run_everywhere(calls, n, world);
  }
  for (n = 0; n < KINDS * COUNT(counts); n++) calls[n].cores = 2 + (uint32_t)n % 2;
  {
    pld_program_t *p = program_of(calls, KINDS * COUNT(counts), 0, 1);
    run(p, calls, KINDS * COUNT(counts), world);
    pld_program_destroy(p);
  }
}

int main(void) {
  pld_world_t *world;
  test_deadline(240);
  world = test_world(RANKS, 20000000);
  all_combinations(world);
  all_moves_and_counts(world);
  pld_world_destroy(world);
  return 0;
}
