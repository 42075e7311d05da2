/* Ranks that are cards: options and errors without a CANN, and with one - the simulated one, where ASCEND_HOME_PATH names
 * it - a launch on two cards that this process drives. */
#include "pld_test.h"

static const char *const SUM =
    "program sum\n"
    "entry e(x: tensor[1, 8] i32 in, y: tensor[8] i32 out, data: window[world, 8] i32, arrived: window[1] i32, me: i32) {\n"
    "  at e {\n"
    "    for peer in 0..world {\n"
    "      put data[me, 0] @peer <- x[0, 0] [1, 8]\n"
    "      notify arrived[0] @peer += 1\n"
    "    }\n"
    "    wait arrived[0] >= world\n"
    "    for i in 0..8 {\n"
    "      total = var i32 = 0\n"
    "      for src in 0..world { total = total + data[src, i] }\n"
    "      y[i] = total\n"
    "    }\n"
    "  }\n"
    "}\n"
    "host (xs: tensor[world, 1, 8] i32 in, ys: tensor[world, 8] i32 out) {\n"
    "  data_buf = alloc_window [world, 8] i32\n"
    "  arrived_buf = alloc_window [1] i32\n"
    "  ranks r in 0..world {\n"
    "    data = window data_buf [world, 8] i32\n"
    "    arrived = window arrived_buf [1] i32\n"
    "    dispatch e(xs[r], ys[r], data, arrived, r) device r\n"
    "  }\n"
    "}\n";

static pld_status_t create(pld_transport_t transport, const int32_t *devices, uint32_t ndevices, pld_world_t **world) {
  pld_world_options_t options;
  CHECK_OK(pld_world_options_init(&options, sizeof options));
  options.transport = transport;
  options.nranks = 2;
  options.devices = devices;
  options.ndevices = ndevices;
  return pld_world_create(&options, world);
}

static void test_options(void) {
  const int32_t devices[] = {0, 1, 2};
  pld_world_t *world = NULL;
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, create(PLD_TRANSPORT_THREAD, devices, 2, &world));
  CHECK_ERROR("PLD_TRANSPORT_HCCL");
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, create(PLD_TRANSPORT_HCCL, NULL, 2, &world));
  CHECK_ERROR("ndevices is 2");
  CHECK(world == NULL);
}

static void test_without_cann(void) {
  const char *const home = getenv("ASCEND_HOME_PATH");
  char *const kept = home ? strcpy((char *)malloc(strlen(home) + 1), home) : NULL;
  pld_world_t *world = NULL;
  setenv("ASCEND_HOME_PATH", "/nowhere", 1);
  CHECK_STATUS(PLD_ERR_UNAVAILABLE, create(PLD_TRANSPORT_HCCL, NULL, 0, &world));
  CHECK_ERROR("/nowhere");
  CHECK(world == NULL);
  if (kept)
    setenv("ASCEND_HOME_PATH", kept, 1);
  else
    unsetenv("ASCEND_HOME_PATH");
  free(kept);
}

static void test_no_streams(void) {
  pld_world_t *world = NULL;
  pld_program_t *p = NULL;
  pld_executable_t *x = NULL;
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_launch_on(NULL, NULL, 0, NULL));
  CHECK_OK(create(PLD_TRANSPORT_THREAD, NULL, 0, &world));
  CHECK_OK(pld_program_parse("program nothing\nhost () {\n}\n", 27, "nothing.pld", NULL, NULL, &p));
  CHECK_OK(pld_compile(p, world, NULL, &x));
  CHECK_STATUS(PLD_ERR_UNSUPPORTED, pld_launch_on(x, NULL, 0, NULL));
  CHECK_ERROR("no cards");
  pld_executable_destroy(x);
  pld_program_destroy(p);
  pld_world_destroy(world);
}

static void test_launch(void) {
  static const int32_t devices[] = {3, 1};
  pld_world_t *world = NULL;
  pld_program_t *p = NULL;
  pld_executable_t *x = NULL;
  pld_resident_t *in = NULL, *out = NULL;
  pld_arg_t args[2];
  int32_t numbers[8];
  uint32_t rank, launch;
  int i;
  CHECK_OK(create(PLD_TRANSPORT_HCCL, devices, 2, &world));
  CHECK_OK(pld_program_parse(SUM, strlen(SUM), "sum.pld", test_print_diagnostic, NULL, &p));
  CHECK_OK(pld_compile(p, world, NULL, &x));
  CHECK_OK(pld_resident_create_stacked(world, PLD_DTYPE_I32, PLD_DIMS(1, 8), &in));
  CHECK_OK(pld_resident_create_stacked(world, PLD_DTYPE_I32, PLD_DIMS(8), &out));
  args[0] = pld_arg_resident(in);
  args[1] = pld_arg_resident(out);
  for (launch = 0; launch < 3; launch++) {
    for (rank = 0; rank < 2; rank++) {
      for (i = 0; i < 8; i++) numbers[i] = (int32_t)(1000 * launch + 100 * rank) + i;
      CHECK_OK(pld_resident_copy_in(in, rank, numbers, sizeof numbers));
    }
    CHECK_OK(pld_launch(x, args, 2));
    for (rank = 0; rank < 2; rank++) {
      CHECK_OK(pld_resident_copy_out(out, rank, numbers, sizeof numbers));
      for (i = 0; i < 8; i++) CHECK(numbers[i] == (int32_t)(2000 * launch + 100) + 2 * i);
    }
  }
  args[0] = pld_arg_int(1);
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_launch(x, args, 2));
  args[0] = pld_arg_tensor(numbers, PLD_DTYPE_I32, PLD_DIMS(2, 1, 8));
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_launch(x, args, 2));
  CHECK_ERROR("lie on 2 cards");
  pld_resident_destroy(in);
  pld_resident_destroy(out);
  pld_executable_destroy(x);
  pld_program_destroy(p);
  pld_world_destroy(world);
}

int main(void) {
  test_deadline(120);
  test_options();
  test_without_cann();
  test_no_streams();
  if (getenv("ASCEND_HOME_PATH") != NULL) test_launch();
  return 0;
}
