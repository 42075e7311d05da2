/* Step 13: all-gather. Every rank has a row, and all ranks get all rows: y[r] = x[0], x[1], ... It is what step 7
 * does by hand, but here the next call may follow at once.
 *
 *   cmake -S examples/c -B build/examples -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/examples
 *   build/examples/13_allgather --ranks 3
 */
#include "step.h"

enum { COLUMNS = 8 };

static pld_program_t *allgather(void) {
  pld_program_t *p = pld_program_create("allgather");
  pld_entry_t gather = pld_entry_begin(p, "gather");
  pld_tensor_t x = pld_param_tensor(p, "x", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS), PLD_IN);
  pld_tensor_t y = pld_param_tensor(p, "y", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS), PLD_OUT);
  pld_tensor_t rows = pld_param_window(p, "rows", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS));
  pld_at_begin(p, "gather", NULL);
  pld_allgather(p, rows, x, NULL);
  pld_get(p, y, pld_rank(p, rows), rows, NULL);
  pld_task_end(p);
  pld_entry_end(p);

  pld_tensor_t xs = pld_host_tensor(p, "xs", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, 1, COLUMNS), PLD_IN);
  pld_tensor_t ys = pld_host_tensor(p, "ys", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, PLD_WORLD, COLUMNS), PLD_OUT);
  pld_buffer_t rows_buf = pld_alloc_window(p, "rows_buf", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS));
  pld_scalar_t r = pld_let(p, "r", pld_ranks_begin(p, PLD_INT(0), pld_world_size(p)));
  pld_dispatch(p, gather, r,
               PLD_ARGS(pld_of_tensor(pld_slice_rank(p, xs, r)), pld_of_tensor(pld_slice_rank(p, ys, r)),
                        pld_of_tensor(pld_window(p, rows_buf, PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS)))));
  pld_ranks_end(p);
  return p;
}

static double of_all(uint32_t nranks, uint32_t rank, size_t row, size_t column) {
  (void)rank;
  return step_input(nranks, (uint32_t)row, 0, column);
}

static void run(const pld_program_t *p, const ranks_t *ranks) {
  const step_tensor_t tensors[] = {{"x", PLD_DTYPE_F32, 1, COLUMNS, NULL},
                                   {"y", PLD_DTYPE_F32, PLD_WORLD, COLUMNS, of_all}};
  step_run(p, ranks, tensors, 2);
}

int main(int argc, char **argv) { return ranks_main(argc, argv, "13_allgather", 1, allgather, run); }
