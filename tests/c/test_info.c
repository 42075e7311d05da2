/* What the library says about itself and this machine. */
#include "printed.h"

static int32_t refuse(const char *text, size_t size, void *user_data) {
  (void)text;
  (void)size;
  (void)user_data;
  return 5;
}

int main(void) {
  struct text *t = (struct text *)calloc(1, sizeof *t);
  test_deadline(60);
  CHECK(t != NULL && setenv("PLD_CHAOS", "77", 1) == 0 && unsetenv("PLD_JOB") == 0);
  CHECK(setenv("PLD_DIR", "/proc/self/nothing", 1) == 0);
  CHECK_OK(pld_info(append, t));
  CHECK_CONTAINS(t->bytes, pld_version_string());
  CHECK_CONTAINS(t->bytes, "thread: available");
  CHECK_CONTAINS(t->bytes, "shm: available");
  CHECK_CONTAINS(t->bytes, "ucx: ");
  CHECK_CONTAINS(t->bytes, "PLD_CHAOS=77 (environment)");
  CHECK_CONTAINS(t->bytes, "PLD_JOB is not set (default: ");

  /* A directory that is everybody's will not do. */
  CHECK(setenv("PLD_DIR", "/tmp", 1) == 0);
  t->size = 0;
  CHECK_OK(pld_info(append, t));
  CHECK_CONTAINS(t->bytes, "shm: unavailable: directory /tmp ");

  CHECK_STATUS(PLD_ERR_IO, pld_info(refuse, NULL));
  CHECK_ERROR("5");
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_info(NULL, NULL));
  free(t);
  return 0;
}
