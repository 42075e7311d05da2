/* Step 7: the number of ranks is the world's, not the program's. Every rank gives its row to all: y[r] = x[0], x[1],
 * ... The entry is not told who it is: it asks the window for its number and for the number of ranks.
 *
 *   cmake -S examples/c -B build/examples -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/examples
 *   build/examples/07_dynamic_ranks --ranks 4
 */
#include "step.h"

enum { COLUMNS = 8 };

static pld_program_t *dynamic_ranks(void) {
  pld_program_t *p = pld_program_create("dynamic_ranks");
  pld_entry_t give = pld_entry_begin(p, "give");
  pld_tensor_t x = pld_param_tensor(p, "x", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS), PLD_IN);
  pld_tensor_t y = pld_param_tensor(p, "y", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS), PLD_OUT);
  pld_tensor_t inbox = pld_param_window(p, "inbox", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS));
  pld_tensor_t arrived = pld_param_window(p, "arrived", PLD_DTYPE_I32, PLD_DIMS(1));
  pld_scalar_t zero = PLD_INT(0);

  pld_at_begin(p, "give", NULL);
  pld_scalar_t me = pld_let(p, "me", pld_rank(p, inbox));
  pld_scalar_t count = pld_let(p, "count", pld_nranks(p, inbox));
  pld_scalar_t peer = pld_let(p, "peer", pld_for_begin(p, zero, count));
  pld_put(p, inbox, peer, x, PLD_REGION(PLD_AT(me, zero), PLD_AT(zero, zero), PLD_DIMS(1, COLUMNS)));
  pld_notify(p, arrived, peer, PLD_AT(zero), PLD_INT(1), PLD_NOTIFY_ADD);
  pld_for_end(p);

  /* One cell counts all: when it has reached the number of ranks, every row is there. */
  pld_wait(p, arrived, PLD_AT(zero), count, PLD_WAIT_GE);
  pld_get(p, y, me, inbox, NULL);
  pld_task_end(p);
  pld_entry_end(p);

  pld_tensor_t xs = pld_host_tensor(p, "xs", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, 1, COLUMNS), PLD_IN);
  pld_tensor_t ys = pld_host_tensor(p, "ys", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, PLD_WORLD, COLUMNS), PLD_OUT);
  pld_buffer_t inbox_buf = pld_alloc_window(p, "inbox_buf", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS));
  pld_buffer_t arrived_buf = pld_alloc_window(p, "arrived_buf", PLD_DTYPE_I32, PLD_DIMS(1));
  pld_scalar_t r = pld_let(p, "r", pld_ranks_begin(p, zero, pld_world_size(p)));
  pld_dispatch(p, give, r,
               PLD_ARGS(pld_of_tensor(pld_slice_rank(p, xs, r)), pld_of_tensor(pld_slice_rank(p, ys, r)),
                        pld_of_tensor(pld_window(p, inbox_buf, PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS))),
                        pld_of_tensor(pld_window(p, arrived_buf, PLD_DTYPE_I32, PLD_DIMS(1)))));
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

int main(int argc, char **argv) { return ranks_main(argc, argv, "07_dynamic_ranks", 1, dynamic_ranks, run); }
