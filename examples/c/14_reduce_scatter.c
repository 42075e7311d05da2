/* Step 14: reduce-scatter. Every rank has a row for each rank, and gets the sum of those that are for it: y[r] =
 * x[0][r] + x[1][r] + ... It is the first half of step 9.
 *
 *   cmake -S examples/c -B build/examples -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/examples
 *   build/examples/14_reduce_scatter --ranks 3
 */
#include "step.h"

enum { COLUMNS = 8 };

static pld_program_t *reduce_scatter(void) {
  pld_program_t *p = pld_program_create("reduce_scatter");
  pld_entry_t reduce = pld_entry_begin(p, "reduce");
  pld_tensor_t x = pld_param_tensor(p, "x", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS), PLD_IN);
  pld_tensor_t y = pld_param_tensor(p, "y", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS), PLD_OUT);
  pld_tensor_t data = pld_param_window(p, "data", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS));
  pld_scalar_t zero = PLD_INT(0);
  pld_at_begin(p, "reduce", NULL);
  pld_scalar_t me = pld_let(p, "me", pld_rank(p, data));
  pld_put(p, data, me, x, NULL);
  pld_reduce_scatter(p, data, PLD_COMBINE_SUM, NULL);
  /* Row `me` is the result; the other rows are as they were. */
  pld_get(p, y, me, data, PLD_REGION(PLD_AT(zero, zero), PLD_AT(me, zero), PLD_DIMS(1, COLUMNS)));
  pld_task_end(p);
  pld_entry_end(p);

  pld_tensor_t xs = pld_host_tensor(p, "xs", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, PLD_WORLD, COLUMNS), PLD_IN);
  pld_tensor_t ys = pld_host_tensor(p, "ys", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, 1, COLUMNS), PLD_OUT);
  pld_buffer_t data_buf = pld_alloc_window(p, "data_buf", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS));
  pld_scalar_t r = pld_let(p, "r", pld_ranks_begin(p, zero, pld_world_size(p)));
  pld_dispatch(p, reduce, r,
               PLD_ARGS(pld_of_tensor(pld_slice_rank(p, xs, r)), pld_of_tensor(pld_slice_rank(p, ys, r)),
                        pld_of_tensor(pld_window(p, data_buf, PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS)))));
  pld_ranks_end(p);
  return p;
}

static double sum_of_row(uint32_t nranks, uint32_t rank, size_t row, size_t column) {
  (void)row;
  return step_sum(nranks, rank, rank, column);
}

static void run(const pld_program_t *p, const ranks_t *ranks) {
  const step_tensor_t tensors[] = {{"x", PLD_DTYPE_F32, PLD_WORLD, COLUMNS, NULL},
                                   {"y", PLD_DTYPE_F32, 1, COLUMNS, sum_of_row}};
  step_run(p, ranks, tensors, 2);
}

int main(int argc, char **argv) { return ranks_main(argc, argv, "14_reduce_scatter", 1, reduce_scatter, run); }
