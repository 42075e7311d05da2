/* Step 8: an all-reduce, the shortest way. Every rank stages what it has, tells all others, waits for all of them,
 * and adds up what all have staged: y = x[0] + x[1] + ..., on every rank.
 *
 *   cmake -S examples/c -B build/examples -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/examples
 *   build/examples/08_allreduce_mesh --ranks 3
 */
#include "step.h"

enum { COLUMNS = 8 };

static pld_program_t *allreduce_mesh(void) {
  pld_program_t *p = pld_program_create("allreduce_mesh");
  pld_entry_t allreduce = pld_entry_begin(p, "allreduce");
  pld_tensor_t x = pld_param_tensor(p, "x", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS), PLD_IN);
  pld_tensor_t y = pld_param_tensor(p, "y", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS), PLD_OUT);
  pld_tensor_t data = pld_param_window(p, "data", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS));
  pld_tensor_t staged = pld_param_window(p, "staged", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD));
  pld_scalar_t me = pld_param_scalar(p, "me", PLD_DTYPE_I32), world = pld_world_size(p), zero = PLD_INT(0);

  pld_at_begin(p, "reduce", NULL);
  pld_put(p, data, me, x, NULL);
  pld_scalar_t peer = pld_let(p, "peer", pld_for_begin(p, zero, world));
  pld_notify(p, staged, peer, PLD_AT(me), PLD_INT(1), PLD_NOTIFY_ADD);
  pld_for_end(p);

  pld_tile_t sum = pld_tile_full(p, PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS), pld_float(p, 0));
  pld_tile_name(p, sum, "sum");
  pld_scalar_t src = pld_let(p, "src", pld_for_begin(p, zero, world));
  pld_wait(p, staged, PLD_AT(src), PLD_INT(1), PLD_WAIT_GE);
  pld_tile_t part = pld_remote_load(p, data, src, PLD_AT(zero, zero), PLD_DIMS(PLD_WORLD, COLUMNS));
  pld_tile_assign(p, sum, pld_tile_add(p, sum, part));
  pld_for_end(p);
  pld_store(p, sum, y, PLD_AT(zero, zero));
  pld_task_end(p);
  pld_entry_end(p);

  pld_tensor_t xs = pld_host_tensor(p, "xs", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, PLD_WORLD, COLUMNS), PLD_IN);
  pld_tensor_t ys = pld_host_tensor(p, "ys", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, PLD_WORLD, COLUMNS), PLD_OUT);
  pld_buffer_t data_buf = pld_alloc_window(p, "data_buf", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS));
  pld_buffer_t staged_buf = pld_alloc_window(p, "staged_buf", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD));
  pld_scalar_t r = pld_let(p, "r", pld_ranks_begin(p, zero, world));
  pld_dispatch(p, allreduce, r,
               PLD_ARGS(pld_of_tensor(pld_slice_rank(p, xs, r)), pld_of_tensor(pld_slice_rank(p, ys, r)),
                        pld_of_tensor(pld_window(p, data_buf, PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS))),
                        pld_of_tensor(pld_window(p, staged_buf, PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD))),
                        pld_of_scalar(r)));
  pld_ranks_end(p);
  return p;
}

static void run(const pld_program_t *p, const ranks_t *ranks) {
  const step_tensor_t tensors[] = {{"x", PLD_DTYPE_F32, PLD_WORLD, COLUMNS, NULL},
                                   {"y", PLD_DTYPE_F32, PLD_WORLD, COLUMNS, step_sum}};
  step_run(p, ranks, tensors, 2);
}

int main(int argc, char **argv) { return ranks_main(argc, argv, "08_allreduce_mesh", 1, allreduce_mesh, run); }
