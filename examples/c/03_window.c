/* Step 3: a window. To its own rank it is a tensor like any other: x goes in, and comes out as y.
 *
 *   cmake -S examples/c -B build/examples -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/examples
 *   build/examples/03_window
 */
#include "example.h"

enum { RANKS = 2, COLUMNS = 256 };

int main(void) {
  static float x[RANKS][1][COLUMNS], y[RANKS][1][COLUMNS];
  pld_arg_t args[2];
  uint32_t r;
  size_t i;

  pld_program_t *p = pld_program_create("window_round_trip");
  pld_entry_t round_trip = pld_entry_begin(p, "round_trip");
  pld_tensor_t in = pld_param_tensor(p, "x", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS), PLD_IN);
  pld_tensor_t out = pld_param_tensor(p, "y", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS), PLD_OUT);
  pld_tensor_t data = pld_param_window(p, "data", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS));
  pld_at_begin(p, "stage", NULL);
  pld_store(p, pld_load(p, in, PLD_AT(PLD_INT(0), PLD_INT(0)), PLD_DIMS(1, COLUMNS)), data,
            PLD_AT(PLD_INT(0), PLD_INT(0)));
  pld_task_end(p);
  pld_at_begin(p, "read_back", NULL);
  pld_store(p, pld_load(p, data, PLD_AT(PLD_INT(0), PLD_INT(0)), PLD_DIMS(1, COLUMNS)), out,
            PLD_AT(PLD_INT(0), PLD_INT(0)));
  pld_task_end(p);
  pld_entry_end(p);

  /* The host driver reserves the same region on every rank, and types it. */
  pld_tensor_t xs = pld_host_tensor(p, "xs", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, 1, COLUMNS), PLD_IN);
  pld_tensor_t ys = pld_host_tensor(p, "ys", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, 1, COLUMNS), PLD_OUT);
  pld_buffer_t buffer = pld_alloc_window(p, "data_buf", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS));
  pld_scalar_t rank = pld_ranks_begin(p, PLD_INT(0), pld_world_size(p));
  pld_dispatch(p, round_trip, rank,
               PLD_ARGS(pld_of_tensor(pld_slice_rank(p, xs, rank)), pld_of_tensor(pld_slice_rank(p, ys, rank)),
                        pld_of_tensor(pld_window(p, buffer, PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS)))));
  pld_ranks_end(p);

  for (r = 0; r < RANKS; r++)
    for (i = 0; i < COLUMNS; i++) x[r][0][i] = example_value(r, i);
  args[0] = pld_arg_tensor(x, PLD_DTYPE_F32, PLD_DIMS(RANKS, 1, COLUMNS));
  args[1] = pld_arg_tensor(y, PLD_DTYPE_F32, PLD_DIMS(RANKS, 1, COLUMNS));
  example_run(p, RANKS, args, 2);

  for (r = 0; r < RANKS; r++)
    for (i = 0; i < COLUMNS; i++) example_check("y", r, i, y[r][0][i], example_value(r, i));
  printf("rank 1: %.4f came back as %.4f\n", x[1][0][0], y[1][0][0]);
  return example_result("03_window");
}
