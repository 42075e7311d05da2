/* Runs: submitted, waited for, asked, ended by others. */
#include "pld_test.h"

/* Both ranks wait for a signal that rank 1 gives only where its argument is not 0. */
static const char gate[] =
    "program gate\n"
    "entry e(go: tensor[1] i32 in, sig: window[1, 1] i32, me: i32) {\n"
    "  at t {\n"
    "    g = go[0]\n"
    "    if g != 0 and me == 1 { for peer in 0..world { notify sig[0, 0] @peer += 1 } }\n"
    "    wait sig[0, 0] >= 1\n"
    "  }\n"
    "}\n"
    "host (go: tensor[1] i32 in) {\n"
    "  buf = alloc_window [1, 1] i32\n"
    "  ranks r in 0..world {\n"
    "    sig = window buf [1, 1] i32\n"
    "    dispatch e(go, sig, r) device r\n"
    "  }\n"
    "}\n";

static int32_t go = 1, stay = 0;

static pld_arg_t tensor(int32_t *flag) { return pld_arg_tensor(flag, PLD_DTYPE_I32, PLD_DIMS(1)); }

static pld_executable_t *compiled(pld_world_t *world) {
  pld_program_t *p = NULL;
  pld_executable_t *x = NULL;
  CHECK_OK(pld_program_parse(gate, strlen(gate), "gate.pld", test_print_diagnostic, NULL, &p));
  CHECK_OK(pld_compile(p, world, NULL, &x));
  pld_program_destroy(p);
  return x;
}

static void many(void) {
  pld_world_t *world = test_world(2, 20000000);
  pld_executable_t *x = compiled(world);
  int i;
  for (i = 0; i < 100; i++) {
    pld_run_t *run = NULL;
    pld_arg_t arg = tensor(&go);
    CHECK_OK(pld_submit(x, &arg, 1, &run));
    CHECK(run != NULL);
    memset(&arg, 0, sizeof arg);
    CHECK_OK(pld_run_wait(run, -1));
    CHECK(pld_run_done(run) == 1);
    CHECK_OK(pld_run_wait(run, 0));
    pld_run_destroy(run);
  }
  pld_executable_destroy(x);
  pld_world_destroy(world);
}

/* Runs begin in the order of submission, and a launch comes after them. */
static void in_order(void) {
  static const char text[] =
      "program twice\n"
      "entry e(y: tensor[1] i32 inout) { at t { y[0] = y[0] * 2 + 1 } }\n"
      "host (ys: tensor[world, 1] i32 inout) { ranks r in 0..world { dispatch e(ys[r]) device r } }\n";
  pld_world_t *world = test_world(2, 20000000);
  pld_program_t *p = NULL;
  pld_executable_t *x = NULL;
  pld_run_t *runs[10];
  int32_t ys[2] = {0, 100};
  pld_arg_t arg = pld_arg_tensor(ys, PLD_DTYPE_I32, PLD_DIMS(2, 1));
  size_t i;
  CHECK_OK(pld_program_parse(text, strlen(text), "twice.pld", test_print_diagnostic, NULL, &p));
  CHECK_OK(pld_compile(p, world, NULL, &x));
  for (i = 0; i < COUNT(runs); i++) CHECK_OK(pld_submit(x, &arg, 1, &runs[i]));
  CHECK_OK(pld_launch(x, &arg, 1));
  CHECK(ys[0] == (1 << 11) - 1 && ys[1] == 101 * (1 << 11) - 1);
  for (i = 0; i < COUNT(runs); i++) {
    CHECK_OK(pld_run_wait(runs[i], -1));
    pld_run_destroy(runs[i]);
  }
  pld_executable_destroy(x);
  pld_program_destroy(p);
  pld_world_destroy(world);
}

/* While a run is under way it is not done, and abort ends it. */
static void aborted(void) {
  pld_world_t *world = test_world(2, 60000000);
  pld_executable_t *x = compiled(world);
  pld_arg_t arg = tensor(&stay);
  pld_run_t *run = NULL;
  CHECK_OK(pld_submit(x, &arg, 1, &run));
  CHECK_STATUS(PLD_ERR_TIMEOUT, pld_run_wait(run, 1000));
  CHECK(pld_run_done(run) == 0);
  CHECK_OK(pld_world_abort(world, 4711));
  CHECK_STATUS(PLD_ERR_ABORTED, pld_run_wait(run, -1));
  CHECK_ERROR("4711");
  CHECK(pld_run_done(run) == 1);
  CHECK_STATUS(PLD_ERR_ABORTED, pld_launch(x, &arg, 1));
  pld_run_destroy(run);
  pld_executable_destroy(x);
  pld_world_destroy(world);
}

/* A run outlives its executable and world. */
static void outlives(void) {
  pld_world_t *world = test_world(2, 20000000);
  pld_executable_t *x = compiled(world);
  pld_arg_t arg = tensor(&go);
  pld_run_t *run = NULL;
  CHECK_OK(pld_submit(x, &arg, 1, &run));
  pld_executable_destroy(x);
  CHECK_OK(pld_run_wait(run, -1));
  pld_world_destroy(world);
  pld_run_destroy(run);

  /* Destroyed while it waits for nothing: destroying the run waits for the time-out. */
  world = test_world(2, 100000);
  x = compiled(world);
  arg = tensor(&stay);
  CHECK_OK(pld_submit(x, &arg, 1, &run));
  pld_run_destroy(run);
  CHECK_OK(pld_world_status(world));
  pld_executable_destroy(x);
  pld_world_destroy(world);
}

/* Each run has its own end, and one that fails does nothing to the others; submitting waits while two have not ended. */
static void own_ends(void) {
  pld_world_options_t options;
  pld_world_t *world = NULL;
  pld_executable_t *x;
  pld_run_t *runs[9];
  size_t i;
  CHECK_OK(pld_world_options_init(&options, sizeof options));
  options.nranks = 2;
  options.timeout_us = 100000;
  options.max_runs = 2;
  CHECK_OK(pld_world_create(&options, &world));
  x = compiled(world);
  for (i = 0; i < COUNT(runs); i++) {
    pld_arg_t arg = tensor(i % 3 == 1 ? &stay : &go);
    CHECK_OK(pld_submit(x, &arg, 1, &runs[i]));
  }
  for (i = 0; i < COUNT(runs); i++) {
    if (i % 3 == 1) {
      CHECK_STATUS(PLD_ERR_TIMEOUT, pld_run_wait(runs[i], -1));
      CHECK_ERROR("sig[0, 0] >= 1");
    } else {
      CHECK_OK(pld_run_wait(runs[i], -1));
    }
    pld_run_destroy(runs[i]);
  }
  pld_executable_destroy(x);
  pld_world_destroy(world);
}

int main(void) {
  test_deadline(60);
  many();
  in_order();
  aborted();
  outlives();
  own_ends();
  CHECK(pld_run_done(NULL) == 0);
  return 0;
}
