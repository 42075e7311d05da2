/* Step 2: two tasks in an entry, the second of which reads what the first has written: y[r] = x[r] * (r + 1).
 *
 *   cmake -S examples/c -B build/examples -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/examples
 *   build/examples/02_levels
 */
#include "example.h"

enum { RANKS = 2, ROWS = 8, COLUMNS = 8 };

int main(void) {
  static float x[RANKS][ROWS][COLUMNS], y[RANKS][ROWS][COLUMNS];
  pld_arg_t args[2];
  uint32_t r;
  size_t i;

  pld_program_t *p = pld_program_create("levels");
  pld_entry_t scale = pld_entry_begin(p, "scale");
  pld_tensor_t in = pld_param_tensor(p, "x", PLD_DTYPE_F32, PLD_DIMS(ROWS, COLUMNS), PLD_IN);
  pld_tensor_t out = pld_param_tensor(p, "y", PLD_DTYPE_F32, PLD_DIMS(ROWS, COLUMNS), PLD_INOUT);
  pld_scalar_t me = pld_param_scalar(p, "me", PLD_DTYPE_I32);

  pld_at_begin(p, "copy_in", NULL);
  pld_tile_t copied = pld_load(p, in, PLD_AT(PLD_INT(0), PLD_INT(0)), PLD_DIMS(ROWS, COLUMNS));
  pld_store(p, copied, out, PLD_AT(PLD_INT(0), PLD_INT(0)));
  pld_task_end(p);

  /* A loop over rows, one row tile at a time. */
  pld_at_begin(p, "multiply", NULL);
  pld_scalar_t factor = pld_let(p, "factor", pld_cast(p, pld_add(p, me, PLD_INT(1)), PLD_DTYPE_F32));
  pld_scalar_t row = pld_let(p, "row", pld_for_begin(p, PLD_INT(0), PLD_INT(ROWS)));
  pld_tile_t tile = pld_load(p, out, PLD_AT(row, PLD_INT(0)), PLD_DIMS(1, COLUMNS));
  pld_tile_assign(p, tile, pld_tile_muls(p, tile, factor));
  pld_store(p, tile, out, PLD_AT(row, PLD_INT(0)));
  pld_for_end(p);
  pld_task_end(p);
  pld_entry_end(p);

  pld_tensor_t xs = pld_host_tensor(p, "xs", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, ROWS, COLUMNS), PLD_IN);
  pld_tensor_t ys = pld_host_tensor(p, "ys", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, ROWS, COLUMNS), PLD_INOUT);
  pld_scalar_t rank = pld_ranks_begin(p, PLD_INT(0), pld_world_size(p));
  pld_dispatch(p, scale, rank,
               PLD_ARGS(pld_of_tensor(pld_slice_rank(p, xs, rank)), pld_of_tensor(pld_slice_rank(p, ys, rank)),
                        pld_of_scalar(rank)));
  pld_ranks_end(p);

  for (r = 0; r < RANKS; r++)
    for (i = 0; i < ROWS * COLUMNS; i++) x[r][i / COLUMNS][i % COLUMNS] = example_value(r, i);
  args[0] = pld_arg_tensor(x, PLD_DTYPE_F32, PLD_DIMS(RANKS, ROWS, COLUMNS));
  args[1] = pld_arg_tensor(y, PLD_DTYPE_F32, PLD_DIMS(RANKS, ROWS, COLUMNS));
  example_run(p, RANKS, args, 2);

  for (r = 0; r < RANKS; r++)
    for (i = 0; i < ROWS * COLUMNS; i++)
      example_check("y", r, i, y[r][i / COLUMNS][i % COLUMNS], example_value(r, i) * (float)(r + 1));
  printf("rank 1: %.4f became %.4f\n", x[1][0][0], y[1][0][0]);
  return example_result("02_levels");
}
