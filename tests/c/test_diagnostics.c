/* Mistakes: all of them, with the line of C, and none that only follow from another. */
#include "pld_test.h"

struct findings {
  int count;
  uint32_t lines[16];
  char codes[16][16];
  char text[16384];
};

static void collect(const pld_diagnostic_t *d, void *user_data) {
  struct findings *f = (struct findings *)user_data;
  CHECK(d->severity == PLD_SEVERITY_ERROR || d->severity == PLD_SEVERITY_WARNING);
  CHECK(d->code != NULL && d->file != NULL && d->message != NULL && d->snippet != NULL && d->hint != NULL);
  CHECK(strncmp(d->code, "PLD-", 4) == 0 && d->message[0] != '\0');
  CHECK_CONTAINS(d->text, d->message);
  CHECK_CONTAINS(d->text, d->code);
  CHECK(f->count < 16);
  f->lines[f->count] = d->line;
  strncpy(f->codes[f->count], d->code, sizeof f->codes[0] - 1);
  f->count++;
  strncat(f->text, d->text, sizeof f->text - strlen(f->text) - 1);
  strncat(f->text, "\n", sizeof f->text - strlen(f->text) - 1);
}

static struct findings finish(pld_program_t *p, pld_status_t expected) {
  struct findings f;
  memset(&f, 0, sizeof f);
  CHECK_STATUS(expected, pld_program_finish(p, collect, &f));
  return f;
}

static void check_finding(const struct findings *f, int index, const char *code, int line) {
  if (index < f->count && strcmp(f->codes[index], code) == 0 && f->lines[index] == (uint32_t)line) return;
  fprintf(stderr, "finding %d should be %s in line %d:\n%s\n", index, code, line, f->text);
  exit(1);
}

/* Opens an entry with a tensor and a task. */
static pld_tensor_t open_task(pld_program_t *p) {
  pld_tensor_t x;
  pld_entry_begin(p, "e");
  x = pld_param_tensor(p, "x", PLD_DTYPE_F32, PLD_DIMS(4, 8), PLD_INOUT);
  pld_at_begin(p, "t", NULL);
  return x;
}

static void close_task(pld_program_t *p) {
  pld_task_end(p);
  pld_entry_end(p);
}

/* A handle of zeros is one mistake, and what depends on it is none. */
static void zero_handles(void) {
  pld_program_t *p = pld_program_create("zeros");
  pld_tensor_t x = open_task(p);
  pld_scalar_t zero;
  pld_tile_t tile;
  struct findings f;
  int scalar_line, tile_line;
  memset(&zero, 0, sizeof zero);
  memset(&tile, 0, sizeof tile);
  scalar_line = __LINE__ + 1;
  zero = pld_add(p, zero, PLD_INT(1));
  zero = pld_mul(p, zero, zero);
  pld_write(p, x, PLD_AT(PLD_INT(0), zero), zero);
  tile_line = __LINE__ + 1;
  pld_store(p, tile, x, PLD_AT(PLD_INT(0), PLD_INT(0)));
  close_task(p);
  f = finish(p, PLD_ERR_VERIFY);
  CHECK(f.count == 2);
  check_finding(&f, 0, "PLD-B001", scalar_line);
  check_finding(&f, 1, "PLD-B001", tile_line);
  CHECK_CONTAINS(f.text, "test_diagnostics.c");
  CHECK_ERROR("and 1 more error");
  pld_program_destroy(p);
}

/* Handles of another program, and garbage. */
static void foreign_handles(void) {
  pld_program_t *other = pld_program_create("other");
  pld_program_t *p = pld_program_create("mine");
  pld_tensor_t theirs = open_task(other);
  pld_tensor_t x = open_task(p), garbage;
  pld_scalar_t scalar = {12345, 0, 0}, odd = {0, 77, 5};
  struct findings f;
  int line = __LINE__ + 2;
  garbage.id = 0xfffffffe;
  pld_read(p, theirs, PLD_AT(PLD_INT(0), PLD_INT(0)));
  pld_read(p, garbage, PLD_AT(PLD_INT(0), PLD_INT(0)));
  pld_read(p, x, PLD_AT(PLD_INT(0), scalar));
  pld_read(p, x, PLD_AT(odd, PLD_INT(0)));
  pld_load(p, x, PLD_AT(PLD_INT(0), PLD_INT(0)), PLD_DIMS(1, -5));
  close_task(p);
  f = finish(p, PLD_ERR_VERIFY);
  CHECK(f.count == 5);
  check_finding(&f, 0, "PLD-B001", line);
  check_finding(&f, 1, "PLD-B001", line + 1);
  check_finding(&f, 2, "PLD-B001", line + 2);
  check_finding(&f, 3, "PLD-B001", line + 3);
  check_finding(&f, 4, "PLD-B001", line + 4);
  CHECK_CONTAINS(f.text, "-5 is not a dimension");
  pld_program_destroy(p);
  pld_program_destroy(other);
}

/* Values that enums do not have, and lists that cannot be. */
static void bad_arguments(void) {
  pld_program_t *p = pld_program_create("arguments");
  pld_tensor_t x = open_task(p);
  pld_transfer_t garbage;
  struct findings f;
  int line = __LINE__ + 2;
  memset(&garbage, 0x5a, sizeof garbage);
  pld_tile_full(p, 99, PLD_DIMS(1, 1), PLD_INT(0));
  pld_cast(p, PLD_INT(0), PLD_DTYPE_F16);
  pld_wait(p, x, PLD_AT(PLD_INT(0)), PLD_INT(0), 17);
  pld_notify(p, x, PLD_INT(0), PLD_AT(PLD_INT(0)), PLD_INT(0), 17);
  pld_read(p, x, NULL, 2);
  pld_read(p, x, NULL, (size_t)-1);
  pld_put(p, x, PLD_INT(0), x, &garbage);
  close_task(p);
  f = finish(p, PLD_ERR_VERIFY);
  CHECK(f.count == 7);
  check_finding(&f, 0, "PLD-B008", line);
  check_finding(&f, 1, "PLD-B008", line + 1);
  check_finding(&f, 2, "PLD-B008", line + 2);
  check_finding(&f, 3, "PLD-B008", line + 3);
  check_finding(&f, 4, "PLD-B008", line + 4);
  check_finding(&f, 5, "PLD-B006", line + 5);
  check_finding(&f, 6, "PLD-B008", line + 6);
  pld_program_destroy(p);
}

/* Blocks stay paired when their operands are unusable, so there is one mistake and not four. */
static void blocks_stay_paired(void) {
  pld_program_t *p = pld_program_create("blocks");
  pld_scalar_t zero;
  struct findings f;
  int line;
  memset(&zero, 0, sizeof zero);
  open_task(p);
  line = __LINE__ + 1;
  pld_if_begin(p, zero);
  pld_else(p);
  pld_if_end(p);
  pld_for_begin(p, zero, PLD_INT(4));
  pld_for_end(p);
  close_task(p);
  f = finish(p, PLD_ERR_VERIFY);
  CHECK(f.count == 2);
  check_finding(&f, 0, "PLD-B001", line);
  check_finding(&f, 1, "PLD-B001", line + 3);
  pld_program_destroy(p);
}

static void unclosed_and_bad_names(void) {
  pld_program_t *p = pld_program_create("unclosed");
  struct findings f;
  int line = __LINE__ + 1;
  pld_entry_begin(p, NULL);
  pld_at_begin(p, "4ever", NULL);
  f = finish(p, PLD_ERR_VERIFY);
  CHECK(f.count == 4);
  check_finding(&f, 0, "PLD-B005", line);
  check_finding(&f, 1, "PLD-B005", line + 1);
  CHECK_CONTAINS(f.text, "PLD-B003");
  pld_program_destroy(p);
}

/* The verifier's findings point at the call, too. */
static void verifier_findings(void) {
  pld_program_t *p = pld_program_create("outside");
  pld_entry_t e = pld_entry_begin(p, "e");
  pld_tensor_t x = pld_param_tensor(p, "x", PLD_DTYPE_F32, PLD_DIMS(4, 8), PLD_INOUT), xs;
  pld_scalar_t r;
  struct findings f;
  int line;
  pld_at_begin(p, "t", NULL);
  line = __LINE__ + 1;
  pld_write(p, x, PLD_AT(PLD_INT(4), PLD_INT(0)), pld_float(p, 1.0f));
  pld_task_end(p);
  pld_entry_end(p);
  xs = pld_host_tensor(p, "xs", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, 4, 8), PLD_INOUT);
  r = pld_ranks_begin(p, PLD_INT(0), pld_world_size(p));
  pld_dispatch(p, e, r, PLD_ARGS(pld_of_tensor(pld_slice_rank(p, xs, r))));
  pld_ranks_end(p);
  f = finish(p, PLD_ERR_VERIFY);
  CHECK(f.count == 1);
  CHECK(strncmp(f.codes[0], "PLD-V", 5) == 0 && f.lines[0] == (uint32_t)line);
  pld_program_destroy(p);
}

int main(void) {
  test_deadline(20);
  zero_handles();
  foreign_handles();
  bad_arguments();
  blocks_stay_paired();
  unclosed_and_bad_names();
  verifier_findings();
  return 0;
}
