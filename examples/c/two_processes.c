/* Two processes that send each other a row. Each passes only its own slices at launch. Started without PLD_RANK, the
 * example starts itself twice.
 *
 *   cmake -S examples/c -B build/examples -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/examples
 *   build/examples/two_processes
 *   PLD_RANK=0 PLD_WORLD_SIZE=2 build/examples/two_processes & PLD_RANK=1 PLD_WORLD_SIZE=2 build/examples/two_processes
 */
#include "processes.h"
#include "put_get.h"

int main(int argc, char **argv) {
  (void)argc;
  if (!processes_is_rank()) return processes_start(argv, 2);

  float x[COLUMNS], pushed[COLUMNS], pulled[COLUMNS];
  pld_arg_t args[3];
  size_t i;
  pld_program_t *p = put_get_program();
  pld_executable_t *executable;
  OK(pld_program_finish(p, example_diagnostic, NULL));
  pld_world_t *world = processes_join();
  uint32_t rank = (uint32_t)pld_world_rank(world), nranks = pld_world_nranks(world);
  OK(pld_compile(p, world, NULL, &executable));
  pld_program_destroy(p);

  for (i = 0; i < COLUMNS; i++) x[i] = example_value(rank, i);
  args[0] = pld_arg_tensor(x, PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS));
  args[1] = pld_arg_tensor(pushed, PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS));
  args[2] = pld_arg_tensor(pulled, PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS));
  OK(pld_launch(executable, args, 3));
  for (i = 0; i < COLUMNS; i++) {
    example_check("pushed", rank, i, pushed[i], example_value((rank + nranks - 1) % nranks, i));
    example_check("pulled", rank, i, pulled[i], example_value((rank + 1) % nranks, i));
  }
  printf("process %ld is rank %u of %u and was given %.4f\n", (long)getpid(), rank, nranks, pushed[0]);

  pld_executable_destroy(executable);
  pld_world_destroy(world);
  return example_result("two_processes");
}
