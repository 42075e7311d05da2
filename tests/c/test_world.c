/* Worlds of threads: made, asked, ended; several at once; the log. */
#include "pld_test.h"

struct log {
  int count;
  uint32_t level;
  char last[512];
};

static void note(uint32_t level, const char *message, void *user_data) {
  struct log *log = (struct log *)user_data;
  log->count++;
  log->level = level;
  strncpy(log->last, message, sizeof log->last - 1);
}

static pld_status_t create(pld_world_options_t options) {
  pld_world_t *world = NULL;
  pld_status_t status = pld_world_create(&options, &world);
  CHECK((status == PLD_OK) == (world != NULL));
  pld_world_destroy(world);
  return status;
}

static pld_status_t join(pld_world_options_t options) {
  pld_world_t *world = NULL;
  pld_status_t status = pld_world_join(&options, &world);
  CHECK((status == PLD_OK) == (world != NULL));
  pld_world_destroy(world);
  return status;
}

static int32_t never(const void *mine, void *all, size_t size, void *user_data) {
  (void)mine;
  (void)all;
  (void)size;
  (void)user_data;
  return 42;
}

static void bad_options(void) {
  pld_world_options_t o, good;
  CHECK_OK(pld_world_options_init(&good, sizeof good));
  good.nranks = 2;
  good.timeout_us = 2000000;

  o = good;
  o.nranks = 0;
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, create(o));
  o = good;
  o.nranks = UINT32_MAX;
  CHECK(create(o) != PLD_OK);
  o = good;
  o.transport = PLD_TRANSPORT_SHM;
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, create(o));
  CHECK_ERROR("pld_world_join");
  o.transport = 99;
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, create(o));
  o = good;
  o.log_level = 3;
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, create(o));

  o = good;
  o.transport = PLD_TRANSPORT_THREAD;
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, join(o));
  CHECK_ERROR("pld_world_create");
  o = good;
  o.bootstrap = "carrier pigeon";
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, join(o));
  CHECK_ERROR("carrier pigeon");
  o.bootstrap = "file:";
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, join(o));
  o.bootstrap = "env:\xff";
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, join(o));
  CHECK_ERROR("UTF-8");
  o = good;
  o.exchange = never;
  CHECK_STATUS(PLD_ERR_IO, join(o));
  CHECK_ERROR("42");
  o.bootstrap = "env:";
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, join(o));
  o.bootstrap = NULL;
  o.nranks = 0;
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, join(o));
  o = good;
  o.rank = 2;
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, join(o));
}

/* One world after another with other sizes, and side by side (C74): nothing is kept. */
static void many_worlds(void) {
  static const uint32_t sizes[] = {1, 2, 4, 1, 3};
  pld_world_t *worlds[COUNT(sizes)];
  size_t i;
  for (i = 0; i < COUNT(sizes); i++) {
    worlds[i] = test_world(sizes[i], 0);
    CHECK(pld_world_nranks(worlds[i]) == sizes[i]);
    CHECK(pld_world_rank(worlds[i]) == -1);
    CHECK_OK(pld_world_status(worlds[i]));
  }
  CHECK_OK(pld_world_abort(worlds[2], 77));
  CHECK_STATUS(PLD_ERR_ABORTED, pld_world_status(worlds[2]));
  CHECK_ERROR("77");
  CHECK_OK(pld_world_status(worlds[1]));
  CHECK_OK(pld_world_status(worlds[3]));
  for (i = 0; i < COUNT(sizes); i++) pld_world_destroy(worlds[i]);
}

static void logging(void) {
  pld_world_options_t o;
  pld_world_t *world = NULL;
  struct log all, errors;
  memset(&all, 0, sizeof all);
  memset(&errors, 0, sizeof errors);
  CHECK_OK(pld_world_options_init(&o, sizeof o));
  o.nranks = 3;
  o.log = note;
  o.log_user_data = &all;
  CHECK_OK(pld_world_create(&o, &world));
  CHECK(all.count == 1 && all.level == PLD_LOG_INFO);
  CHECK_CONTAINS(all.last, "world of 3 threads");
  pld_world_destroy(world);
  CHECK(all.count == 2);

  o.log_level = PLD_LOG_ERROR;
  o.log_user_data = &errors;
  world = NULL;
  CHECK_OK(pld_world_create(&o, &world));
  pld_world_destroy(world);
  CHECK(errors.count == 0);
  o.nranks = 0;
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_world_create(&o, &world));
  CHECK(errors.count == 1 && errors.level == PLD_LOG_ERROR && all.count == 2);
}

int main(void) {
  test_deadline(60);
  bad_options();
  many_worlds();
  logging();
  CHECK(pld_world_nranks(NULL) == 0 && pld_world_rank(NULL) == -1);
  return 0;
}
