/* Step 11: the same all-reduce in one line. It is nothing new: with --expand the step prints what the library makes
 * of the line, in the puts, gets, notifies and waits of the steps before.
 *
 *   cmake -S examples/c -B build/examples -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/examples
 *   build/examples/11_allreduce_collective --print
 *   build/examples/11_allreduce_collective --expand
 */
#include "step.h"

enum { COLUMNS = 8 };

static pld_program_t *allreduce_collective(void) {
  pld_program_t *p = pld_program_create("allreduce_collective");
  pld_entry_t allreduce = pld_entry_begin(p, "allreduce");
  pld_tensor_t x = pld_param_tensor(p, "x", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS), PLD_IN);
  pld_tensor_t y = pld_param_tensor(p, "y", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS), PLD_OUT);
  pld_tensor_t data = pld_param_window(p, "data", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS));
  pld_at_begin(p, "reduce", NULL);
  pld_scalar_t me = pld_let(p, "me", pld_rank(p, data));
  pld_put(p, data, me, x, NULL);
  pld_allreduce(p, data, PLD_COMBINE_SUM, NULL);
  pld_get(p, y, me, data, NULL);
  pld_task_end(p);
  pld_entry_end(p);

  pld_tensor_t xs = pld_host_tensor(p, "xs", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, PLD_WORLD, COLUMNS), PLD_IN);
  pld_tensor_t ys = pld_host_tensor(p, "ys", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, PLD_WORLD, COLUMNS), PLD_OUT);
  pld_buffer_t data_buf = pld_alloc_window(p, "data_buf", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS));
  pld_scalar_t r = pld_let(p, "r", pld_ranks_begin(p, PLD_INT(0), pld_world_size(p)));
  pld_dispatch(p, allreduce, r,
               PLD_ARGS(pld_of_tensor(pld_slice_rank(p, xs, r)), pld_of_tensor(pld_slice_rank(p, ys, r)),
                        pld_of_tensor(pld_window(p, data_buf, PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS)))));
  pld_ranks_end(p);
  return p;
}

static void run(const pld_program_t *p, const ranks_t *ranks) {
  const step_tensor_t tensors[] = {{"x", PLD_DTYPE_F32, PLD_WORLD, COLUMNS, NULL},
                                   {"y", PLD_DTYPE_F32, PLD_WORLD, COLUMNS, step_sum}};
  step_run(p, ranks, tensors, 2);
}

/* What becomes of the program in a world of 2 ranks. */
static int expand(void) {
  pld_program_t *p = allreduce_collective(), *expanded;
  OK(pld_program_finish(p, example_diagnostic, NULL));
  OK(pld_program_expand(p, NULL, &expanded));
  OK(pld_program_print(expanded, example_write, stdout));
  pld_program_destroy(expanded);
  pld_program_destroy(p);
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "--expand") == 0) return expand();
  return ranks_main(argc, argv, "11_allreduce_collective", 1, allreduce_collective, run);
}
