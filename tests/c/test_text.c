/* Programs as text: printed, parsed, and the mistakes of text. */
#include "printed.h"

struct finding {
  int count;
  uint32_t line, column;
  char text[2048];
};

static void first(const pld_diagnostic_t *d, void *user_data) {
  struct finding *f = (struct finding *)user_data;
  if (f->count++ > 0) return;
  f->line = d->line;
  f->column = d->column;
  strncpy(f->text, d->text, sizeof f->text - 1);
}

int main(void) {
  static const char bad[] = "program bad\n\nentry e(x: tensor[4] f32 in) {\n  at t { v = x[0] $ 3 }\n}\n";
  static const char not_utf8[] = "program x\n# \xff\n";
  pld_program_t *built, *parsed = NULL, *untouched = (pld_program_t *)bad;
  struct text *one, *two;
  struct finding f;
  test_deadline(20);

  built = test_shift_finished(64);
  one = printed(built);
  CHECK_OK(pld_program_parse(one->bytes, one->size, "shift.pld", test_print_diagnostic, NULL, &parsed));
  two = printed(parsed);
  CHECK(one->size == two->size && memcmp(one->bytes, two->bytes, one->size) == 0);
  free(one);
  free(two);
  pld_program_destroy(built);
  pld_program_destroy(parsed);

  memset(&f, 0, sizeof f);
  CHECK_STATUS(PLD_ERR_PARSE, pld_program_parse(bad, strlen(bad), "bad.pld", first, &f, &untouched));
  CHECK(untouched == (pld_program_t *)bad);
  CHECK(f.count > 0 && f.line == 4 && f.column == 19);
  CHECK_CONTAINS(f.text, "bad.pld:4:19: error[PLD-P");
  CHECK_ERROR("bad.pld:4:19");

  /* Without a file name and without a callback. */
  CHECK_STATUS(PLD_ERR_PARSE, pld_program_parse(bad, strlen(bad), NULL, NULL, NULL, &untouched));
  CHECK_ERROR("text:4:19");
  CHECK_STATUS(PLD_ERR_PARSE, pld_program_parse(NULL, 0, NULL, NULL, NULL, &untouched));
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_program_parse(NULL, 5, NULL, NULL, NULL, &untouched));
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT,
               pld_program_parse(not_utf8, strlen(not_utf8), NULL, NULL, NULL, &untouched));
  CHECK_ERROR("byte 12");
  CHECK(untouched == (pld_program_t *)bad);
  return 0;
}
