/* The header comes first, with and without locations; lists, counts and transfers as the macros make them. */
#include <pld.h>

#include "pld_test.h"

#ifdef __cplusplus
extern "C++" pld_status_t other_unit(void);
#else
extern pld_status_t other_unit(void);
#endif

static size_t sum(const pld_dim_t *dims, size_t count) {
  size_t total = 0, i;
  for (i = 0; i < count; i++) total += (size_t)dims[i];
  return total;
}

static void check_region(const pld_transfer_t *t) {
  CHECK(t->struct_size == sizeof *t && t->ndst == 2 && t->nsrc == 2 && t->ndims == 2);
  CHECK(t->dst[0].imm == 7 && t->dst[1].imm == 8 && t->src[0].imm == 9 && t->src[1].imm == 10);
  CHECK(t->shape[0] == 11 && t->shape[1] == PLD_WORLD);
  CHECK(t->atomic == PLD_ATOMIC_NONE && t->pipeline == 0 && t->chunk_rows == 0 && t->chunk_cols == 0);
}

/* Locations are those of the call, also without the macros. */
static void note_line(const pld_diagnostic_t *d, void *user_data) { *(uint32_t *)user_data = d->line; }

int main(void) {
  pld_program_t *p;
  uint32_t line = 0;
  test_deadline(20);
  CHECK_OK(other_unit());
  CHECK(PLD_COUNT(a) == 1 && PLD_COUNT(a, b, c) == 3);
  CHECK(PLD_COUNT(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28,
                  29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54,
                  55, 56, 57, 58, 59, 60, 61, 62, 63, 64) == 64);
  CHECK(sum(PLD_DIMS(5)) == 5 && sum(PLD_DIMS(1, 2, 3, 4, 5, 6, 7, 8)) == 36);
  check_region(PLD_REGION(PLD_AT(PLD_INT(7), PLD_INT(8)), PLD_AT(PLD_INT(9), PLD_INT(10)), PLD_DIMS(11, PLD_WORLD)));

  p = pld_program_create("lines");
  pld_entry_end(p);
  CHECK_STATUS(PLD_ERR_VERIFY, pld_program_finish(p, note_line, &line));
  CHECK(line == (uint32_t)__LINE__ - 2);
  pld_program_destroy(p);

  p = pld_program_create("lines");
  (pld_entry_end)(p);
  CHECK_STATUS(PLD_ERR_VERIFY, pld_program_finish(p, note_line, &line));
  CHECK(line == 0);
  pld_program_destroy(p);

  p = pld_program_create("lines");
  (pld_entry_end)(pld_loc(p, "elsewhere.cc", 4711));
  CHECK_STATUS(PLD_ERR_VERIFY, pld_program_finish(p, note_line, &line));
  CHECK(line == 4711);
  CHECK_ERROR("elsewhere.cc:4711");
  pld_program_destroy(p);
  return 0;
}
