/* A row-parallel matrix product of the engine's own and its all-reduce, in two halves of the columns: while one half is
 * exchanged, the other one is multiplied. With one core a rank does both in turns, with two (--cores 2) at the same time.
 * The protocol is that of examples/pld/tp_gemm_allreduce.pld.
 *
 *   cmake -S examples/c -B build/examples -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/examples
 *   build/examples/tp_gemm_allreduce                               two ranks, 20 launches
 *   build/examples/tp_gemm_allreduce --ranks 4 --processes         four ranks, a process each
 */
#include "exchange.h"

/* K of the inner extent belong to each rank, and N columns to each half. M is a multiple of the number of ranks. */
enum { M = 48, K = 512, N = 512 };

/* What the entry is given. */
enum { X, WEIGHTS, RESULT, PRODUCT, PARTS, SCATTERED, TOTAL, REDUCED, FIELDS };

/* The engine's kernel: y = x * w. */
static int32_t gemm(const pld_task_context_t *context, void *user_data) {
  const float *x = (const float *)pld_context_tensor(context, 0)->data;
  const float *w = (const float *)pld_context_tensor(context, 1)->data;
  float *y = (float *)pld_context_tensor(context, 2)->data;
  int row, k, column;
  (void)user_data;
  for (row = 0; row < M; row++) {
    memset(y + row * N, 0, N * sizeof *y);
    for (k = 0; k < K; k++)
      for (column = 0; column < N; column++) y[row * N + column] += x[row * K + k] * w[k * N + column];
  }
  return 0;
}

/* Over when every other rank has counted this epoch in its cell of the half; holds no core. */
static pld_task_t await(pld_program_t *p, const char *name, pld_tensor_t signal, pld_scalar_t half, pld_scalar_t me,
                        pld_scalar_t epoch, pld_task_t after) {
  pld_scalar_t src;
  pld_at_begin(p, name, PLD_DEPS(after));
  src = exchange_others(p, "src", me);
  pld_defer_wait(p, signal, PLD_AT(half, src), epoch);
  exchange_others_end(p);
  return pld_task_end(p);
}

static pld_program_t *tp_program(void) {
  pld_program_t *p = pld_program_create("tp_gemm_allreduce");
  pld_scalar_t zero = PLD_INT(0), me, epoch, half, base, own, rows, owner, row, src, peer, at;
  pld_dim_t owned;
  pld_tensor_t f[FIELDS], weights, product;
  pld_tile_t sum;
  pld_task_t sent, received, added, complete;
  pld_entry_t entry;
  const field_t fields[FIELDS] = {
      {"x", PLD_DTYPE_F32, PLD_IN, M, K},
      {"weights", PLD_DTYPE_F32, PLD_IN, 2 * K, N},
      {"y", PLD_DTYPE_F32, PLD_OUT, 2 * M, N},
      {"product", PLD_DTYPE_F32, WINDOW, 2 * M, N},
      {"parts", PLD_DTYPE_F32, WINDOW, 2 * M, N},
      {"scattered", PLD_DTYPE_I32, WINDOW, 2, PLD_WORLD},
      {"total", PLD_DTYPE_F32, WINDOW, 2 * M, N},
      {"reduced", PLD_DTYPE_I32, WINDOW, 2, PLD_WORLD},
  };
  /* The rows that each rank adds up. */
  rows = pld_div(p, PLD_INT(M), pld_world_size(p));
  owned = pld_dim_of(p, rows);

  entry = exchange_entry_begin(p, "layer", fields, FIELDS, f, &me, &epoch);
  half = exchange_for(p, "half", zero, PLD_INT(2));
  base = pld_let(p, "base", pld_mul(p, half, PLD_INT(M)));
  own = pld_let(p, "own", pld_add(p, base, pld_mul(p, me, rows)));
  weights = pld_slice(p, f[WEIGHTS], PLD_AT(pld_mul(p, half, PLD_INT(K)), zero), PLD_DIMS(K, N));
  product = pld_slice(p, f[PRODUCT], PLD_AT(base, zero), PLD_DIMS(M, N));
  pld_extern_task(p, "gemm", gemm, NULL, PLD_CALLBACK_ARGS(pld_in(f[X]), pld_in(weights), pld_out(product)), PLD_INT(1),
                  NULL);

  pld_at_begin(p, "scatter", NULL);
  owner = exchange_for(p, "owner", zero, pld_world_size(p));
  pld_put(p, f[PARTS], owner, product,
          PLD_REGION(PLD_AT(own, zero), PLD_AT(pld_mul(p, owner, rows), zero), PLD_DIMS(owned, N)));
  pld_if_begin(p, pld_ne(p, owner, me));
  pld_notify(p, f[SCATTERED], owner, PLD_AT(half, me), PLD_INT(1), PLD_NOTIFY_ADD);
  pld_if_end(p);
  pld_for_end(p);
  sent = pld_task_end(p);
  received = await(p, "await_parts", f[SCATTERED], half, me, epoch, sent);

  /* In the order of the ranks, so that the sum has the same bits everywhere. */
  pld_at_begin(p, "reduce", PLD_DEPS(received));
  row = exchange_for(p, "row", zero, rows);
  sum = pld_load(p, f[PARTS], PLD_AT(pld_add(p, base, row), zero), PLD_DIMS(1, N));
  pld_tile_name(p, sum, "sum");
  src = exchange_for(p, "src", PLD_INT(1), pld_world_size(p));
  at = pld_add(p, pld_add(p, base, pld_mul(p, src, rows)), row);
  pld_tile_assign(p, sum, pld_tile_add(p, sum, pld_load(p, f[PARTS], PLD_AT(at, zero), PLD_DIMS(1, N))));
  pld_for_end(p);
  pld_store(p, sum, f[TOTAL], PLD_AT(pld_add(p, own, row), zero));
  pld_for_end(p);
  peer = exchange_others(p, "peer", me);
  pld_put(p, f[TOTAL], peer, f[TOTAL], PLD_REGION(PLD_AT(own, zero), PLD_AT(own, zero), PLD_DIMS(owned, N)));
  pld_notify(p, f[REDUCED], peer, PLD_AT(half, me), PLD_INT(1), PLD_NOTIFY_ADD);
  exchange_others_end(p);
  added = pld_task_end(p);
  complete = await(p, "await_total", f[REDUCED], half, me, epoch, added);

  pld_at_begin(p, "collect", PLD_DEPS(complete));
  pld_get(p, f[RESULT], me, f[TOTAL], PLD_REGION(PLD_AT(base, zero), PLD_AT(base, zero), PLD_DIMS(M, N)));
  pld_task_end(p);
  pld_for_end(p);
  pld_entry_end(p);
  exchange_host(p, entry, fields, FIELDS);
  return p;
}

/* Whole numbers from -8 to 7, so that sums are exact. */
static void fill(float *values, size_t count, uint32_t seed) {
  size_t i;
  for (i = 0; i < count; i++) values[i] = floorf(example_value(seed, i) * 8);
}

/* The product of the whole matrices. */
static void reference(const float *x, const float *w, float *y, size_t inner) {
  size_t row, k, column;
  memset(y, 0, sizeof *y * M * 2 * N);
  for (row = 0; row < M; row++)
    for (k = 0; k < inner; k++)
      for (column = 0; column < 2 * N; column++) y[row * 2 * N + column] += x[row * inner + k] * w[k * 2 * N + column];
}

static void run(const pld_program_t *p, const ranks_t *ranks) {
  const size_t inner = (size_t)ranks->nranks * K, outputs = ranks->driven * (size_t)(2 * M * N);
  pld_executable_t *executable = ranks_compile_persistent(ranks, p);
  float *x = (float *)ranks_parts(ranks, M * K, sizeof *x);
  float *weights = (float *)ranks_parts(ranks, 2 * K * N, sizeof *weights);
  float *y = (float *)ranks_parts(ranks, 2 * M * N, sizeof *y);
  float *whole_x = (float *)zeroed(M * inner, sizeof *whole_x);             /* [M, inner] */
  float *whole_weights = (float *)zeroed(inner * 2 * N, sizeof *weights);   /* [inner, 2 N] */
  float *expected = (float *)zeroed(M * 2 * N, sizeof *expected);           /* [M, 2 N] */
  double *times = (double *)zeroed(ranks->launches, sizeof *times), begin;
  pld_arg_t args[4];
  uint32_t launch;
  size_t i;
  args[0] = ranks_arg(ranks, x, PLD_DTYPE_F32, M, K);
  args[1] = ranks_arg(ranks, weights, PLD_DTYPE_F32, 2 * K, N);
  args[2] = ranks_arg(ranks, y, PLD_DTYPE_F32, 2 * M, N);
  fill(whole_weights, inner * 2 * N, 1000003);
  for (i = 0; i < ranks->driven * (size_t)(2 * K * N); i++) {
    size_t rank = ranks->first + i / (2 * K * N), half = i / (K * N) % 2;
    weights[i] = whole_weights[(rank * K + i / N % K) * 2 * N + half * N + i % N];
  }
  for (launch = 1; launch <= ranks->launches; launch++) {
    fill(whole_x, M * inner, launch);
    for (i = 0; i < ranks->driven * (size_t)(M * K); i++)
      x[i] = whole_x[i / K % M * inner + (ranks->first + i / (M * K)) * K + i % K];
    reference(whole_x, whole_weights, expected, inner);
    for (i = 0; i < outputs; i++) y[i] = -1;
    args[3] = pld_arg_int(launch);
    begin = microseconds();
    OK(pld_launch(executable, args, 4));
    times[launch - 1] = microseconds() - begin;
    for (i = 0; i < outputs; i++) {
      uint32_t rank = ranks->first + (uint32_t)(i / (2 * M * N));
      size_t half = i / (M * N) % 2, place = i / N % M * 2 * N + half * N + i % N;
      if (y[i] != expected[place]) example_is_wrong("y", rank, i % (2 * M * N), y[i], expected[place]);
    }
  }
  if (ranks->first == 0) printf("%u products checked\n", ranks->launches);
  ranks_times(ranks, "48 x 512 by 512 x 1024 a rank, and the sum", times, ranks->launches);
  free(x);
  free(weights);
  free(y);
  free(whole_x);
  free(whole_weights);
  free(expected);
  free(times);
  pld_executable_destroy(executable);
}

int main(int argc, char **argv) { return ranks_main(argc, argv, "tp_gemm_allreduce", 20, tp_program, run); }
