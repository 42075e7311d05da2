/* Step 3: a window. To its own rank it is a tensor like any other: x goes in, and comes out as y.
 *
 *   cmake -S examples/c -B build/examples -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/examples
 *   build/examples/03_window
 */
#include "step.h"

enum { COLUMNS = 64 };

static pld_program_t *window_round_trip(void) {
  pld_program_t *p = pld_program_create("window_round_trip");
  pld_entry_t round_trip = pld_entry_begin(p, "round_trip");
  pld_tensor_t x = pld_param_tensor(p, "x", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS), PLD_IN);
  pld_tensor_t y = pld_param_tensor(p, "y", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS), PLD_OUT);
  pld_tensor_t data = pld_param_window(p, "data", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS));
  pld_scalar_t zero = PLD_INT(0);
  pld_at_begin(p, "there", NULL);
  pld_tile_t tile = pld_load(p, x, PLD_AT(zero, zero), PLD_DIMS(1, COLUMNS));
  pld_store(p, tile, data, PLD_AT(zero, zero));
  pld_task_end(p);
  pld_at_begin(p, "back", NULL);
  tile = pld_load(p, data, PLD_AT(zero, zero), PLD_DIMS(1, COLUMNS));
  pld_store(p, tile, y, PLD_AT(zero, zero));
  pld_task_end(p);
  pld_entry_end(p);

  /* The host driver reserves the same memory on every rank, and passes a view of it. */
  pld_tensor_t xs = pld_host_tensor(p, "xs", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, 1, COLUMNS), PLD_IN);
  pld_tensor_t ys = pld_host_tensor(p, "ys", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, 1, COLUMNS), PLD_OUT);
  pld_buffer_t data_buf = pld_alloc_window(p, "data_buf", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS));
  pld_scalar_t r = pld_let(p, "r", pld_ranks_begin(p, zero, pld_world_size(p)));
  pld_dispatch(p, round_trip, r,
               PLD_ARGS(pld_of_tensor(pld_slice_rank(p, xs, r)), pld_of_tensor(pld_slice_rank(p, ys, r)),
                        pld_of_tensor(pld_window(p, data_buf, PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS)))));
  pld_ranks_end(p);
  return p;
}

static void run(const pld_program_t *p, const ranks_t *ranks) {
  const step_tensor_t tensors[] = {{"x", PLD_DTYPE_F32, 1, COLUMNS, NULL},
                                   {"y", PLD_DTYPE_F32, 1, COLUMNS, step_input}};
  step_run(p, ranks, tensors, 2);
}

int main(int argc, char **argv) { return ranks_main(argc, argv, "03_window", 1, window_round_trip, run); }
