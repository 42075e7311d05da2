// Launches through the C interface: with a list of arguments that is made once, and with one that is made each time.
#include <pld.h>

int32_t pld_bench_launch_c(pld_executable_t *x, const pld_arg_t *tensor, uint32_t times) {
  pld_arg_t args[2];
  args[0] = *tensor;
  args[1] = pld_arg_int(0);
  for (uint32_t epoch = 1; epoch <= times; epoch++) {
    args[1].integer = epoch;
    pld_status_t status = pld_launch(x, args, 2);
    if (status != PLD_OK) return status;
  }
  return PLD_OK;
}

int32_t pld_bench_launch_c_args(pld_executable_t *x, const pld_arg_t *tensor, uint32_t times) {
  for (uint32_t epoch = 1; epoch <= times; epoch++) {
    const pld_arg_t args[] = {*tensor, pld_arg_int(epoch)};
    pld_status_t status = pld_launch(x, args, 2);
    if (status != PLD_OK) return status;
  }
  return PLD_OK;
}
