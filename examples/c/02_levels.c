/* Step 2: three levels. The host driver dispatches, the entry orders tasks, tasks compute: y[r] = x[r] * (r + 1).
 *
 *   cmake -S examples/c -B build/examples -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/examples
 *   build/examples/02_levels
 */
#include "step.h"

enum { ROWS = 8, COLUMNS = 8 };

static pld_program_t *levels(void) {
  pld_program_t *p = pld_program_create("levels");
  pld_entry_t scale = pld_entry_begin(p, "scale");
  pld_tensor_t x = pld_param_tensor(p, "x", PLD_DTYPE_F32, PLD_DIMS(ROWS, COLUMNS), PLD_IN);
  pld_tensor_t y = pld_param_tensor(p, "y", PLD_DTYPE_F32, PLD_DIMS(ROWS, COLUMNS), PLD_INOUT);
  pld_scalar_t factor = pld_param_scalar(p, "factor", PLD_DTYPE_I32), zero = PLD_INT(0);

  pld_at_begin(p, "copy", NULL);
  pld_tile_t copied = pld_load(p, x, PLD_AT(zero, zero), PLD_DIMS(ROWS, COLUMNS));
  pld_store(p, copied, y, PLD_AT(zero, zero));
  pld_task_end(p);

  /* It reads y, so it waits for the task that writes y. */
  pld_at_begin(p, "multiply", NULL);
  pld_tile_t tile = pld_load(p, y, PLD_AT(zero, zero), PLD_DIMS(ROWS, COLUMNS));
  tile = pld_tile_muls(p, tile, pld_cast(p, factor, PLD_DTYPE_F32));
  pld_store(p, tile, y, PLD_AT(zero, zero));
  pld_task_end(p);
  pld_entry_end(p);

  pld_tensor_t xs = pld_host_tensor(p, "xs", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, ROWS, COLUMNS), PLD_IN);
  pld_tensor_t ys = pld_host_tensor(p, "ys", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, ROWS, COLUMNS), PLD_INOUT);
  pld_scalar_t r = pld_let(p, "r", pld_ranks_begin(p, zero, pld_world_size(p)));
  pld_dispatch(p, scale, r,
               PLD_ARGS(pld_of_tensor(pld_slice_rank(p, xs, r)), pld_of_tensor(pld_slice_rank(p, ys, r)),
                        pld_of_scalar(pld_add(p, r, PLD_INT(1)))));
  pld_ranks_end(p);
  return p;
}

static double scaled(uint32_t nranks, uint32_t rank, size_t row, size_t column) {
  return step_input(nranks, rank, row, column) * (rank + 1);
}

static void run(const pld_program_t *p, const ranks_t *ranks) {
  const step_tensor_t tensors[] = {{"x", PLD_DTYPE_F32, ROWS, COLUMNS, NULL},
                                   {"y", PLD_DTYPE_F32, ROWS, COLUMNS, scaled}};
  step_run(p, ranks, tensors, 2);
}

int main(int argc, char **argv) { return ranks_main(argc, argv, "02_levels", 1, levels, run); }
