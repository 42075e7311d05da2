/* A world of processes: the engine's own exchange, and file: as bootstrap. */
#include "pld_test.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { COLUMNS = 32, LAUNCHES = 50, MOST_RANKS = 4 };

/* An all-gather over sockets through rank 0, as an engine might have one. */
struct exchange {
  uint32_t rank, nranks;
  int sockets[MOST_RANKS];
};

static int transfer(int fd, void *bytes, size_t size, int sending) {
  char *at = (char *)bytes;
  while (size > 0) {
    ssize_t n = sending ? write(fd, at, size) : read(fd, at, size);
    if (n <= 0) return -1;
    at += n;
    size -= (size_t)n;
  }
  return 0;
}

static int32_t all_gather(const void *mine, void *all, size_t size, void *user_data) {
  struct exchange *e = (struct exchange *)user_data;
  char *parts = (char *)all;
  uint32_t r;
  memcpy(parts + e->rank * size, mine, size);
  if (e->rank > 0) {
    if (transfer(e->sockets[0], parts + e->rank * size, size, 1) != 0) return 1;
    return transfer(e->sockets[0], parts, size * e->nranks, 0) != 0;
  }
  for (r = 1; r < e->nranks; r++)
    if (transfer(e->sockets[r], parts + r * size, size, 0) != 0) return 2;
  for (r = 1; r < e->nranks; r++)
    if (transfer(e->sockets[r], parts, size * e->nranks, 1) != 0) return 3;
  return 0;
}

/* What each process does: launches, with its own slice of the tensors. */
static void rank_main(const pld_world_options_t *options) {
  uint32_t rank = options->rank, nranks = options->nranks, source = (rank + nranks - 1) % nranks;
  float in[COLUMNS], out[COLUMNS];
  pld_program_t *p = test_shift_finished(COLUMNS);
  pld_world_t *world = NULL;
  pld_executable_t *x = NULL;
  pld_arg_t args[3];
  int i, c;
  CHECK_OK(pld_world_join(options, &world));
  CHECK(pld_world_nranks(world) == nranks && pld_world_rank(world) == (int32_t)rank);
  CHECK_OK(pld_compile(p, world, NULL, &x));
  args[0] = pld_arg_tensor(in, PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS));
  args[1] = pld_arg_tensor(out, PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS));
  args[2] = pld_arg_float(2);
  for (i = 0; i < LAUNCHES; i++) {
    for (c = 0; c < COLUMNS; c++) in[c] = (float)(i * 10000 + (int)rank * 100 + c);
    memset(out, 0xff, sizeof out);
    if (i % 2 == 0) {
      CHECK_OK(pld_launch(x, args, 3));
    } else {
      pld_run_t *run = NULL;
      CHECK_OK(pld_submit(x, args, 3, &run));
      CHECK_OK(pld_run_wait(run, -1));
      pld_run_destroy(run);
    }
    for (c = 0; c < COLUMNS; c++) CHECK(out[c] == 2 * (float)(i * 10000 + (int)source * 100 + c));
  }
  /* A process passes its own slice only. */
  args[0] = pld_arg_tensor(in, PLD_DTYPE_F32, PLD_DIMS(nranks, 1, COLUMNS));
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_launch(x, args, 3));
  pld_executable_destroy(x);
  pld_world_destroy(world);
  pld_program_destroy(p);
}

static pld_world_options_t rank_options(uint32_t rank, uint32_t nranks) {
  pld_world_options_t options;
  CHECK_OK(pld_world_options_init(&options, sizeof options));
  options.nranks = nranks;
  options.rank = rank;
  options.timeout_us = 20000000;
  return options;
}

static void wait_for(uint32_t nranks) {
  uint32_t r;
  for (r = 0; r < nranks; r++) {
    int state = 0;
    CHECK(wait(&state) > 0);
    CHECK(WIFEXITED(state) && WEXITSTATUS(state) == 0);
  }
}

static void by_exchange(uint32_t nranks) {
  int pairs[MOST_RANKS][2];
  uint32_t r, other;
  for (r = 1; r < nranks; r++) CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[r]) == 0);
  for (r = 0; r < nranks; r++) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      pld_world_options_t options = rank_options(r, nranks);
      struct exchange e;
      test_deadline(60);
      memset(&e, 0, sizeof e);
      e.rank = r;
      e.nranks = nranks;
      for (other = 1; other < nranks; other++) e.sockets[r == 0 ? other : 0] = pairs[r == 0 ? other : r][r == 0 ? 0 : 1];
      options.exchange = all_gather;
      options.exchange_user_data = &e;
      rank_main(&options);
      _exit(0);
    }
  }
  for (r = 1; r < nranks; r++) {
    close(pairs[r][0]);
    close(pairs[r][1]);
  }
  wait_for(nranks);
}

static void by_file(uint32_t nranks) {
  char folder[] = "/tmp/pld-test-XXXXXX", bootstrap[64];
  uint32_t r;
  CHECK(mkdtemp(folder) != NULL);
  sprintf(bootstrap, "file:%s/rendezvous", folder);
  for (r = 0; r < nranks; r++) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      pld_world_options_t options = rank_options(r, nranks);
      test_deadline(60);
      options.bootstrap = bootstrap;
      rank_main(&options);
      _exit(0);
    }
  }
  wait_for(nranks);
  CHECK(rmdir(folder) == 0);
}

int main(void) {
  test_deadline(120);
  by_exchange(1);
  by_exchange(2);
  by_exchange(MOST_RANKS);
  by_file(2);
  by_file(3);
  return 0;
}
