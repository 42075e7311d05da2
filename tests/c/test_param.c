/* The parameters of a host driver, of programs in both forms. */
#include "pld_test.h"

static const char program[] =
    "program many\n"
    "dim n\n"
    "entry e(x: tensor[n, 4] f16 in, y: tensor[n, 4] f32 out, table: tensor[world, 8] i32 in, k: i64, on: bool) {\n"
    "}\n"
    "host (xs: tensor[world, n, 4] f16 in, ys: tensor[world, n, 4] f32 inout, table: tensor[world, 8] i32 in, k: i64,\n"
    "      on: bool) {\n"
    "  ranks r in 0..world { dispatch e(xs[r], ys[r], table, k, on) device r }\n"
    "}\n";

struct seen {
  char text[512];
  size_t size;
};

/* "xs f16 sliced [3, -1, 4] in; " */
static void note(const pld_param_t *param, void *user_data) {
  static const char *const directions[] = {"?", "in", "out", "inout"};
  struct seen *seen = (struct seen *)user_data;
  uint32_t i;
#define NOTE(...) \
  seen->size += (size_t)snprintf(seen->text + seen->size, sizeof seen->text - seen->size, __VA_ARGS__)
  CHECK(param->kind == PLD_OPERAND_TENSOR || param->ndims == 0);
  NOTE("%s %u%s%s [", param->name, param->dtype, param->kind == PLD_OPERAND_SCALAR ? " scalar" : "",
       param->sliced ? " sliced" : "");
  for (i = 0; i < param->ndims; i++) NOTE("%s%d", i > 0 ? ", " : "", (int)param->shape[i]);
  NOTE("] %s; ", directions[param->direction]);
  CHECK(seen->size < sizeof seen->text);
}

static void parsed(uint32_t nranks, const char *expected) {
  struct seen seen = {"", 0};
  pld_program_t *p = NULL;
  CHECK_OK(pld_program_parse(program, strlen(program), "many.pld", test_print_diagnostic, NULL, &p));
  CHECK_OK(pld_program_params(p, nranks, note, &seen));
  if (strcmp(seen.text, expected) != 0) test_fail(__FILE__, __LINE__, seen.text);
  pld_program_destroy(p);
}

static void built(void) {
  struct seen seen = {"", 0};
  pld_program_t *p = test_shift(8);
  CHECK_STATUS(PLD_ERR_INVALID_STATE, pld_program_params(p, 2, note, &seen));
  CHECK_OK(pld_program_finish(p, test_print_diagnostic, NULL));
  CHECK_OK(pld_program_params(p, 2, note, &seen));
  CHECK(strcmp(seen.text, "ins 1 sliced [2, 1, 8] in; outs 1 sliced [2, 1, 8] out; scale 1 scalar [] in; ") == 0);
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_program_params(p, 2, NULL, NULL));
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_program_params(NULL, 2, note, &seen));
  pld_program_destroy(p);
}

int main(void) {
  test_deadline(60);
  parsed(3, "xs 2 sliced [3, -1, 4] in; ys 1 sliced [3, -1, 4] inout; table 8 [3, 8] in; k 10 scalar [] in; "
            "on 12 scalar [] in; ");
  parsed(0, "xs 2 sliced [-1, -1, 4] in; ys 1 sliced [-1, -1, 4] inout; table 8 [-1, 8] in; k 10 scalar [] in; "
            "on 12 scalar [] in; ");
  built();
  return 0;
}
