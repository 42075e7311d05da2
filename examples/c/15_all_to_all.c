/* Step 15: all-to-all. Every rank has a row for each rank, and gets one from each: y[r][q] = x[q][r]. What was
 * ordered by sender is ordered by receiver, which is how tokens get to their experts.
 *
 *   cmake -S examples/c -B build/examples -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/examples
 *   build/examples/15_all_to_all --ranks 3
 */
#include "step.h"

enum { COLUMNS = 8 };

static pld_program_t *all_to_all(void) {
  pld_program_t *p = pld_program_create("all_to_all");
  pld_entry_t exchange = pld_entry_begin(p, "exchange");
  pld_tensor_t x = pld_param_tensor(p, "x", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS), PLD_IN);
  pld_tensor_t y = pld_param_tensor(p, "y", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS), PLD_OUT);
  pld_tensor_t inbox = pld_param_window(p, "inbox", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS));
  pld_at_begin(p, "exchange", NULL);
  pld_all_to_all(p, inbox, x, NULL);
  pld_get(p, y, pld_rank(p, inbox), inbox, NULL);
  pld_task_end(p);
  pld_entry_end(p);

  pld_tensor_t xs = pld_host_tensor(p, "xs", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, PLD_WORLD, COLUMNS), PLD_IN);
  pld_tensor_t ys = pld_host_tensor(p, "ys", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, PLD_WORLD, COLUMNS), PLD_OUT);
  pld_buffer_t inbox_buf = pld_alloc_window(p, "inbox_buf", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS));
  pld_scalar_t r = pld_let(p, "r", pld_ranks_begin(p, PLD_INT(0), pld_world_size(p)));
  pld_dispatch(p, exchange, r,
               PLD_ARGS(pld_of_tensor(pld_slice_rank(p, xs, r)), pld_of_tensor(pld_slice_rank(p, ys, r)),
                        pld_of_tensor(pld_window(p, inbox_buf, PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS)))));
  pld_ranks_end(p);
  return p;
}

static double turned(uint32_t nranks, uint32_t rank, size_t row, size_t column) {
  return step_input(nranks, (uint32_t)row, rank, column);
}

static void run(const pld_program_t *p, const ranks_t *ranks) {
  const step_tensor_t tensors[] = {{"x", PLD_DTYPE_F32, PLD_WORLD, COLUMNS, NULL},
                                   {"y", PLD_DTYPE_F32, PLD_WORLD, COLUMNS, turned}};
  step_run(p, ranks, tensors, 2);
}

int main(int argc, char **argv) { return ranks_main(argc, argv, "15_all_to_all", 1, all_to_all, run); }
