/* Step 12: broadcast. One rank, the root, has something for all: y[r] = x[root].
 *
 *   cmake -S examples/c -B build/examples -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/examples
 *   build/examples/12_broadcast --ranks 3
 */
#include "step.h"

enum { ROOT = 0, COLUMNS = 8 };

static pld_program_t *broadcast(void) {
  pld_program_t *p = pld_program_create("broadcast");
  pld_entry_t give = pld_entry_begin(p, "give");
  pld_tensor_t x = pld_param_tensor(p, "x", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS), PLD_IN);
  pld_tensor_t y = pld_param_tensor(p, "y", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS), PLD_OUT);
  pld_tensor_t data = pld_param_window(p, "data", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS));
  pld_at_begin(p, "give", NULL);
  pld_scalar_t me = pld_let(p, "me", pld_rank(p, data));
  pld_if_begin(p, pld_eq(p, me, PLD_INT(ROOT)));
  pld_put(p, data, me, x, NULL);
  pld_if_end(p);
  pld_broadcast(p, data, PLD_INT(ROOT), NULL);
  pld_get(p, y, me, data, NULL);
  pld_task_end(p);
  pld_entry_end(p);

  pld_tensor_t xs = pld_host_tensor(p, "xs", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, 1, COLUMNS), PLD_IN);
  pld_tensor_t ys = pld_host_tensor(p, "ys", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, 1, COLUMNS), PLD_OUT);
  pld_buffer_t data_buf = pld_alloc_window(p, "data_buf", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS));
  pld_scalar_t r = pld_let(p, "r", pld_ranks_begin(p, PLD_INT(0), pld_world_size(p)));
  pld_dispatch(p, give, r,
               PLD_ARGS(pld_of_tensor(pld_slice_rank(p, xs, r)), pld_of_tensor(pld_slice_rank(p, ys, r)),
                        pld_of_tensor(pld_window(p, data_buf, PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS)))));
  pld_ranks_end(p);
  return p;
}

static double of_root(uint32_t nranks, uint32_t rank, size_t row, size_t column) {
  (void)rank;
  return step_input(nranks, ROOT, row, column);
}

static void run(const pld_program_t *p, const ranks_t *ranks) {
  const step_tensor_t tensors[] = {{"x", PLD_DTYPE_F32, 1, COLUMNS, NULL},
                                   {"y", PLD_DTYPE_F32, 1, COLUMNS, of_root}};
  step_run(p, ranks, tensors, 2);
}

int main(int argc, char **argv) { return ranks_main(argc, argv, "12_broadcast", 1, broadcast, run); }
