/* Steps 6 and 7: bulk transfers between global memory and windows, around the ring of ranks. A put pushes this rank's row
   into the next rank's inbox; a get pulls the next rank's row: put[r] = x[r - 1], got[r] = x[r + 1]. The program asks for
   the number of ranks where it runs, so one program serves every world. */
#ifndef PUT_GET_H
#define PUT_GET_H

#include "example.h"

enum { COLUMNS = 64, MOST_RANKS = 8 };

static inline pld_program_t *put_get_program(void) {
  pld_program_t *p = pld_program_create("put_get");
  pld_entry_t ring = pld_entry_begin(p, "ring");
  pld_tensor_t x = pld_param_tensor(p, "x", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS), PLD_IN);
  pld_tensor_t pushed = pld_param_tensor(p, "pushed", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS), PLD_OUT);
  pld_tensor_t pulled = pld_param_tensor(p, "pulled", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS), PLD_OUT);
  pld_tensor_t mine = pld_param_window(p, "mine", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS));
  pld_tensor_t inbox = pld_param_window(p, "inbox", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS));
  pld_tensor_t signal = pld_param_window(p, "signal", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, 1));
  pld_scalar_t me = pld_param_scalar(p, "me", PLD_DTYPE_I32), zero = PLD_INT(0);

  pld_at_begin(p, "exchange", NULL);
  pld_scalar_t nranks = pld_let(p, "n", pld_nranks(p, inbox));
  pld_scalar_t next = pld_let(p, "next", pld_mod(p, pld_add(p, me, PLD_INT(1)), nranks));
  pld_scalar_t previous = pld_let(p, "previous", pld_mod(p, pld_sum(p, me, nranks, PLD_INT(-1)), nranks));

  pld_put(p, inbox, next, x, NULL); /* NULL: all of both */
  pld_store(p, pld_load(p, x, PLD_AT(zero, zero), PLD_DIMS(1, COLUMNS)), mine, PLD_AT(zero, zero));
  pld_notify(p, signal, next, PLD_AT(me, zero), PLD_INT(1), PLD_NOTIFY_ADD);
  pld_notify(p, signal, previous, PLD_AT(me, zero), PLD_INT(1), PLD_NOTIFY_ADD);

  pld_wait(p, signal, PLD_AT(previous, zero), PLD_INT(1), PLD_WAIT_GE);
  pld_store(p, pld_load(p, inbox, PLD_AT(zero, zero), PLD_DIMS(1, COLUMNS)), pushed, PLD_AT(zero, zero));
  pld_wait(p, signal, PLD_AT(next, zero), PLD_INT(1), PLD_WAIT_GE);
  pld_get(p, pulled, next, mine,
          PLD_REGION(PLD_AT(zero, zero), PLD_AT(zero, zero), PLD_DIMS(1, COLUMNS))); /* the same, as a region */
  pld_task_end(p);
  pld_entry_end(p);

  pld_tensor_t xs = pld_host_tensor(p, "xs", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, 1, COLUMNS), PLD_IN);
  pld_tensor_t puts = pld_host_tensor(p, "puts", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, 1, COLUMNS), PLD_OUT);
  pld_tensor_t gets = pld_host_tensor(p, "gets", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, 1, COLUMNS), PLD_OUT);
  pld_buffer_t mine_buf = pld_alloc_window(p, "mine_buf", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS));
  pld_buffer_t inbox_buf = pld_alloc_window(p, "inbox_buf", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS));
  pld_buffer_t signal_buf = pld_alloc_window(p, "signal_buf", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, 1));
  pld_scalar_t rank = pld_ranks_begin(p, zero, pld_world_size(p));
  pld_dispatch(p, ring, rank,
               PLD_ARGS(pld_of_tensor(pld_slice_rank(p, xs, rank)), pld_of_tensor(pld_slice_rank(p, puts, rank)),
                        pld_of_tensor(pld_slice_rank(p, gets, rank)),
                        pld_of_tensor(pld_window(p, mine_buf, PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS))),
                        pld_of_tensor(pld_window(p, inbox_buf, PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS))),
                        pld_of_tensor(pld_window(p, signal_buf, PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, 1))),
                        pld_of_scalar(rank)));
  pld_ranks_end(p);
  return p;
}

/* Runs it between `nranks` threads, and checks the result. */
static inline void put_get_run(uint32_t nranks) {
  static float x[MOST_RANKS][COLUMNS], pushed[MOST_RANKS][COLUMNS], pulled[MOST_RANKS][COLUMNS];
  pld_arg_t args[3];
  uint32_t r;
  size_t i;
  for (r = 0; r < nranks; r++)
    for (i = 0; i < COLUMNS; i++) x[r][i] = example_value(r, i);
  args[0] = pld_arg_tensor(x, PLD_DTYPE_F32, PLD_DIMS(nranks, 1, COLUMNS));
  args[1] = pld_arg_tensor(pushed, PLD_DTYPE_F32, PLD_DIMS(nranks, 1, COLUMNS));
  args[2] = pld_arg_tensor(pulled, PLD_DTYPE_F32, PLD_DIMS(nranks, 1, COLUMNS));
  example_run(put_get_program(), nranks, args, 3);
  for (r = 0; r < nranks; r++)
    for (i = 0; i < COLUMNS; i++) {
      example_check("pushed", r, i, pushed[r][i], example_value((r + nranks - 1) % nranks, i));
      example_check("pulled", r, i, pulled[r][i], example_value((r + 1) % nranks, i));
    }
  printf("%u ranks: rank 0 was given %.4f by rank %u, and got %.4f from rank %u\n", nranks, pushed[0][0], nranks - 1,
         pulled[0][0], 1 % nranks);
}

#endif
