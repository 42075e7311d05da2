/* Status names and messages; the last error. */
#include "pld_test.h"

static const pld_status_t errors[] = {
    PLD_ERR_INVALID_ARGUMENT, PLD_ERR_INVALID_STATE, PLD_ERR_BUSY,        PLD_ERR_VERSION,   PLD_ERR_FORKED,
    PLD_ERR_PARSE,            PLD_ERR_VERIFY,        PLD_ERR_UNSUPPORTED, PLD_ERR_NO_MEMORY, PLD_ERR_NO_SPACE,
    PLD_ERR_IO,               PLD_ERR_UNAVAILABLE,   PLD_ERR_DEVICE,      PLD_ERR_TIMEOUT,   PLD_ERR_PEER_LOST,
    PLD_ERR_ABORTED,          PLD_ERR_MISMATCH,      PLD_ERR_ARITHMETIC,  PLD_ERR_INTERNAL,  PLD_ERR_OUT_OF_BOUNDS,
};

int main(void) {
  size_t i, j, length;
  char buffer[64];
  int32_t s;
  test_deadline(20);

  CHECK(PLD_OK == 0);
  CHECK(strcmp(pld_status_name(PLD_OK), "PLD_OK") == 0);
  CHECK(strcmp(pld_status_name(PLD_ERR_TIMEOUT), "PLD_ERR_TIMEOUT") == 0);
  for (i = 0; i < COUNT(errors); i++) {
    CHECK(strncmp(pld_status_name(errors[i]), "PLD_ERR_", 8) == 0);
    CHECK(strlen(pld_status_message(errors[i])) > 0);
    for (j = 0; j < i; j++) CHECK(strcmp(pld_status_name(errors[i]), pld_status_name(errors[j])) != 0);
  }
  for (s = -300; s <= 300; s++) {
    CHECK(pld_status_name(s) != NULL && pld_status_message(s) != NULL);
  }
  CHECK(strcmp(pld_status_name(INT32_MIN), "PLD_ERR_UNKNOWN") == 0);

  /* No error yet on this thread. */
  memset(buffer, 'x', sizeof buffer);
  CHECK(pld_last_error(buffer, sizeof buffer) == 0);
  CHECK(buffer[0] == '\0');

  CHECK(pld_program_create(NULL) == NULL);
  length = pld_last_error(NULL, 0);
  CHECK(length == strlen("name is NULL"));
  CHECK(pld_last_error(NULL, 100) == length);
  memset(buffer, 'x', sizeof buffer);
  CHECK(pld_last_error(buffer, 5) == length);
  CHECK(memcmp(buffer, "name\0xxx", 8) == 0);
  CHECK(pld_last_error(buffer, sizeof buffer) == length);
  CHECK(strcmp(buffer, "name is NULL") == 0);

  /* Success leaves the last error alone. */
  pld_program_destroy(pld_program_create("fine"));
  CHECK_ERROR("name is NULL");

  CHECK(pld_version() == PLD_VERSION);
  sprintf(buffer, "%d.%d.%d", PLD_VERSION_MAJOR, PLD_VERSION_MINOR, PLD_VERSION_PATCH);
  CHECK(strcmp(pld_version_string(), buffer) == 0);
  CHECK(pld_dtype_size(PLD_DTYPE_F32) == 4 && pld_dtype_size(PLD_DTYPE_BF16) == 2 && pld_dtype_size(PLD_DTYPE_I64) == 8);
  CHECK(pld_dtype_size(0) == 0 && pld_dtype_size(99) == 0);
  return 0;
}
