/* Step 10: the same all-reduce around a ring, where a rank sends to its next one only. In world - 1 steps partial
 * sums travel and grow, until each rank has one row complete; in world - 1 more the complete rows travel.
 *
 *   cmake -S examples/c -B build/examples -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/examples
 *   build/examples/10_allreduce_ring --ranks 3
 */
#include "step.h"

enum { COLUMNS = 8 };

static pld_program_t *allreduce_ring(void) {
  pld_program_t *p = pld_program_create("allreduce_ring");
  pld_entry_t allreduce = pld_entry_begin(p, "allreduce");
  pld_tensor_t x = pld_param_tensor(p, "x", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS), PLD_IN);
  pld_tensor_t y = pld_param_tensor(p, "y", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS), PLD_OUT);
  pld_tensor_t data = pld_param_window(p, "data", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS));
  pld_tensor_t inbox = pld_param_window(p, "inbox", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS));
  pld_tensor_t arrived = pld_param_window(p, "arrived", PLD_DTYPE_I32, PLD_DIMS(2));
  pld_scalar_t me = pld_param_scalar(p, "me", PLD_DTYPE_I32), world = pld_world_size(p);
  pld_scalar_t zero = PLD_INT(0), one = PLD_INT(1);

  pld_at_begin(p, "ring", NULL);
  pld_put(p, data, me, x, NULL);
  pld_scalar_t next = pld_let(p, "next", pld_mod(p, pld_add(p, me, one), world));

  /* Row me - step goes on, and row me - step - 1 comes: each step has a row of the inbox for itself. */
  pld_scalar_t step = pld_let(p, "step", pld_for_begin(p, zero, pld_sub(p, world, one)));
  pld_scalar_t row = pld_let(p, "row", pld_mod(p, pld_sub(p, pld_add(p, me, world), step), world));
  pld_put(p, inbox, next, data, PLD_REGION(PLD_AT(step, zero), PLD_AT(row, zero), PLD_DIMS(1, COLUMNS)));
  pld_notify(p, arrived, next, PLD_AT(zero), one, PLD_NOTIFY_ADD);
  pld_wait(p, arrived, PLD_AT(zero), pld_add(p, step, one), PLD_WAIT_GE);
  pld_scalar_t grows = pld_let(p, "grows", pld_mod(p, pld_sub(p, pld_add(p, row, world), one), world));
  pld_tile_t came = pld_load(p, inbox, PLD_AT(step, zero), PLD_DIMS(1, COLUMNS));
  pld_tile_t mine = pld_load(p, data, PLD_AT(grows, zero), PLD_DIMS(1, COLUMNS));
  pld_store(p, pld_tile_add(p, came, mine), data, PLD_AT(grows, zero));
  pld_for_end(p);

  /* Row me + 1 is complete here. Complete rows go straight to their places. */
  step = pld_let(p, "step", pld_for_begin(p, zero, pld_sub(p, world, one)));
  row = pld_let(p, "row", pld_mod(p, pld_sub(p, pld_sum(p, me, one, world), step), world));
  pld_put(p, data, next, data, PLD_REGION(PLD_AT(row, zero), PLD_AT(row, zero), PLD_DIMS(1, COLUMNS)));
  pld_notify(p, arrived, next, PLD_AT(one), one, PLD_NOTIFY_ADD);
  pld_wait(p, arrived, PLD_AT(one), pld_add(p, step, one), PLD_WAIT_GE);
  pld_for_end(p);
  pld_get(p, y, me, data, NULL);
  pld_task_end(p);
  pld_entry_end(p);

  pld_tensor_t xs = pld_host_tensor(p, "xs", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, PLD_WORLD, COLUMNS), PLD_IN);
  pld_tensor_t ys = pld_host_tensor(p, "ys", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, PLD_WORLD, COLUMNS), PLD_OUT);
  pld_buffer_t data_buf = pld_alloc_window(p, "data_buf", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS));
  pld_buffer_t inbox_buf = pld_alloc_window(p, "inbox_buf", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS));
  pld_buffer_t arrived_buf = pld_alloc_window(p, "arrived_buf", PLD_DTYPE_I32, PLD_DIMS(2));
  pld_scalar_t r = pld_let(p, "r", pld_ranks_begin(p, zero, world));
  pld_dispatch(p, allreduce, r,
               PLD_ARGS(pld_of_tensor(pld_slice_rank(p, xs, r)), pld_of_tensor(pld_slice_rank(p, ys, r)),
                        pld_of_tensor(pld_window(p, data_buf, PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS))),
                        pld_of_tensor(pld_window(p, inbox_buf, PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS))),
                        pld_of_tensor(pld_window(p, arrived_buf, PLD_DTYPE_I32, PLD_DIMS(2))), pld_of_scalar(r)));
  pld_ranks_end(p);
  return p;
}

static void run(const pld_program_t *p, const ranks_t *ranks) {
  const step_tensor_t tensors[] = {{"x", PLD_DTYPE_F32, PLD_WORLD, COLUMNS, NULL},
                                   {"y", PLD_DTYPE_F32, PLD_WORLD, COLUMNS, step_sum}};
  step_run(p, ranks, tensors, 2);
}

int main(int argc, char **argv) { return ranks_main(argc, argv, "10_allreduce_ring", 1, allreduce_ring, run); }
