/* With too little of memory, descriptors or threads, every call ends with an error and a text, or succeeds (C86): never
   with a signal. Each attempt is a child process with one limit. */
#include "pld_test.h"

#include <sys/resource.h>
#include <sys/wait.h>

/* What a child does: everything, with each status checked for a message if it is an error. Builder calls remember their
   errors until the finish. */
static void use_everything(void) {
  float in[2][64], out[2][64];
  pld_world_options_t options;
  pld_check_options_t check;
  pld_world_t *world = NULL;
  pld_executable_t *x = NULL;
  pld_run_t *run = NULL;
  pld_arg_t args[3];
  pld_program_t *p;
  pld_status_t status;
  int i;
  for (i = 0; i < 64; i++) {
    in[0][i] = (float)i;
    in[1][i] = (float)(100 + i);
  }
  args[0] = pld_arg_tensor(in, PLD_DTYPE_F32, PLD_DIMS(2, 1, 64));
  args[1] = pld_arg_tensor(out, PLD_DTYPE_F32, PLD_DIMS(2, 1, 64));
  args[2] = pld_arg_float(1);

#define TRY(call)                                                        \
  do {                                                                   \
    status = (call);                                                     \
    CHECK(status == PLD_OK || pld_last_error(NULL, 0) > 0);              \
  } while (0)

  p = test_shift(64);
  TRY(pld_program_finish(p, NULL, NULL));
  CHECK_OK(pld_check_options_init(&check, sizeof check));
  check.schedules = 20;
  check.args = args;
  check.nargs = 3;
  TRY(pld_check(p, &check, NULL, NULL, NULL));
  CHECK_OK(pld_world_options_init(&options, sizeof options));
  options.nranks = 2;
  options.timeout_us = 3000000;
  TRY(pld_world_create(&options, &world));
  TRY(pld_compile(p, world, NULL, &x));
  TRY(pld_launch(x, args, 3));
  if (status == PLD_OK) CHECK(out[0][63] == 163 && out[1][0] == 0);
  TRY(pld_submit(x, args, 3, &run));
  if (run != NULL) TRY(pld_run_wait(run, -1));
  pld_run_destroy(run);
  pld_executable_destroy(x);
  pld_world_destroy(world);
  world = NULL;

  options.nranks = 1;
  options.rank = 0;
  options.bootstrap = "file:/nonexistent-folder/libpld-test";
  TRY(pld_world_join(&options, &world));
  pld_world_destroy(world);
  pld_program_destroy(p);
}

/* Address space that the process uses, in bytes. */
static size_t address_space(void) {
  unsigned long pages = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  CHECK(f != NULL && fscanf(f, "%lu", &pages) == 1);
  fclose(f);
  return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void with_limit(int resource, const char *name, rlim_t limit) {
  pid_t child = fork();
  int state = 0;
  CHECK(child >= 0);
  if (child == 0) {
    struct rlimit r;
    test_deadline(30);
    r.rlim_cur = r.rlim_max = limit;
    CHECK(setrlimit((__rlimit_resource_t)resource, &r) == 0);
    use_everything();
    _exit(0);
  }
  CHECK(waitpid(child, &state, 0) == child);
  if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return;
  fprintf(stderr, "with %s %llu: %s %d\n", name, (unsigned long long)limit,
          WIFSIGNALED(state) ? "signal" : "exit", WIFSIGNALED(state) ? WTERMSIG(state) : WEXITSTATUS(state));
  exit(1);
}

int main(void) {
  size_t kib;
  size_t used = address_space();
  rlim_t descriptors;
  test_deadline(240);
  with_limit(RLIMIT_AS, "address space", RLIM_INFINITY);
  for (kib = 0; kib < 4096; kib += 28) with_limit(RLIMIT_AS, "address space", used + kib * 1024);
  for (; kib < 262144; kib += kib / 8) with_limit(RLIMIT_AS, "address space", used + kib * 1024);
  for (descriptors = 3; descriptors <= 16; descriptors++) with_limit(RLIMIT_NOFILE, "descriptors", descriptors);
  with_limit(RLIMIT_NPROC, "processes", 0);
  return 0;
}
