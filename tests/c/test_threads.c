/* Threads: errors are per thread, worlds are independent, one world is never used twice at a time. */
#include "pld_test.h"

#include <pthread.h>

enum { COLUMNS = 16, LAUNCHES = 300 };

static void start(pthread_t *thread, void *(*run)(void *), void *argument) {
  CHECK(pthread_create(thread, NULL, run, argument) == 0);
}

static void join(pthread_t thread) { CHECK(pthread_join(thread, NULL) == 0); }

/* A world, a program and its launches for this thread alone. */
static void *own_world(void *argument) {
  int seed = *(int *)argument, i, c;
  uint32_t nranks = (uint32_t)(seed % 3 + 1), r;
  pld_world_t *world = test_world(nranks, 20000000);
  pld_program_t *p = test_shift_finished(COLUMNS);
  pld_executable_t *x = NULL;
  float in[3][COLUMNS], out[3][COLUMNS];
  pld_arg_t args[3];
  CHECK_OK(pld_compile(p, world, NULL, &x));
  args[0] = pld_arg_tensor(in, PLD_DTYPE_F32, PLD_DIMS(nranks, 1, COLUMNS));
  args[1] = pld_arg_tensor(out, PLD_DTYPE_F32, PLD_DIMS(nranks, 1, COLUMNS));
  args[2] = pld_arg_float(1);
  for (i = 0; i < LAUNCHES; i++) {
    for (r = 0; r < nranks; r++)
      for (c = 0; c < COLUMNS; c++) in[r][c] = (float)(seed * 10000 + i * 100 + (int)r * 20 + c);
    CHECK_OK(pld_launch(x, args, 3));
    for (r = 0; r < nranks; r++) CHECK(memcmp(out[r], in[(r + nranks - 1) % nranks], sizeof out[r]) == 0);
  }
  pld_executable_destroy(x);
  pld_program_destroy(p);
  pld_world_destroy(world);
  return NULL;
}

struct shared {
  pld_executable_t *x;
  int done;
};

/* Launches of one world by several threads: each succeeds or is told that the world is busy. */
static void *one_world(void *argument) {
  struct shared *shared = (struct shared *)argument;
  float in[2][COLUMNS], out[2][COLUMNS];
  pld_arg_t args[3];
  int i, c;
  for (c = 0; c < COLUMNS; c++) {
    in[0][c] = (float)c;
    in[1][c] = (float)(100 + c);
  }
  args[0] = pld_arg_tensor(in, PLD_DTYPE_F32, PLD_DIMS(2, 1, COLUMNS));
  args[1] = pld_arg_tensor(out, PLD_DTYPE_F32, PLD_DIMS(2, 1, COLUMNS));
  args[2] = pld_arg_float(1);
  for (i = 0; i < LAUNCHES; i++) {
    pld_status_t status;
    memset(out, 0xff, sizeof out);
    status = pld_launch(shared->x, args, 3);
    if (status == PLD_ERR_BUSY) continue;
    CHECK_STATUS(PLD_OK, status);
    CHECK(memcmp(out[0], in[1], sizeof in[1]) == 0 && memcmp(out[1], in[0], sizeof in[0]) == 0);
    __atomic_add_fetch(&shared->done, 1, __ATOMIC_RELAXED);
  }
  return NULL;
}

/* A finished program is used by several threads at once. */
static int32_t count(const char *text, size_t size, void *user_data) {
  (void)text;
  *(size_t *)user_data += size;
  return 0;
}

static void *print(void *argument) {
  size_t size = 0, first = 0;
  int i;
  CHECK_OK(pld_program_print((const pld_program_t *)argument, count, &first));
  for (i = 0; i < 50; i++) {
    size = 0;
    CHECK_OK(pld_program_print((const pld_program_t *)argument, count, &size));
    CHECK(size == first && size > 100);
  }
  return NULL;
}

static void *own_error(void *argument) {
  char message[64];
  (void)argument;
  CHECK(pld_last_error(message, sizeof message) == 0);
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_world_status(NULL));
  return NULL;
}

static void *abort_soon(void *argument) {
  usleep(20000);
  CHECK_OK(pld_world_abort((pld_world_t *)argument, 5));
  return NULL;
}

int main(void) {
  pthread_t threads[4];
  int seeds[4] = {1, 2, 3, 4}, i;
  struct shared shared = {NULL, 0};
  pld_world_t *world;
  pld_program_t *p;
  test_deadline(120);

  for (i = 0; i < 4; i++) start(&threads[i], own_world, &seeds[i]);
  for (i = 0; i < 4; i++) join(threads[i]);

  world = test_world(2, 20000000);
  p = test_shift_finished(COLUMNS);
  CHECK_OK(pld_compile(p, world, NULL, &shared.x));
  for (i = 0; i < 4; i++) start(&threads[i], one_world, &shared);
  for (i = 0; i < 4; i++) join(threads[i]);
  CHECK(shared.done >= LAUNCHES / 4);
  pld_executable_destroy(shared.x);

  for (i = 0; i < 4; i++) start(&threads[i], print, p);
  for (i = 0; i < 4; i++) join(threads[i]);
  pld_program_destroy(p);

  CHECK(pld_program_create(NULL) == NULL);
  start(&threads[0], own_error, NULL);
  join(threads[0]);
  CHECK_ERROR("name is NULL");

  /* Abort from another thread ends a launch that would take a minute. */
  {
    static const char text[] =
        "program stuck\n"
        "entry e(sig: window[1] i32) {\n"
        "  at t {\n"
        "    notify sig[0] @rank(sig) += 1\n"
        "    wait sig[0] >= 2\n"
        "  }\n"
        "}\n"
        "host () {\n"
        "  buf = alloc_window [1] i32\n"
        "  ranks r in 0..world {\n"
        "    sig = window buf [1] i32\n"
        "    dispatch e(sig) device r\n"
        "  }\n"
        "}\n";
    pld_executable_t *x = NULL;
    pld_world_destroy(world);
    world = test_world(2, 60000000);
    CHECK_OK(pld_program_parse(text, strlen(text), NULL, test_print_diagnostic, NULL, &p));
    CHECK_OK(pld_compile(p, world, NULL, &x));
    start(&threads[0], abort_soon, world);
    CHECK_STATUS(PLD_ERR_ABORTED, pld_launch(x, NULL, 0));
    join(threads[0]);
    pld_executable_destroy(x);
    pld_program_destroy(p);
  }
  pld_world_destroy(world);
  return 0;
}
