/* Step 4: signals. Every rank notifies every other one and waits for all of them: a barrier. Afterwards its cells say who
 * has arrived: 1 for every other rank, 0 for itself.
 *
 *   cmake -S examples/c -B build/examples -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/examples
 *   build/examples/04_barrier
 */
#include "example.h"

enum { RANKS = 2 };

int main(void) {
  static int32_t arrived[RANKS][RANKS][1];
  pld_arg_t args[1];
  uint32_t r, i;

  pld_program_t *p = pld_program_create("barrier");
  pld_entry_t barrier = pld_entry_begin(p, "barrier");
  pld_tensor_t out = pld_param_tensor(p, "arrived", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, 1), PLD_OUT);
  pld_tensor_t signal = pld_param_window(p, "signal", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, 1));
  pld_scalar_t me = pld_param_scalar(p, "me", PLD_DTYPE_I32), world = pld_world_size(p);
  pld_at_begin(p, "meet", NULL);

  /* notify writes a cell of the peer, by convention the one with this rank's number; wait reads a cell of its own. */
  pld_scalar_t peer = pld_let(p, "peer", pld_for_begin(p, PLD_INT(0), world));
  pld_if_begin(p, pld_ne(p, peer, me));
  pld_notify(p, signal, peer, PLD_AT(me, PLD_INT(0)), PLD_INT(1), PLD_NOTIFY_ADD);
  pld_if_end(p);
  pld_for_end(p);

  pld_scalar_t source = pld_let(p, "source", pld_for_begin(p, PLD_INT(0), world));
  pld_if_begin(p, pld_ne(p, source, me));
  pld_wait(p, signal, PLD_AT(source, PLD_INT(0)), PLD_INT(1), PLD_WAIT_GE);
  pld_if_end(p);
  pld_for_end(p);

  pld_store(p, pld_load(p, signal, PLD_AT(PLD_INT(0), PLD_INT(0)), PLD_DIMS(PLD_WORLD, 1)), out,
            PLD_AT(PLD_INT(0), PLD_INT(0)));
  pld_task_end(p);
  pld_entry_end(p);

  pld_tensor_t outs = pld_host_tensor(p, "outs", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, PLD_WORLD, 1), PLD_OUT);
  pld_buffer_t buffer = pld_alloc_window(p, "signal_buf", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, 1));
  pld_scalar_t rank = pld_ranks_begin(p, PLD_INT(0), pld_world_size(p));
  pld_dispatch(p, barrier, rank,
               PLD_ARGS(pld_of_tensor(pld_slice_rank(p, outs, rank)),
                        pld_of_tensor(pld_window(p, buffer, PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, 1))),
                        pld_of_scalar(rank)));
  pld_ranks_end(p);

  args[0] = pld_arg_tensor(arrived, PLD_DTYPE_I32, PLD_DIMS(RANKS, RANKS, 1));
  example_run(p, RANKS, args, 1);

  for (r = 0; r < RANKS; r++)
    for (i = 0; i < RANKS; i++) example_check("arrived", r, i, arrived[r][i][0], i == r ? 0 : 1);
  printf("rank 0 saw [%d, %d], rank 1 saw [%d, %d]\n", arrived[0][0][0], arrived[0][1][0], arrived[1][0][0],
         arrived[1][1][0]);
  return example_result("04_barrier");
}
