/* Ranks of several hosts: processes of this one over OpenUCX, all of them, or as two hosts that PLD_HOST names; and what is
 * refused. Without OpenUCX only the latter, and that it is missed. */
#include "printed.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { COLUMNS = 1000, LAUNCHES = 6, MOST_RANKS = 4, SKIPPED = 77 };

static const char *const SUM =
    "program sum\n"
    "entry e(x: tensor[1000] f32 in, y: tensor[1000] f32 out, data: window[1000] f32) {\n"
    "  at e {\n"
    "    for turn in 0..3 {\n"
    "      put data @rank(data) <- x\n"
    "      allreduce sum data mode hierarchical\n"
    "      barrier of data\n"
    "    }\n"
    "    get y <- data @rank(data)\n"
    "  }\n"
    "}\n"
    "host (xs: tensor[world, 1000] f32 in, ys: tensor[world, 1000] f32 out) {\n"
    "  data_buf = alloc_window [1000] f32\n"
    "  ranks r in 0..world {\n"
    "    data = window data_buf [1000] f32\n"
    "    dispatch e(xs[r], ys[r], data) device r\n"
    "  }\n"
    "}\n";

/* One world. */
struct job {
  uint32_t nranks;
  pld_transport_t transport;
  /* Ranks of each host that is played; 0: none is. */
  uint32_t ranks_per_host;
  const char *bootstrap;
};

static pld_world_options_t rank_options(const struct job *job, uint32_t rank) {
  pld_world_options_t options;
  CHECK_OK(pld_world_options_init(&options, sizeof options));
  CHECK(options.peer_timeout_us == 0);
  options.transport = job->transport;
  options.nranks = job->nranks;
  options.rank = rank;
  options.timeout_us = 20000000;
  options.bootstrap = job->bootstrap;
  return options;
}

static void shift(const struct job *job, uint32_t rank, pld_world_t *world) {
  const uint32_t source = (rank + job->nranks - 1) % job->nranks;
  static float in[COLUMNS], out[COLUMNS];
  pld_program_t *p = test_shift_finished(COLUMNS);
  pld_executable_t *x = NULL;
  pld_arg_t args[3];
  int i, c;
  CHECK_OK(pld_compile(p, world, NULL, &x));
  args[0] = pld_arg_tensor(in, PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS));
  args[1] = pld_arg_tensor(out, PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS));
  args[2] = pld_arg_float(2);
  for (i = 0; i < LAUNCHES; i++) {
    for (c = 0; c < COLUMNS; c++) in[c] = (float)(i * 10000 + (int)rank * 1000 + c);
    memset(out, 0xff, sizeof out);
    CHECK_OK(pld_launch(x, args, 3));
    for (c = 0; c < COLUMNS; c++) CHECK(out[c] == 2 * (float)(i * 10000 + (int)source * 1000 + c));
  }
  pld_executable_destroy(x);
  pld_program_destroy(p);
}

static void sum(const struct job *job, uint32_t rank, pld_world_t *world) {
  static float in[COLUMNS], out[COLUMNS];
  const float ranks = (float)job->nranks;
  pld_program_t *p = NULL;
  pld_executable_t *x = NULL;
  pld_arg_t args[2];
  int c;
  CHECK_OK(pld_program_parse(SUM, strlen(SUM), "sum.pld", test_print_diagnostic, NULL, &p));
  CHECK_OK(pld_compile(p, world, NULL, &x));
  args[0] = pld_arg_tensor(in, PLD_DTYPE_F32, PLD_DIMS(COLUMNS));
  args[1] = pld_arg_tensor(out, PLD_DTYPE_F32, PLD_DIMS(COLUMNS));
  for (c = 0; c < COLUMNS; c++) in[c] = (float)((int)rank * 10 + c);
  CHECK_OK(pld_launch(x, args, 2));
  for (c = 0; c < COLUMNS; c++) CHECK(out[c] == ranks * (ranks - 1) / 2 * 10 + ranks * (float)c);
  pld_executable_destroy(x);
  pld_program_destroy(p);
}

/* What each process does; the last rank dies if it should. */
static void rank_main(const struct job *job, uint32_t rank, int last_dies) {
  pld_world_options_t options = rank_options(job, rank);
  pld_world_t *world = NULL;
  char host[32];
  if (job->ranks_per_host > 0) {
    sprintf(host, "host-%u", (unsigned)(rank / job->ranks_per_host));
    CHECK(setenv("PLD_HOST", host, 1) == 0);
  }
  options.peer_timeout_us = last_dies ? 2000000 : 0;
  CHECK_OK(pld_world_join(&options, &world));
  CHECK(pld_world_nranks(world) == job->nranks && pld_world_rank(world) == (int32_t)rank);
  sum(job, rank, world);
  shift(job, rank, world);
  if (last_dies) {
    pld_program_t *p = test_shift_finished(COLUMNS);
    pld_executable_t *x = NULL;
    static float in[COLUMNS], out[COLUMNS];
    pld_arg_t args[3];
    args[0] = pld_arg_tensor(in, PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS));
    args[1] = pld_arg_tensor(out, PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS));
    args[2] = pld_arg_float(2);
    CHECK_OK(pld_compile(p, world, NULL, &x));
    if (rank == job->nranks - 1) raise(SIGKILL);
    /* The launch itself may not need that rank. */
    while (pld_launch(x, args, 3) == PLD_OK) {}
    CHECK_STATUS(PLD_ERR_PEER_LOST, pld_launch(x, args, 3));
    CHECK_STATUS(PLD_ERR_PEER_LOST, pld_world_status(world));
    pld_executable_destroy(x);
    pld_program_destroy(p);
  }
  pld_world_destroy(world);
}

static void run(const struct job *job, int last_dies) {
  pid_t children[MOST_RANKS];
  uint32_t r;
  for (r = 0; r < job->nranks; r++) {
    children[r] = fork();
    CHECK(children[r] >= 0);
    if (children[r] == 0) {
      test_deadline(60);
      rank_main(job, r, last_dies);
      _exit(0);
    }
  }
  for (r = 0; r < job->nranks; r++) {
    int state = 0;
    CHECK(waitpid(children[r], &state, 0) == children[r]);
    if (last_dies && r == job->nranks - 1)
      CHECK(WIFSIGNALED(state));
    else
      CHECK(WIFEXITED(state) && WEXITSTATUS(state) == 0);
  }
}

/* A port of the loopback that nobody listens at. */
static int free_port(void) {
  struct sockaddr_in at;
  socklen_t size = sizeof at;
  int fd = socket(AF_INET, SOCK_STREAM, 0), port;
  memset(&at, 0, sizeof at);
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0);
  CHECK(getsockname(fd, (struct sockaddr *)&at, &size) == 0);
  port = ntohs(at.sin_port);
  close(fd);
  return port;
}

static void at_address(pld_transport_t transport, uint32_t nranks, uint32_t ranks_per_host, int last_dies) {
  struct job job;
  char bootstrap[64];
  sprintf(bootstrap, "tcp:127.0.0.1:%d", free_port());
  job.nranks = nranks;
  job.transport = transport;
  job.ranks_per_host = ranks_per_host;
  job.bootstrap = bootstrap;
  run(&job, last_dies);
}

static void at_path(pld_transport_t transport, uint32_t nranks, uint32_t ranks_per_host) {
  char folder[] = "/tmp/pld-test-XXXXXX", bootstrap[64];
  struct job job;
  CHECK(mkdtemp(folder) != NULL);
  sprintf(bootstrap, "file:%s/rendezvous", folder);
  job.nranks = nranks;
  job.transport = transport;
  job.ranks_per_host = ranks_per_host;
  job.bootstrap = bootstrap;
  run(&job, 0);
  CHECK(rmdir(folder) == 0);
}

static void refused_to(pld_transport_t transport, uint32_t nranks, const char *bootstrap, const char *why) {
  pld_world_options_t options;
  pld_world_t *world = NULL;
  CHECK_OK(pld_world_options_init(&options, sizeof options));
  options.transport = transport;
  options.nranks = nranks;
  options.timeout_us = 5000000;
  options.bootstrap = bootstrap;
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_world_join(&options, &world));
  CHECK_ERROR(why);
  CHECK(world == NULL);
}

static void refused(void) {
  static const char *const malformed[] = {"tcp:", "tcp:host", "tcp::7", "tcp:host:", "tcp:host:70000", "tcp:::1:7", "tcp:[]:7"};
  static const pld_transport_t made_by_join[] = {PLD_TRANSPORT_UCX, PLD_TRANSPORT_AUTO};
  pld_world_options_t options;
  pld_world_t *world = NULL;
  size_t i;
  for (i = 0; i < COUNT(malformed); i++) {
    refused_to(PLD_TRANSPORT_AUTO, 2, malformed[i], "HOST:PORT");
    CHECK_ERROR(malformed[i]);
  }
  refused_to(PLD_TRANSPORT_AUTO, 2, "udp:host:7", "neither env:, file:PATH nor tcp:HOST:PORT");
  refused_to(PLD_TRANSPORT_SHM, 2, "tcp:host:7", "PLD_TRANSPORT_UCX");
  refused_to(PLD_TRANSPORT_HCCL, 2, "tcp:host:7", "PLD_TRANSPORT_UCX");
  refused_to(PLD_TRANSPORT_THREAD, 2, "tcp:host:7", "pld_world_create");
  refused_to(PLD_TRANSPORT_AUTO, 0, "tcp:host:7", "needs nranks");
  CHECK(unsetenv("PLD_SECRET") == 0 && unsetenv("PLD_SECRET_FILE") == 0);
  refused_to(PLD_TRANSPORT_UCX, 2, "tcp:127.0.0.1:7", "PLD_SECRET");
  CHECK(setenv("PLD_SECRET", "short", 1) == 0);
  refused_to(PLD_TRANSPORT_UCX, 2, "tcp:127.0.0.1:7", "5 bytes");
  for (i = 0; i < COUNT(made_by_join); i++) {
    CHECK_OK(pld_world_options_init(&options, sizeof options));
    options.nranks = 2;
    options.transport = made_by_join[i];
    CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_world_create(&options, &world));
    CHECK_ERROR("pld_world_join");
  }
}

/* A world of one rank needs nobody. */
static void alone(void) {
  struct job job = {1, PLD_TRANSPORT_UCX, 0, "tcp:127.0.0.1:7"};
  run(&job, 0);
}

static int has_ucx(void) {
  struct text *t = (struct text *)calloc(1, sizeof *t);
  int found;
  CHECK(t != NULL);
  CHECK_OK(pld_info(append, t));
  CHECK_CONTAINS(t->bytes, "ucx: ");
  found = strstr(t->bytes, "ucx: available") != NULL;
  free(t);
  return found;
}

static void without_ucx(void) {
  char folder[] = "/tmp/pld-test-XXXXXX", bootstrap[64];
  uint32_t r;
  CHECK(mkdtemp(folder) != NULL);
  sprintf(bootstrap, "file:%s/rendezvous", folder);
  for (r = 0; r < 2; r++) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      struct job job = {2, PLD_TRANSPORT_UCX, 0, NULL};
      pld_world_options_t options;
      pld_world_t *world = NULL;
      job.bootstrap = bootstrap;
      options = rank_options(&job, r);
      CHECK_STATUS(PLD_ERR_UNAVAILABLE, pld_world_join(&options, &world));
      CHECK_ERROR("UCX");
      _exit(0);
    }
  }
  for (r = 0; r < 2; r++) {
    int state = 0;
    CHECK(wait(&state) > 0 && WIFEXITED(state) && WEXITSTATUS(state) == 0);
  }
  CHECK(rmdir(folder) == 0);
}

int main(void) {
  test_deadline(240);
  refused();
  CHECK(setenv("PLD_SECRET", "0123456789abcdef of test_hosts", 1) == 0);
  alone();
  if (!has_ucx()) {
    without_ucx();
    printf("skipped: there is no OpenUCX here\n");
    return SKIPPED;
  }
  at_address(PLD_TRANSPORT_UCX, 2, 0, 0);
  at_address(PLD_TRANSPORT_UCX, 3, 0, 0);
  at_address(PLD_TRANSPORT_AUTO, 4, 2, 0);
  at_address(PLD_TRANSPORT_AUTO, 2, 0, 0);
  at_path(PLD_TRANSPORT_UCX, 2, 0);
  at_path(PLD_TRANSPORT_AUTO, 4, 2);
  at_address(PLD_TRANSPORT_UCX, 2, 0, 1);
  at_address(PLD_TRANSPORT_AUTO, 4, 2, 1);
  return 0;
}
