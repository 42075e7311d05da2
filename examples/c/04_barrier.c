/* Step 4: signals. Every rank notifies every other one and waits for all of them: a barrier. Afterwards its cells say
 * who has arrived: 1 for every other rank, 0 for itself.
 *
 *   cmake -S examples/c -B build/examples -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/examples
 *   build/examples/04_barrier
 */
#include "step.h"

static pld_program_t *barrier(void) {
  pld_program_t *p = pld_program_create("barrier");
  pld_entry_t meet = pld_entry_begin(p, "meet");
  pld_tensor_t arrived = pld_param_tensor(p, "arrived", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, 1), PLD_OUT);
  pld_tensor_t signal = pld_param_window(p, "signal", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, 1));
  pld_scalar_t me = pld_param_scalar(p, "me", PLD_DTYPE_I32), world = pld_world_size(p), zero = PLD_INT(0);
  pld_at_begin(p, "meet", NULL);

  /* notify changes a cell of the peer, by convention the one with this rank's number. */
  pld_scalar_t peer = pld_let(p, "peer", pld_for_begin(p, zero, world));
  pld_if_begin(p, pld_ne(p, peer, me));
  pld_notify(p, signal, peer, PLD_AT(me, zero), PLD_INT(1), PLD_NOTIFY_ADD);
  pld_if_end(p);
  pld_for_end(p);

  /* wait looks at a cell of this rank. */
  pld_scalar_t src = pld_let(p, "src", pld_for_begin(p, zero, world));
  pld_if_begin(p, pld_ne(p, src, me));
  pld_wait(p, signal, PLD_AT(src, zero), PLD_INT(1), PLD_WAIT_GE);
  pld_if_end(p);
  pld_for_end(p);

  pld_tile_t cells = pld_load(p, signal, PLD_AT(zero, zero), PLD_DIMS(PLD_WORLD, 1));
  pld_store(p, cells, arrived, PLD_AT(zero, zero));
  pld_task_end(p);
  pld_entry_end(p);

  pld_tensor_t all = pld_host_tensor(p, "arrived", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, PLD_WORLD, 1), PLD_OUT);
  pld_buffer_t signal_buf = pld_alloc_window(p, "signal_buf", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, 1));
  pld_scalar_t r = pld_let(p, "r", pld_ranks_begin(p, zero, world));
  pld_dispatch(p, meet, r,
               PLD_ARGS(pld_of_tensor(pld_slice_rank(p, all, r)),
                        pld_of_tensor(pld_window(p, signal_buf, PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, 1))),
                        pld_of_scalar(r)));
  pld_ranks_end(p);
  return p;
}

static double arrived(uint32_t nranks, uint32_t rank, size_t row, size_t column) {
  (void)nranks, (void)column;
  return row == rank ? 0 : 1;
}

static void run(const pld_program_t *p, const ranks_t *ranks) {
  const step_tensor_t tensors[] = {{"arrived", PLD_DTYPE_I32, PLD_WORLD, 1, arrived}};
  step_run(p, ranks, tensors, 1);
}

int main(int argc, char **argv) { return ranks_main(argc, argv, "04_barrier", 1, barrier, run); }
