/* A forked child must not use the world, may destroy it, and disturbs nobody by ending. */
#include "pld_test.h"

#include <sys/wait.h>

int main(void) {
  pld_program_t *p = test_shift_finished(8);
  pld_world_t *world = test_world(2, 20000000);
  pld_executable_t *x = NULL;
  float in[2][1][8] = {{{1}}, {{2}}}, out[2][1][8];
  pld_arg_t args[3];
  pid_t child;
  int state = 0, i;
  test_deadline(120);
  args[0] = pld_arg_tensor(in, PLD_DTYPE_F32, PLD_DIMS(2, 1, 8));
  args[1] = pld_arg_tensor(out, PLD_DTYPE_F32, PLD_DIMS(2, 1, 8));
  args[2] = pld_arg_float(1);
  CHECK_OK(pld_compile(p, world, NULL, &x));
  CHECK_OK(pld_launch(x, args, 3));
  child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    pld_executable_t *mine = NULL;
    test_deadline(20);
    CHECK_STATUS(PLD_ERR_FORKED, pld_launch(x, args, 3));
    CHECK_STATUS(PLD_ERR_FORKED, pld_compile(p, world, NULL, &mine));
    CHECK_STATUS(PLD_ERR_FORKED, pld_world_abort(world, 1));
    pld_executable_destroy(x);
    pld_world_destroy(world);
    pld_program_destroy(p);
    exit(0);
  }
  for (i = 0; i < 100; i++) CHECK_OK(pld_launch(x, args, 3));
  CHECK(waitpid(child, &state, 0) == child && WIFEXITED(state) && WEXITSTATUS(state) == 0);
  CHECK_OK(pld_launch(x, args, 3));
  CHECK(out[0][0][0] == 2 && out[1][0][0] == 1);
  pld_executable_destroy(x);
  pld_world_destroy(world);
  pld_program_destroy(p);
  return 0;
}
