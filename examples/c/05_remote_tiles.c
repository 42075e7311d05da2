/* Step 5: tiles and peers. remote_store sends a tile into a peer's window; remote_load brings a part of a peer's
 * window into a tile: stored[r] = x[r - 1], loaded[r] = x[r + 1], around the ring of ranks.
 *
 *   cmake -S examples/c -B build/examples -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/examples
 *   build/examples/05_remote_tiles
 */
#include "step.h"

enum { COLUMNS = 64 };

static pld_program_t *remote_tiles(void) {
  pld_program_t *p = pld_program_create("remote_tiles");
  pld_entry_t shift = pld_entry_begin(p, "shift");
  pld_tensor_t x = pld_param_tensor(p, "x", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS), PLD_IN);
  pld_tensor_t stored = pld_param_tensor(p, "stored", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS), PLD_OUT);
  pld_tensor_t loaded = pld_param_tensor(p, "loaded", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS), PLD_OUT);
  pld_tensor_t inbox = pld_param_window(p, "inbox", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS));
  pld_tensor_t shown = pld_param_window(p, "shown", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS));
  pld_tensor_t signal = pld_param_window(p, "signal", PLD_DTYPE_I32, PLD_DIMS(2, 1));
  pld_scalar_t me = pld_param_scalar(p, "me", PLD_DTYPE_I32), world = pld_world_size(p);
  pld_scalar_t zero = PLD_INT(0), one = PLD_INT(1);

  /* Send: the next rank's inbox, then its signal. */
  pld_at_begin(p, "send", NULL);
  pld_scalar_t next = pld_let(p, "next", pld_mod(p, pld_add(p, me, one), world));
  pld_tile_t tile = pld_load(p, x, PLD_AT(zero, zero), PLD_DIMS(1, COLUMNS));
  pld_remote_store(p, tile, inbox, next, PLD_AT(zero, zero), PLD_ATOMIC_NONE);
  pld_notify(p, signal, next, PLD_AT(zero, zero), one, PLD_NOTIFY_ADD);
  pld_wait(p, signal, PLD_AT(zero, zero), one, PLD_WAIT_GE);
  tile = pld_load(p, inbox, PLD_AT(zero, zero), PLD_DIMS(1, COLUMNS));
  pld_store(p, tile, stored, PLD_AT(zero, zero));
  pld_task_end(p);

  /* Show: this rank's own window, and the signal of the rank that will read there. */
  pld_at_begin(p, "show", NULL);
  tile = pld_load(p, x, PLD_AT(zero, zero), PLD_DIMS(1, COLUMNS));
  pld_store(p, tile, shown, PLD_AT(zero, zero));
  pld_scalar_t previous = pld_let(p, "previous", pld_mod(p, pld_sub(p, pld_add(p, me, world), one), world));
  pld_notify(p, signal, previous, PLD_AT(one, zero), one, PLD_NOTIFY_ADD);
  pld_wait(p, signal, PLD_AT(one, zero), one, PLD_WAIT_GE);
  tile = pld_remote_load(p, shown, pld_mod(p, pld_add(p, me, one), world), PLD_AT(zero, zero), PLD_DIMS(1, COLUMNS));
  pld_store(p, tile, loaded, PLD_AT(zero, zero));
  pld_task_end(p);
  pld_entry_end(p);

  pld_tensor_t xs = pld_host_tensor(p, "xs", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, 1, COLUMNS), PLD_IN);
  pld_tensor_t all_stored = pld_host_tensor(p, "stored", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, 1, COLUMNS), PLD_OUT);
  pld_tensor_t all_loaded = pld_host_tensor(p, "loaded", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, 1, COLUMNS), PLD_OUT);
  pld_buffer_t inbox_buf = pld_alloc_window(p, "inbox_buf", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS));
  pld_buffer_t shown_buf = pld_alloc_window(p, "shown_buf", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS));
  pld_buffer_t signal_buf = pld_alloc_window(p, "signal_buf", PLD_DTYPE_I32, PLD_DIMS(2, 1));
  pld_scalar_t r = pld_let(p, "r", pld_ranks_begin(p, zero, world));
  pld_dispatch(p, shift, r,
               PLD_ARGS(pld_of_tensor(pld_slice_rank(p, xs, r)), pld_of_tensor(pld_slice_rank(p, all_stored, r)),
                        pld_of_tensor(pld_slice_rank(p, all_loaded, r)),
                        pld_of_tensor(pld_window(p, inbox_buf, PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS))),
                        pld_of_tensor(pld_window(p, shown_buf, PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS))),
                        pld_of_tensor(pld_window(p, signal_buf, PLD_DTYPE_I32, PLD_DIMS(2, 1))), pld_of_scalar(r)));
  pld_ranks_end(p);
  return p;
}

static double of_previous(uint32_t nranks, uint32_t rank, size_t row, size_t column) {
  return step_input(nranks, (rank + nranks - 1) % nranks, row, column);
}

static double of_next(uint32_t nranks, uint32_t rank, size_t row, size_t column) {
  return step_input(nranks, (rank + 1) % nranks, row, column);
}

static void run(const pld_program_t *p, const ranks_t *ranks) {
  const step_tensor_t tensors[] = {{"x", PLD_DTYPE_F32, 1, COLUMNS, NULL},
                                   {"stored", PLD_DTYPE_F32, 1, COLUMNS, of_previous},
                                   {"loaded", PLD_DTYPE_F32, 1, COLUMNS, of_next}};
  step_run(p, ranks, tensors, 3);
}

int main(int argc, char **argv) { return ranks_main(argc, argv, "05_remote_tiles", 1, remote_tiles, run); }
