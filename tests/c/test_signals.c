/* The library leaves signal handlers and masks alone (C80): before loading it, after, with a world, after an error,
   at the end. */
#include "pld_test.h"

#include <signal.h>

#define MOST_SIGNALS 65

struct signals {
  struct sigaction actions[MOST_SIGNALS];
  sigset_t mask;
};

static void record(struct signals *s) {
  int number;
  memset(s, 0, sizeof *s);
  for (number = 1; number < MOST_SIGNALS; number++) sigaction(number, NULL, &s->actions[number]);
  CHECK(sigprocmask(SIG_SETMASK, NULL, &s->mask) == 0);
}

static struct signals before_loading;

/* Runs before the constructors of shared libraries. */
static void early(int argc, char **argv, char **envp) {
  (void)argc;
  (void)argv;
  (void)envp;
  record(&before_loading);
}
__attribute__((section(".preinit_array"), used)) static void (*const preinit)(int, char **, char **) = early;

static int same_set(const sigset_t *a, const sigset_t *b) {
  int number;
  for (number = 1; number < MOST_SIGNALS; number++)
    if (sigismember(a, number) != sigismember(b, number)) return 0;
  return 1;
}

static void same(const char *when) {
  struct signals now;
  int number;
  record(&now);
  for (number = 1; number < MOST_SIGNALS; number++) {
    const struct sigaction *a = &before_loading.actions[number], *b = &now.actions[number];
    if (a->sa_handler != b->sa_handler || a->sa_flags != b->sa_flags || !same_set(&a->sa_mask, &b->sa_mask)) {
      fprintf(stderr, "signal %d has another action %s\n", number, when);
      exit(1);
    }
  }
  CHECK(same_set(&before_loading.mask, &now.mask));
}

int main(void) {
  float in[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}}, out[2][4];
  pld_program_t *p;
  pld_world_t *world;
  pld_executable_t *x = NULL;
  pld_arg_t args[3];
  test_deadline(60);
  same("after loading");
  p = test_shift_finished(4);
  world = test_world(2, 20000000);
  same("with a world");
  CHECK_OK(pld_compile(p, world, NULL, &x));
  args[0] = pld_arg_tensor(in, PLD_DTYPE_F32, PLD_DIMS(2, 1, 4));
  args[1] = pld_arg_tensor(out, PLD_DTYPE_F32, PLD_DIMS(2, 1, 4));
  args[2] = pld_arg_float(1);
  CHECK_OK(pld_launch(x, args, 3));
  same("after a launch");
  CHECK(pld_launch(x, args, 1) == PLD_ERR_INVALID_ARGUMENT);
  CHECK_OK(pld_world_abort(world, 1));
  CHECK(pld_launch(x, args, 3) == PLD_ERR_ABORTED);
  same("after errors");
  pld_executable_destroy(x);
  pld_world_destroy(world);
  pld_program_destroy(p);
  same("at the end");
  return 0;
}
