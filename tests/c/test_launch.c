/* Launches: results, many of them, programs and worlds that go first, persistent windows, run-time errors. */
#include "pld_test.h"

enum { COLUMNS = 48, MOST_RANKS = 8 };

static float value(uint32_t launch, uint32_t rank, int column) {
  return (float)(launch * 100000 + rank * 1000 + (uint32_t)column);
}

static void shift(uint32_t nranks, uint32_t launches, int persistent) {
  float in[MOST_RANKS][1][COLUMNS], out[MOST_RANKS][1][COLUMNS];
  pld_program_t *p = test_shift_finished(COLUMNS);
  pld_world_t *world = test_world(nranks, 20000000);
  pld_compile_options_t options;
  pld_executable_t *x = NULL;
  pld_arg_t args[3];
  uint32_t launch, r, source;
  int c;
  CHECK_OK(pld_compile_options_init(&options, sizeof options));
  options.persistent = (uint32_t)persistent;
  CHECK_OK(pld_compile(p, world, &options, &x));
  pld_program_destroy(p);
  args[0] = pld_arg_tensor(in, PLD_DTYPE_F32, PLD_DIMS(nranks, 1, COLUMNS));
  args[1] = pld_arg_tensor(out, PLD_DTYPE_F32, PLD_DIMS(nranks, 1, COLUMNS));
  for (launch = 0; launch < launches; launch++) {
    float factor = (float)(launch % 3 + 1);
    args[2] = pld_arg_float(factor);
    memset(out, 0xff, sizeof out);
    for (r = 0; r < nranks; r++)
      for (c = 0; c < COLUMNS; c++) in[r][0][c] = value(launch, r, c);
    if (persistent && launch > 0) CHECK_OK(pld_executable_reset(x));
    CHECK_OK(pld_launch(x, args, 3));
    for (r = 0; r < nranks; r++) {
      source = (r + nranks - 1) % nranks;
      for (c = 0; c < COLUMNS; c++) CHECK(out[r][0][c] == value(launch, source, c) * factor);
    }
  }
  if (!persistent) CHECK_STATUS(PLD_ERR_INVALID_STATE, pld_executable_reset(x));
  pld_executable_destroy(x);
  pld_world_destroy(world);
}

/* A wait that is not satisfied: the launch ends with a report, and the next one runs as if nothing had been. */
static void timeout(void) {
  static const char text[] =
      "program stuck\n"
      "entry e(sig: window[1, 1] i32, expected: i32) {\n"
      "  at listen {\n"
      "    notify sig[0, 0] @rank(sig) += 1\n"
      "    wait sig[0, 0] == expected\n"
      "  }\n"
      "}\n"
      "host (expected: i32) {\n"
      "  buf = alloc_window [1, 1] i32\n"
      "  ranks r in 0..world {\n"
      "    sig = window buf [1, 1] i32\n"
      "    dispatch e(sig, expected) device r\n"
      "  }\n"
      "}\n";
  pld_world_t *world = test_world(2, 200000);
  pld_program_t *p = NULL;
  pld_executable_t *x = NULL;
  pld_arg_t well = pld_arg_int(1), never = pld_arg_int(7);
  int i, k;
  CHECK_OK(pld_program_parse(text, strlen(text), "stuck.pld", NULL, NULL, &p));
  CHECK_OK(pld_compile(p, world, NULL, &x));
  for (i = 0; i < 3; i++) {
    for (k = 0; k < 20; k++) CHECK_OK(pld_launch(x, &well, 1));
    CHECK_STATUS(PLD_ERR_TIMEOUT, pld_launch(x, &never, 1));
    CHECK_ERROR("sig[0, 0] == 7");
    CHECK_ERROR("is 1");
    CHECK_ERROR("stuck.pld:5");
    CHECK_OK(pld_world_status(world));
  }
  CHECK_OK(pld_launch(x, &well, 1));
  pld_executable_destroy(x);
  pld_world_destroy(world);
  pld_program_destroy(p);
}

/* Offsets that are wrong when the program runs: nothing is written, every rank is told. */
static void out_of_bounds(void) {
  pld_program_t *p = pld_program_create("outside");
  pld_entry_t e = pld_entry_begin(p, "e");
  pld_tensor_t y = pld_param_tensor(p, "y", PLD_DTYPE_I32, PLD_DIMS(4), PLD_INOUT), ys;
  pld_scalar_t at = pld_param_scalar(p, "where", PLD_DTYPE_I32), host_at, r;
  pld_world_t *world = test_world(2, 20000000);
  pld_executable_t *x = NULL;
  int32_t data[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
  pld_arg_t args[2];
  char line[32];
  pld_at_begin(p, "t", NULL);
  sprintf(line, "test_launch.c:%d", __LINE__ + 1);
  pld_write(p, y, PLD_AT(at), PLD_INT(99));
  pld_task_end(p);
  pld_entry_end(p);
  ys = pld_host_tensor(p, "ys", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, 4), PLD_INOUT);
  host_at = pld_host_scalar(p, "where", PLD_DTYPE_I32);
  r = pld_ranks_begin(p, PLD_INT(0), pld_world_size(p));
  pld_dispatch(p, e, r, PLD_ARGS(pld_of_tensor(pld_slice_rank(p, ys, r)), pld_of_scalar(host_at)));
  pld_ranks_end(p);
  CHECK_OK(pld_program_finish(p, test_print_diagnostic, NULL));
  CHECK_OK(pld_compile(p, world, NULL, &x));
  args[0] = pld_arg_tensor(data, PLD_DTYPE_I32, PLD_DIMS(2, 4));
  args[1] = pld_arg_int(3);
  CHECK_OK(pld_launch(x, args, 2));
  CHECK(data[0][3] == 99 && data[1][3] == 99 && data[1][0] == 5);
  args[1] = pld_arg_int(4);
  CHECK_STATUS(PLD_ERR_OUT_OF_BOUNDS, pld_launch(x, args, 2));
  CHECK_ERROR(line);
  CHECK(data[1][0] == 5);
  args[1] = pld_arg_int(2);
  CHECK_OK(pld_launch(x, args, 2));
  CHECK(data[0][2] == 99 && data[1][2] == 99);
  pld_executable_destroy(x);
  pld_world_destroy(world);
  pld_program_destroy(p);
}

/* Objects keep what they need, so any order of destroying is right. */
static void any_order(void) {
  pld_program_t *p = test_shift_finished(8);
  pld_world_t *world = test_world(2, 0);
  pld_executable_t *x = NULL, *y = NULL;
  float in[2][1][8] = {{{0}}}, out[2][1][8];
  pld_arg_t args[3];
  args[0] = pld_arg_tensor(in, PLD_DTYPE_F32, PLD_DIMS(2, 1, 8));
  args[1] = pld_arg_tensor(out, PLD_DTYPE_F32, PLD_DIMS(2, 1, 8));
  args[2] = pld_arg_float(1);
  CHECK_OK(pld_compile(p, world, NULL, &x));
  CHECK_OK(pld_compile(p, world, NULL, &y));
  CHECK_OK(pld_launch(y, args, 3));
  CHECK_OK(pld_launch(x, args, 3));
  pld_world_destroy(world);
  CHECK(pld_launch(x, args, 3) != PLD_OK);
  pld_executable_destroy(y);
  pld_program_destroy(p);
  pld_executable_destroy(x);
}

static void not_finished(void) {
  pld_program_t *p = test_shift(8), *bad = pld_program_create("7up");
  pld_world_t *world = test_world(2, 0);
  pld_executable_t *x = NULL;
  CHECK_STATUS(PLD_ERR_INVALID_STATE, pld_compile(p, world, NULL, &x));
  CHECK_ERROR("not finished");
  CHECK_STATUS(PLD_ERR_VERIFY, pld_program_finish(bad, NULL, NULL));
  CHECK_STATUS(PLD_ERR_INVALID_STATE, pld_compile(bad, world, NULL, &x));
  CHECK(x == NULL);
  pld_program_destroy(p);
  pld_program_destroy(bad);
  pld_world_destroy(world);
}

/* Times are those of the last launch, and of ranks that are here. */
static void timed(void) {
  float in[2][1][8] = {{{0}}}, out[2][1][8];
  pld_program_t *p = test_shift_finished(8);
  pld_world_t *world = test_world(2, 0);
  pld_compile_options_t options;
  pld_executable_t *x = NULL, *untimed = NULL;
  pld_launch_time_t time = {1, 1}, last[2] = {{0, 0}, {0, 0}};
  pld_arg_t args[3];
  uint32_t launch, r;
  CHECK_OK(pld_compile_options_init(&options, sizeof options));
  options.timed = 1;
  CHECK_OK(pld_compile(p, world, &options, &x));
  CHECK_OK(pld_compile(p, world, NULL, &untimed));
  args[0] = pld_arg_tensor(in, PLD_DTYPE_F32, PLD_DIMS(2, 1, 8));
  args[1] = pld_arg_tensor(out, PLD_DTYPE_F32, PLD_DIMS(2, 1, 8));
  args[2] = pld_arg_float(1);
  CHECK_OK(pld_executable_time(x, 1, &time));
  CHECK(time.begin_ns == 0 && time.end_ns == 0);
  for (launch = 0; launch < 10; launch++) {
    CHECK_OK(pld_launch(x, args, 3));
    for (r = 0; r < 2; r++) {
      CHECK_OK(pld_executable_time(x, r, &time));
      CHECK(last[r].end_ns <= time.begin_ns && time.begin_ns < time.end_ns);
      last[r] = time;
    }
    /* Each waits for the other's row. */
    CHECK(last[0].begin_ns < last[1].end_ns && last[1].begin_ns < last[0].end_ns);
  }
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_executable_time(x, 2, &time));
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_executable_time(x, 0, NULL));
  CHECK_STATUS(PLD_ERR_INVALID_STATE, pld_executable_time(untimed, 0, &time));
  CHECK_ERROR("'shift'");
  pld_executable_destroy(x);
  pld_executable_destroy(untimed);
  pld_program_destroy(p);
  pld_world_destroy(world);
}

int main(void) {
  test_deadline(120);
  shift(1, 5, 0);
  shift(2, 200, 0);
  shift(3, 50, 0);
  shift(MOST_RANKS, 20, 0);
  shift(2, 50, 1);
  timeout();
  out_of_bounds();
  any_order();
  not_finished();
  timed();
  return 0;
}
