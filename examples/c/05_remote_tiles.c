/* Step 5: tiles and peers. remote_load brings part of a peer's window into a tile; remote_store sends a tile into a peer's
 * window: loaded[r] = x[r + 1], stored[r] = x[r - 1], around the ring of ranks.
 *
 *   cmake -S examples/c -B build/examples -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/examples
 *   build/examples/05_remote_tiles
 */
#include "example.h"

enum { RANKS = 2, COLUMNS = 64 };

int main(void) {
  static float x[RANKS][1][COLUMNS], loaded[RANKS][1][COLUMNS], stored[RANKS][1][COLUMNS];
  pld_arg_t args[3];
  uint32_t r;
  size_t i;

  pld_program_t *p = pld_program_create("remote_tiles");
  pld_entry_t ring = pld_entry_begin(p, "ring");
  pld_tensor_t in = pld_param_tensor(p, "x", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS), PLD_IN);
  pld_tensor_t from_next = pld_param_tensor(p, "loaded", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS), PLD_OUT);
  pld_tensor_t from_previous = pld_param_tensor(p, "stored", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS), PLD_OUT);
  pld_tensor_t mine = pld_param_window(p, "mine", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS));
  pld_tensor_t inbox = pld_param_window(p, "inbox", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS));
  pld_tensor_t signal = pld_param_window(p, "signal", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, 1));
  pld_scalar_t me = pld_param_scalar(p, "me", PLD_DTYPE_I32), world = pld_world_size(p), zero = PLD_INT(0);

  pld_at_begin(p, "exchange", NULL);
  pld_scalar_t next = pld_let(p, "next", pld_mod(p, pld_add(p, me, PLD_INT(1)), world));
  pld_scalar_t previous = pld_let(p, "previous", pld_mod(p, pld_add(p, me, pld_sub(p, world, PLD_INT(1))), world));
  pld_tile_t tile = pld_load(p, in, PLD_AT(zero, zero), PLD_DIMS(1, COLUMNS));
  pld_store(p, tile, mine, PLD_AT(zero, zero));
  pld_remote_store(p, tile, inbox, next, PLD_AT(zero, zero), PLD_ATOMIC_NONE);

  /* Tell the next rank that its inbox is full, and the previous one that `mine` may be read. */
  pld_notify(p, signal, next, PLD_AT(me, zero), PLD_INT(1), PLD_NOTIFY_ADD);
  pld_notify(p, signal, previous, PLD_AT(me, zero), PLD_INT(1), PLD_NOTIFY_ADD);
  pld_wait(p, signal, PLD_AT(previous, zero), PLD_INT(1), PLD_WAIT_GE);
  pld_wait(p, signal, PLD_AT(next, zero), PLD_INT(1), PLD_WAIT_GE);

  pld_store(p, pld_load(p, inbox, PLD_AT(zero, zero), PLD_DIMS(1, COLUMNS)), from_previous, PLD_AT(zero, zero));
  pld_store(p, pld_remote_load(p, mine, next, PLD_AT(zero, zero), PLD_DIMS(1, COLUMNS)), from_next,
            PLD_AT(zero, zero));
  pld_task_end(p);
  pld_entry_end(p);

  pld_tensor_t xs = pld_host_tensor(p, "xs", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, 1, COLUMNS), PLD_IN);
  pld_tensor_t ls = pld_host_tensor(p, "ls", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, 1, COLUMNS), PLD_OUT);
  pld_tensor_t ss = pld_host_tensor(p, "ss", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, 1, COLUMNS), PLD_OUT);
  pld_buffer_t mine_buf = pld_alloc_window(p, "mine_buf", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS));
  pld_buffer_t inbox_buf = pld_alloc_window(p, "inbox_buf", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS));
  pld_buffer_t signal_buf = pld_alloc_window(p, "signal_buf", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, 1));
  pld_scalar_t rank = pld_ranks_begin(p, zero, pld_world_size(p));
  pld_dispatch(p, ring, rank,
               PLD_ARGS(pld_of_tensor(pld_slice_rank(p, xs, rank)), pld_of_tensor(pld_slice_rank(p, ls, rank)),
                        pld_of_tensor(pld_slice_rank(p, ss, rank)),
                        pld_of_tensor(pld_window(p, mine_buf, PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS))),
                        pld_of_tensor(pld_window(p, inbox_buf, PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS))),
                        pld_of_tensor(pld_window(p, signal_buf, PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, 1))),
                        pld_of_scalar(rank)));
  pld_ranks_end(p);

  for (r = 0; r < RANKS; r++)
    for (i = 0; i < COLUMNS; i++) x[r][0][i] = example_value(r, i);
  args[0] = pld_arg_tensor(x, PLD_DTYPE_F32, PLD_DIMS(RANKS, 1, COLUMNS));
  args[1] = pld_arg_tensor(loaded, PLD_DTYPE_F32, PLD_DIMS(RANKS, 1, COLUMNS));
  args[2] = pld_arg_tensor(stored, PLD_DTYPE_F32, PLD_DIMS(RANKS, 1, COLUMNS));
  example_run(p, RANKS, args, 3);

  for (r = 0; r < RANKS; r++)
    for (i = 0; i < COLUMNS; i++) {
      example_check("loaded", r, i, loaded[r][0][i], example_value((r + 1) % RANKS, i));
      example_check("stored", r, i, stored[r][0][i], example_value((r + RANKS - 1) % RANKS, i));
    }
  printf("rank 0: %.4f came from rank 1\n", loaded[0][0][0]);
  return example_result("05_remote_tiles");
}
