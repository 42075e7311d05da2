/* The smallest user: includes the header, builds a program, prints it. */
#include <pld.h>

#include <stdio.h>

static int32_t to_stdout(const char *text, size_t size, void *user_data) {
  (void)user_data;
  return fwrite(text, 1, size, stdout) == size ? 0 : 1;
}

int main(void) {
  pld_program_t *p = pld_program_create("consumer");
  pld_entry_t e = pld_entry_begin(p, "mark");
  pld_tensor_t y = pld_param_tensor(p, "y", PLD_DTYPE_I32, PLD_DIMS(1), PLD_OUT), ys;
  pld_scalar_t me = pld_param_scalar(p, "me", PLD_DTYPE_I32), r;
  pld_status_t status;
  pld_at_begin(p, "write", NULL);
  pld_write(p, y, PLD_AT(PLD_INT(0)), me);
  pld_task_end(p);
  pld_entry_end(p);
  ys = pld_host_tensor(p, "ys", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, 1), PLD_OUT);
  r = pld_ranks_begin(p, PLD_INT(0), pld_world_size(p));
  pld_dispatch(p, e, r, PLD_ARGS(pld_of_tensor(pld_slice_rank(p, ys, r)), pld_of_scalar(r)));
  pld_ranks_end(p);
  status = pld_program_finish(p, NULL, NULL);
  if (status == PLD_OK) status = pld_program_print(p, to_stdout, NULL);
  printf("libpld %s: %s\n", pld_version_string(), pld_status_message(status));
  pld_program_destroy(p);
  return status == PLD_OK ? 0 : 1;
}
