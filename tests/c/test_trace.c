/* Traces: the option, the environment variable, and which of them counts. */
#include "pld_test.h"

/* The number of lines in the file, which begins a list; -1 without a file. */
static int lines(const char *path) {
  FILE *file = fopen(path, "r");
  int c, count = 0;
  if (file == NULL) return -1;
  CHECK(fgetc(file) == '[');
  while ((c = fgetc(file)) != EOF) count += c == '\n';
  fclose(file);
  return count;
}

/* Launches a little, in a world with this option. */
static void launch(const char *trace) {
  float in[2][1][8] = {{{0}}}, out[2][1][8];
  pld_program_t *p = test_shift_finished(8);
  pld_world_options_t options;
  pld_world_t *world = NULL;
  pld_executable_t *x = NULL;
  pld_arg_t args[3];
  int i;
  CHECK_OK(pld_world_options_init(&options, sizeof options));
  options.nranks = 2;
  options.trace = trace;
  CHECK_OK(pld_world_create(&options, &world));
  CHECK_OK(pld_compile(p, world, NULL, &x));
  args[0] = pld_arg_tensor(in, PLD_DTYPE_F32, PLD_DIMS(2, 1, 8));
  args[1] = pld_arg_tensor(out, PLD_DTYPE_F32, PLD_DIMS(2, 1, 8));
  args[2] = pld_arg_float(1);
  for (i = 0; i < 5; i++) CHECK_OK(pld_launch(x, args, 3));
  pld_executable_destroy(x);
  pld_program_destroy(p);
  pld_world_destroy(world);
}

int main(void) {
  char home[] = "/tmp/pld-trace-XXXXXX", option[64], variable[64];
  pld_world_options_t options;
  pld_world_t *world = NULL;
  test_deadline(60);
  CHECK(mkdtemp(home) != NULL);
  snprintf(option, sizeof option, "%s/option.json", home);
  snprintf(variable, sizeof variable, "%s/variable.json", home);

  launch(NULL);
  CHECK(lines(option) == -1);
  launch(option);
  /* Launches, tasks and notifies of two ranks at least. */
  CHECK(lines(option) >= 5 * 2 * 3);
  CHECK(setenv("PLD_TRACE", variable, 1) == 0);
  launch(option);
  CHECK(lines(variable) == -1);
  launch(NULL);
  CHECK(lines(variable) >= 5 * 2 * 3);

  CHECK_OK(pld_world_options_init(&options, sizeof options));
  options.nranks = 1;
  options.trace = home;
  CHECK_STATUS(PLD_ERR_IO, pld_world_create(&options, &world));
  CHECK_ERROR(home);
  options.trace = "\xff";
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_world_create(&options, &world));
  CHECK(world == NULL);

  CHECK(remove(option) == 0 && remove(variable) == 0 && rmdir(home) == 0);
  return 0;
}
