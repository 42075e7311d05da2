/* Step 9: the same all-reduce in two phases, which move less: rank r adds up row r of all ranks, and gives the sum to
 * all.
 *
 *   cmake -S examples/c -B build/examples -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/examples
 *   build/examples/09_allreduce_two_phase --ranks 3
 */
#include "step.h"

enum { COLUMNS = 8 };

static pld_program_t *allreduce_two_phase(void) {
  pld_program_t *p = pld_program_create("allreduce_two_phase");
  pld_entry_t allreduce = pld_entry_begin(p, "allreduce");
  pld_tensor_t x = pld_param_tensor(p, "x", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS), PLD_IN);
  pld_tensor_t y = pld_param_tensor(p, "y", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS), PLD_OUT);
  pld_tensor_t data = pld_param_window(p, "data", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS));
  pld_tensor_t staged = pld_param_window(p, "staged", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD));
  pld_tensor_t reduced = pld_param_window(p, "reduced", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD));
  pld_scalar_t me = pld_param_scalar(p, "me", PLD_DTYPE_I32), world = pld_world_size(p);
  pld_scalar_t zero = PLD_INT(0), one = PLD_INT(1);

  /* Row `me` of all ranks is for this rank to add up. */
  pld_at_begin(p, "scatter", NULL);
  pld_put(p, data, me, x, NULL);
  pld_scalar_t peer = pld_let(p, "peer", pld_for_begin(p, zero, world));
  pld_notify(p, staged, peer, PLD_AT(me), one, PLD_NOTIFY_ADD);
  pld_for_end(p);
  pld_tile_t sum = pld_tile_full(p, PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS), pld_float(p, 0));
  pld_tile_name(p, sum, "sum");
  pld_scalar_t src = pld_let(p, "src", pld_for_begin(p, zero, world));
  pld_wait(p, staged, PLD_AT(src), one, PLD_WAIT_GE);
  pld_tile_t part = pld_remote_load(p, data, src, PLD_AT(me, zero), PLD_DIMS(1, COLUMNS));
  pld_tile_assign(p, sum, pld_tile_add(p, sum, part));
  pld_for_end(p);

  /* Its sum takes the place of row `me` everywhere: nobody but this rank has read that row. */
  peer = pld_let(p, "peer", pld_for_begin(p, zero, world));
  pld_remote_store(p, sum, data, peer, PLD_AT(me, zero), PLD_ATOMIC_NONE);
  pld_notify(p, reduced, peer, PLD_AT(me), one, PLD_NOTIFY_ADD);
  pld_for_end(p);
  pld_task_end(p);

  pld_at_begin(p, "gather", NULL);
  pld_scalar_t owner = pld_let(p, "owner", pld_for_begin(p, zero, world));
  pld_wait(p, reduced, PLD_AT(owner), one, PLD_WAIT_GE);
  pld_for_end(p);
  pld_get(p, y, me, data, NULL);
  pld_task_end(p);
  pld_entry_end(p);

  pld_tensor_t xs = pld_host_tensor(p, "xs", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, PLD_WORLD, COLUMNS), PLD_IN);
  pld_tensor_t ys = pld_host_tensor(p, "ys", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, PLD_WORLD, COLUMNS), PLD_OUT);
  pld_buffer_t data_buf = pld_alloc_window(p, "data_buf", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS));
  pld_buffer_t staged_buf = pld_alloc_window(p, "staged_buf", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD));
  pld_buffer_t reduced_buf = pld_alloc_window(p, "reduced_buf", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD));
  pld_scalar_t r = pld_let(p, "r", pld_ranks_begin(p, zero, world));
  pld_dispatch(p, allreduce, r,
               PLD_ARGS(pld_of_tensor(pld_slice_rank(p, xs, r)), pld_of_tensor(pld_slice_rank(p, ys, r)),
                        pld_of_tensor(pld_window(p, data_buf, PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS))),
                        pld_of_tensor(pld_window(p, staged_buf, PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD))),
                        pld_of_tensor(pld_window(p, reduced_buf, PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD))),
                        pld_of_scalar(r)));
  pld_ranks_end(p);
  return p;
}

static void run(const pld_program_t *p, const ranks_t *ranks) {
  const step_tensor_t tensors[] = {{"x", PLD_DTYPE_F32, PLD_WORLD, COLUMNS, NULL},
                                   {"y", PLD_DTYPE_F32, PLD_WORLD, COLUMNS, step_sum}};
  step_run(p, ranks, tensors, 2);
}

int main(int argc, char **argv) {
  return ranks_main(argc, argv, "09_allreduce_two_phase", 1, allreduce_two_phase, run);
}
