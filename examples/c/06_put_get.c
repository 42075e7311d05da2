/* Step 6: the two shifts of step 5 without tiles, from memory to memory: pushed[r] = x[r - 1] by put, pulled[r] = x[r
 * + 1] by get.
 *
 *   cmake -S examples/c -B build/examples -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/examples
 *   build/examples/06_put_get
 */
#include "step.h"

enum { COLUMNS = 64 };

static pld_program_t *put_get(void) {
  pld_program_t *p = pld_program_create("put_get");
  pld_entry_t shift = pld_entry_begin(p, "shift");
  pld_tensor_t x = pld_param_tensor(p, "x", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS), PLD_IN);
  pld_tensor_t pushed = pld_param_tensor(p, "pushed", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS), PLD_OUT);
  pld_tensor_t pulled = pld_param_tensor(p, "pulled", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS), PLD_OUT);
  pld_tensor_t inbox = pld_param_window(p, "inbox", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS));
  pld_tensor_t shown = pld_param_window(p, "shown", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS));
  pld_tensor_t signal = pld_param_window(p, "signal", PLD_DTYPE_I32, PLD_DIMS(2, 1));
  pld_scalar_t me = pld_param_scalar(p, "me", PLD_DTYPE_I32), world = pld_world_size(p);
  pld_scalar_t zero = PLD_INT(0), one = PLD_INT(1);

  pld_at_begin(p, "exchange", NULL);
  pld_scalar_t next = pld_let(p, "next", pld_mod(p, pld_add(p, me, one), world));
  pld_scalar_t previous = pld_let(p, "previous", pld_mod(p, pld_sub(p, pld_add(p, me, world), one), world));

  pld_put(p, inbox, next, x, NULL); /* NULL: all of both */
  pld_notify(p, signal, next, PLD_AT(zero, zero), one, PLD_NOTIFY_ADD);
  pld_put(p, shown, me, x, NULL); /* to this rank itself: a copy */
  pld_notify(p, signal, previous, PLD_AT(one, zero), one, PLD_NOTIFY_ADD);

  pld_wait(p, signal, PLD_AT(zero, zero), one, PLD_WAIT_GE);
  pld_get(p, pushed, me, inbox, NULL);
  pld_wait(p, signal, PLD_AT(one, zero), one, PLD_WAIT_GE);
  /* The same extents again, as a region: where it begins in both, and its shape. */
  pld_get(p, pulled, next, shown, PLD_REGION(PLD_AT(zero, zero), PLD_AT(zero, zero), PLD_DIMS(1, COLUMNS)));
  pld_task_end(p);
  pld_entry_end(p);

  pld_tensor_t xs = pld_host_tensor(p, "xs", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, 1, COLUMNS), PLD_IN);
  pld_tensor_t all_pushed = pld_host_tensor(p, "pushed", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, 1, COLUMNS), PLD_OUT);
  pld_tensor_t all_pulled = pld_host_tensor(p, "pulled", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, 1, COLUMNS), PLD_OUT);
  pld_buffer_t inbox_buf = pld_alloc_window(p, "inbox_buf", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS));
  pld_buffer_t shown_buf = pld_alloc_window(p, "shown_buf", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS));
  pld_buffer_t signal_buf = pld_alloc_window(p, "signal_buf", PLD_DTYPE_I32, PLD_DIMS(2, 1));
  pld_scalar_t r = pld_let(p, "r", pld_ranks_begin(p, zero, world));
  pld_dispatch(p, shift, r,
               PLD_ARGS(pld_of_tensor(pld_slice_rank(p, xs, r)), pld_of_tensor(pld_slice_rank(p, all_pushed, r)),
                        pld_of_tensor(pld_slice_rank(p, all_pulled, r)),
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
                                   {"pushed", PLD_DTYPE_F32, 1, COLUMNS, of_previous},
                                   {"pulled", PLD_DTYPE_F32, 1, COLUMNS, of_next}};
  step_run(p, ranks, tensors, 3);
}

int main(int argc, char **argv) { return ranks_main(argc, argv, "06_put_get", 1, put_get, run); }
