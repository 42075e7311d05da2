/* Residents: weights that several runs share, results that are read back, a cache between two programs, lifetimes. */
#include "pld_test.h"

enum { COLUMNS = 24, ROWS = 4, MOST_RANKS = 4 };

static const char add_text[] =
    "program add\n"
    "entry e(a: tensor[1, 24] f32 in, b: tensor[1, 24] f32 in, f: tensor[1, 24] f32 out) {\n"
    "  at add_step {\n"
    "    x = load a[0, 0] [1, 24]\n"
    "    y = load b[0, 0] [1, 24]\n"
    "    z = add x, y\n"
    "    store z -> f[0, 0]\n"
    "  }\n"
    "}\n"
    "host (a: tensor[world, 1, 24] f32 in, b: tensor[world, 1, 24] f32 in, f: tensor[world, 1, 24] f32 out) {\n"
    "  ranks r in 0..world { dispatch e(a[r], b[r], f[r]) device r }\n"
    "}\n";

static pld_executable_t *compiled(pld_world_t *world, const char *text) {
  pld_program_t *p = NULL;
  pld_executable_t *x = NULL;
  CHECK_OK(pld_program_parse(text, strlen(text), "test_resident.c", test_print_diagnostic, NULL, &p));
  CHECK_OK(pld_compile(p, world, NULL, &x));
  pld_program_destroy(p);
  return x;
}

static float weight(uint32_t rank, int column) { return (float)(10 + rank * 100 + (uint32_t)column); }

/* A stacked resident with the weights, whose source is zeroed after it was copied. */
static pld_resident_t *weights(pld_world_t *world, uint32_t nranks) {
  pld_resident_t *b = NULL;
  float source[COLUMNS];
  uint32_t r;
  int c;
  CHECK_OK(pld_resident_create_stacked(world, PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS), &b));
  CHECK(b != NULL);
  for (r = 0; r < nranks; r++) {
    CHECK_OK(pld_resident_copy_out(b, r, source, sizeof source));
    for (c = 0; c < COLUMNS; c++) CHECK(source[c] == 0);
    for (c = 0; c < COLUMNS; c++) source[c] = weight(r, c);
    CHECK_OK(pld_resident_copy_in(b, r, source, sizeof source));
    memset(source, 0, sizeof source);
  }
  return b;
}

/* f = a + b in three runs at once, b resident (E9, E10). */
static void shared_by_runs(uint32_t nranks) {
  static const float as[] = {2, 7, 11};
  float in[COUNT(as)][MOST_RANKS][COLUMNS], out[COUNT(as)][MOST_RANKS][COLUMNS], back[COLUMNS];
  pld_world_t *world = test_world(nranks, 20000000);
  pld_executable_t *x = compiled(world, add_text);
  pld_resident_t *b = weights(world, nranks);
  pld_run_t *runs[COUNT(as)];
  size_t i;
  uint32_t r;
  int c;
  for (i = 0; i < COUNT(as); i++) {
    pld_arg_t args[3];
    for (r = 0; r < nranks; r++)
      for (c = 0; c < COLUMNS; c++) in[i][r][c] = as[i] * 1000 + (float)((int)r * 50 + c);
    args[0] = pld_arg_tensor(in[i], PLD_DTYPE_F32, PLD_DIMS(nranks, 1, COLUMNS));
    args[1] = pld_arg_resident(b);
    args[2] = pld_arg_tensor(out[i], PLD_DTYPE_F32, PLD_DIMS(nranks, 1, COLUMNS));
    CHECK_OK(pld_submit(x, args, 3, &runs[i]));
  }
  for (i = 0; i < COUNT(as); i++) {
    CHECK_OK(pld_run_wait(runs[i], -1));
    for (r = 0; r < nranks; r++)
      for (c = 0; c < COLUMNS; c++) CHECK(out[i][r][c] == in[i][r][c] + weight(r, c));
    pld_run_destroy(runs[i]);
  }
  for (r = 0; r < nranks; r++) {
    CHECK_OK(pld_resident_copy_out(b, r, back, sizeof back));
    for (c = 0; c < COLUMNS; c++) CHECK(back[c] == weight(r, c));
  }
  pld_resident_destroy(b);
  pld_executable_destroy(x);
  pld_world_destroy(world);
}

/* Runs keep the memory of a resident that was destroyed; after the world nothing but destroying is left (E12). */
static void lifetimes(void) {
  float in[2][COLUMNS], out[2][COLUMNS], bytes[COLUMNS] = {0};
  pld_world_t *world = test_world(2, 20000000);
  pld_executable_t *x = compiled(world, add_text);
  pld_resident_t *b, *f = NULL, *none = NULL;
  pld_arg_t args[3];
  int round, r, c;
  args[0] = pld_arg_tensor(in, PLD_DTYPE_F32, PLD_DIMS(2, 1, COLUMNS));
  args[2] = pld_arg_tensor(out, PLD_DTYPE_F32, PLD_DIMS(2, 1, COLUMNS));
  for (round = 0; round < 20; round++) {
    pld_run_t *run = NULL;
    b = weights(world, 2);
    for (r = 0; r < 2; r++)
      for (c = 0; c < COLUMNS; c++) in[r][c] = (float)(round * 10 + r + c);
    args[1] = pld_arg_resident(b);
    CHECK_OK(pld_submit(x, args, 3, &run));
    pld_resident_destroy(b);
    CHECK_OK(pld_run_wait(run, -1));
    pld_run_destroy(run);
    for (r = 0; r < 2; r++)
      for (c = 0; c < COLUMNS; c++) CHECK(out[r][c] == in[r][c] + weight((uint32_t)r, c));
  }
  b = weights(world, 2);
  CHECK_OK(pld_resident_create_stacked(world, PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS), &f));
  args[1] = pld_arg_resident(b);
  args[2] = pld_arg_resident(f);
  CHECK_OK(pld_launch(x, args, 3));
  CHECK_OK(pld_resident_copy_out(f, 1, bytes, sizeof bytes));
  for (c = 0; c < COLUMNS; c++) CHECK(bytes[c] == in[1][c] + weight(1, c));
  pld_resident_destroy(f);
  pld_world_destroy(world);
  CHECK_STATUS(PLD_ERR_INVALID_STATE, pld_resident_copy_in(b, 0, bytes, sizeof bytes));
  CHECK_STATUS(PLD_ERR_INVALID_STATE, pld_resident_copy_out(b, 0, bytes, sizeof bytes));
  pld_resident_destroy(b);
  pld_executable_destroy(x);

  world = test_world(1, 0);
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_resident_create(world, 1, PLD_DTYPE_F32, PLD_DIMS(4), &none));
  CHECK_ERROR("rank 1");
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_resident_create(world, 0, 99, PLD_DIMS(4), &none));
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_resident_create_stacked(world, PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD), &none));
  CHECK(none == NULL);
  pld_world_destroy(world);
}

/* One program writes a cache, another one reads it again and again (E13). */
static void shared_cache(uint32_t nranks) {
  static const char prefill_text[] =
      "program prefill\n"
      "entry e(x: tensor[1, 24] f32 in, cache: tensor[4, 24] f32 inout, row: i32) {\n"
      "  at fill_step {\n"
      "    t = load x[0, 0] [1, 24]\n"
      "    store t -> cache[row, 0]\n"
      "  }\n"
      "}\n"
      "host (x: tensor[world, 1, 24] f32 in, cache: tensor[world, 4, 24] f32 inout, row: i32) {\n"
      "  ranks r in 0..world { dispatch e(x[r], cache[r], row) device r }\n"
      "}\n";
  static const char decode_text[] =
      "program decode\n"
      "entry e(cache: tensor[4, 24] f32 in, by: tensor[1] f32 in, y: tensor[1, 24] f32 out, rows: i32) {\n"
      "  at sum_step {\n"
      "    acc = full f32 [1, 24] 0.0\n"
      "    for row in 0..rows {\n"
      "      t = load cache[row, 0] [1, 24]\n"
      "      acc = add acc, t\n"
      "    }\n"
      "    factor = by[0]\n"
      "    scaled = mul acc, factor\n"
      "    store scaled -> y[0, 0]\n"
      "  }\n"
      "}\n"
      "host (cache: tensor[world, 4, 24] f32 in, by: tensor[1] f32 in, y: tensor[world, 1, 24] f32 out, rows: i32) {\n"
      "  ranks r in 0..world { dispatch e(cache[r], by, y[r], rows) device r }\n"
      "}\n";
  static const float factor = 3;
  float in[MOST_RANKS][COLUMNS], out[MOST_RANKS][COLUMNS], right;
  pld_world_t *world = test_world(nranks, 20000000);
  pld_executable_t *prefill = compiled(world, prefill_text), *decode = compiled(world, decode_text);
  pld_resident_t *cache = NULL, *by = NULL;
  pld_arg_t fill[3], read[4];
  uint32_t r;
  int row, k, c;
  CHECK_OK(pld_resident_create_stacked(world, PLD_DTYPE_F32, PLD_DIMS(ROWS, COLUMNS), &cache));
  CHECK_OK(pld_resident_create(world, nranks - 1, PLD_DTYPE_F32, PLD_DIMS(1), &by));
  CHECK_OK(pld_resident_copy_in(by, nranks - 1, &factor, sizeof factor));
  fill[0] = pld_arg_tensor(in, PLD_DTYPE_F32, PLD_DIMS(nranks, 1, COLUMNS));
  fill[1] = read[0] = pld_arg_resident(cache);
  read[1] = pld_arg_resident(by);
  read[2] = pld_arg_tensor(out, PLD_DTYPE_F32, PLD_DIMS(nranks, 1, COLUMNS));
  for (row = 0; row < ROWS; row++) {
    for (r = 0; r < nranks; r++)
      for (c = 0; c < COLUMNS; c++) in[r][c] = (float)(row * 100 + (int)r * 1000 + c);
    fill[2] = pld_arg_int(row);
    CHECK_OK(pld_launch(prefill, fill, 3));
    read[3] = pld_arg_int(row + 1);
    for (k = 0; k < 5; k++) {
      memset(out, 0xff, sizeof out);
      CHECK_OK(pld_launch(decode, read, 4));
      for (r = 0; r < nranks; r++) {
        for (c = 0; c < COLUMNS; c++) {
          right = factor * (float)((row + 1) * ((int)r * 1000 + c) + 100 * row * (row + 1) / 2);
          CHECK(out[r][c] == right);
        }
      }
    }
  }
  /* Mistakes in kinds. */
  read[0] = pld_arg_resident(by);
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_launch(decode, read, 4));
  CHECK_ERROR("cache is a resident of one rank");
  read[0] = read[1] = pld_arg_resident(cache);
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_launch(decode, read, 4));
  CHECK_ERROR("by is a stacked resident");
  read[1] = pld_arg_resident(NULL);
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_launch(decode, read, 4));
  CHECK_ERROR("NULL");
  pld_resident_destroy(cache);
  pld_resident_destroy(by);
  pld_executable_destroy(prefill);
  pld_executable_destroy(decode);
  pld_world_destroy(world);
}

/* A run that has not ended uses its residents; those of another world are none of its own. */
static void in_use(void) {
  static const char stuck_text[] =
      "program stuck\n"
      "entry e(x: tensor[1] f32 in, sig: window[1, 1] i32) {\n"
      "  at t {\n"
      "    notify sig[0, 0] @0 += 1\n"
      "    wait sig[0, 0] >= 100\n"
      "  }\n"
      "}\n"
      "host (x: tensor[world, 1] f32 in) {\n"
      "  buf = alloc_window [1, 1] i32\n"
      "  ranks r in 0..world {\n"
      "    sig = window buf [1, 1] i32\n"
      "    dispatch e(x[r], sig) device r\n"
      "  }\n"
      "}\n";
  pld_world_t *world = test_world(2, 60000000), *other = test_world(2, 0);
  pld_executable_t *x = compiled(world, stuck_text);
  pld_resident_t *b = NULL, *foreign = NULL;
  pld_run_t *run = NULL;
  pld_arg_t arg;
  float value = 1;
  CHECK_OK(pld_resident_create_stacked(world, PLD_DTYPE_F32, PLD_DIMS(1), &b));
  CHECK_OK(pld_resident_create_stacked(other, PLD_DTYPE_F32, PLD_DIMS(1), &foreign));
  arg = pld_arg_resident(foreign);
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_submit(x, &arg, 1, &run));
  CHECK_ERROR("x is a resident of another world");
  arg = pld_arg_resident(b);
  CHECK_OK(pld_submit(x, &arg, 1, &run));
  CHECK_STATUS(PLD_ERR_BUSY, pld_resident_copy_in(b, 0, &value, sizeof value));
  CHECK_STATUS(PLD_ERR_BUSY, pld_resident_copy_out(b, 1, &value, sizeof value));
  CHECK_OK(pld_world_abort(world, 3));
  CHECK_STATUS(PLD_ERR_ABORTED, pld_run_wait(run, -1));
  CHECK_OK(pld_resident_copy_out(b, 1, &value, sizeof value));
  CHECK(value == 0);
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_resident_copy_in(b, 0, &value, 3));
  CHECK_ERROR("3 bytes");
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_resident_copy_in(b, 2, &value, sizeof value));
  CHECK_ERROR("rank 2");
  pld_run_destroy(run);
  pld_resident_destroy(b);
  pld_resident_destroy(foreign);
  pld_executable_destroy(x);
  pld_world_destroy(world);
  pld_world_destroy(other);
}

int main(void) {
  test_deadline(60);
  shared_by_runs(1);
  shared_by_runs(2);
  shared_by_runs(MOST_RANKS);
  lifetimes();
  shared_cache(1);
  shared_cache(2);
  in_use();
  return 0;
}
