/* Step 1: one entry, dispatched once a rank. Every rank adds its own number to its part: y[r] = x[r] + r.
 *
 *   cmake -S examples/c -B build/examples -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/examples
 *   build/examples/01_hello_rank
 */
#include "step.h"

enum { ROWS = 8, COLUMNS = 8 };

static pld_program_t *hello_rank(void) {
  pld_program_t *p = pld_program_create("hello_rank");

  /* The entry is what one rank does: it sees an ordinary [8, 8] tensor, and its number. */
  pld_entry_t hello = pld_entry_begin(p, "hello");
  pld_tensor_t x = pld_param_tensor(p, "x", PLD_DTYPE_F32, PLD_DIMS(ROWS, COLUMNS), PLD_IN);
  pld_tensor_t y = pld_param_tensor(p, "y", PLD_DTYPE_F32, PLD_DIMS(ROWS, COLUMNS), PLD_OUT);
  pld_scalar_t me = pld_param_scalar(p, "me", PLD_DTYPE_I32), zero = PLD_INT(0);
  pld_at_begin(p, "add_rank", NULL);
  pld_tile_t tile = pld_load(p, x, PLD_AT(zero, zero), PLD_DIMS(ROWS, COLUMNS));
  tile = pld_tile_adds(p, tile, pld_cast(p, me, PLD_DTYPE_F32));
  pld_store(p, tile, y, PLD_AT(zero, zero));
  pld_task_end(p);
  pld_entry_end(p);

  /* The host driver has the tensors of all ranks, and dispatches the entry to each rank with its part of them. */
  pld_tensor_t xs = pld_host_tensor(p, "xs", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, ROWS, COLUMNS), PLD_IN);
  pld_tensor_t ys = pld_host_tensor(p, "ys", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, ROWS, COLUMNS), PLD_OUT);
  pld_scalar_t r = pld_let(p, "r", pld_ranks_begin(p, zero, pld_world_size(p)));
  pld_dispatch(p, hello, r,
               PLD_ARGS(pld_of_tensor(pld_slice_rank(p, xs, r)), pld_of_tensor(pld_slice_rank(p, ys, r)),
                        pld_of_scalar(r)));
  pld_ranks_end(p);
  return p;
}

static double with_rank(uint32_t nranks, uint32_t rank, size_t row, size_t column) {
  return step_input(nranks, rank, row, column) + rank;
}

static void run(const pld_program_t *p, const ranks_t *ranks) {
  const step_tensor_t tensors[] = {{"x", PLD_DTYPE_F32, ROWS, COLUMNS, NULL},
                                   {"y", PLD_DTYPE_F32, ROWS, COLUMNS, with_rank}};
  step_run(p, ranks, tensors, 2);
}

int main(int argc, char **argv) { return ranks_main(argc, argv, "01_hello_rank", 1, hello_rank, run); }
