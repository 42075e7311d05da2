/* Window pools: two programs that share windows by name. */
#include "pld_test.h"

enum { COLUMNS = 16, MOST_RANKS = 4 };

/* Puts a row into the next rank's cache when that has read the row before. */
static const char prefill_text[] =
    "program prefill\n"
    "entry e(x: tensor[1, 16] i32 in, cache: window[1, 16] i32, epoch: window[1, 1] i32, read: window[1, 1] i32,\n"
    "        me: i32, now: i32) {\n"
    "  at put_step {\n"
    "    wait read[0, 0] >= now - 1\n"
    "    put cache @((me + 1) % world) <- x\n"
    "    notify epoch[0, 0] @((me + 1) % world) += 1\n"
    "  }\n"
    "}\n"
    "host (x: tensor[world, 1, 16] i32 in, now: i32) {\n"
    "  cache_buf = alloc_window [1, 16] i32\n"
    "  epoch_buf = alloc_window [1, 1] i32\n"
    "  read_buf = alloc_window [1, 1] i32\n"
    "  ranks r in 0..world {\n"
    "    cache = window cache_buf [1, 16] i32\n"
    "    epoch = window epoch_buf [1, 1] i32\n"
    "    read = window read_buf [1, 1] i32\n"
    "    dispatch e(x[r], cache, epoch, read, r, now) device r\n"
    "  }\n"
    "}\n";

/* Reads what was put, and tells who put it. */
static const char decode_text[] =
    "program decode\n"
    "entry e(y: tensor[1, 16] i32 out, cache: window[1, 16] i32, epoch: window[1, 1] i32, read: window[1, 1] i32,\n"
    "        me: i32, now: i32) {\n"
    "  at read_step {\n"
    "    wait epoch[0, 0] >= now\n"
    "    row = load cache[0, 0] [1, 16]\n"
    "    store row -> y[0, 0]\n"
    "    notify read[0, 0] @((me + world - 1) % world) += 1\n"
    "  }\n"
    "}\n"
    "host (y: tensor[world, 1, 16] i32 out, now: i32) {\n"
    "  read_buf = alloc_window [1, 1] i32\n"
    "  epoch_buf = alloc_window [1, 1] i32\n"
    "  cache_buf = alloc_window [1, 16] i32\n"
    "  ranks r in 0..world {\n"
    "    cache = window cache_buf [1, 16] i32\n"
    "    epoch = window epoch_buf [1, 1] i32\n"
    "    read = window read_buf [1, 1] i32\n"
    "    dispatch e(y[r], cache, epoch, read, r, now) device r\n"
    "  }\n"
    "}\n";

/* Compiles into the pool; NULL for none. */
static pld_status_t compile(pld_world_t *world, const char *text, const char *pool, uint64_t bytes,
                            pld_executable_t **out) {
  pld_program_t *p = NULL;
  pld_compile_options_t options;
  pld_status_t status;
  CHECK_OK(pld_program_parse(text, strlen(text), "test_pool.c", NULL, NULL, &p));
  CHECK_OK(pld_compile_options_init(&options, sizeof options));
  options.pool = pool;
  options.pool_bytes = bytes;
  status = pld_compile(p, world, &options, out);
  pld_program_destroy(p);
  return status;
}

static void alternate(pld_executable_t *prefill, pld_executable_t *decode, uint32_t nranks, int first, int end) {
  int32_t in[MOST_RANKS][COLUMNS], out[MOST_RANKS][COLUMNS];
  pld_arg_t put[2], get[2];
  int epoch, r, c, n = (int)nranks;
  put[0] = pld_arg_tensor(in, PLD_DTYPE_I32, PLD_DIMS(nranks, 1, COLUMNS));
  get[0] = pld_arg_tensor(out, PLD_DTYPE_I32, PLD_DIMS(nranks, 1, COLUMNS));
  for (epoch = first; epoch < end; epoch++) {
    for (r = 0; r < n; r++)
      for (c = 0; c < COLUMNS; c++) in[r][c] = epoch * 10000 + r * 100 + c;
    memset(out, 0xff, sizeof out);
    put[1] = get[1] = pld_arg_int(epoch);
    CHECK_OK(pld_launch(prefill, put, 2));
    CHECK_OK(pld_launch(decode, get, 2));
    for (r = 0; r < n; r++)
      for (c = 0; c < COLUMNS; c++) CHECK(out[r][c] == epoch * 10000 + (r + n - 1) % n * 100 + c);
  }
}

static void shared(uint32_t nranks) {
  pld_world_t *world = test_world(nranks, 20000000);
  pld_executable_t *prefill = NULL, *decode = NULL, *other = NULL;
  CHECK_OK(compile(world, prefill_text, "kv", 0, &prefill));
  CHECK_OK(compile(world, decode_text, "kv", 0, &decode));
  alternate(prefill, decode, nranks, 1, 101);
  pld_executable_destroy(decode);
  CHECK_OK(compile(world, decode_text, "kv", 0, &decode));
  alternate(prefill, decode, nranks, 101, 111);
  CHECK_OK(pld_executable_reset(decode));
  alternate(prefill, decode, nranks, 1, 11);
  /* Another pool is other memory: its epochs begin at 1. */
  CHECK_OK(compile(world, decode_text, "other", 1024, &other));
  pld_executable_destroy(other);
  other = NULL;
  pld_executable_destroy(decode);
  CHECK_OK(compile(world, decode_text, "other", 0, &decode));
  CHECK_OK(compile(world, prefill_text, "other", 0, &other));
  alternate(other, decode, nranks, 1, 11);
  pld_executable_destroy(other);
  pld_executable_destroy(prefill);
  pld_executable_destroy(decode);
  pld_world_destroy(world);
}

static void refused(void) {
  static const char wide_text[] =
      "program wide\n"
      "host () { cache_buf = alloc_window [1, 17] i32 }\n";
  static const char more_text[] =
      "program more\n"
      "host () { more_buf = alloc_window [1] i32 }\n";
  pld_world_t *world = test_world(2, 20000000);
  pld_executable_t *x = NULL, *none = NULL;
  CHECK_OK(compile(world, prefill_text, "kv", 0, &x));
  CHECK_STATUS(PLD_ERR_MISMATCH, compile(world, wide_text, "kv", 0, &none));
  CHECK_ERROR("window cache_buf of 'wide' has 68 bytes, but 64 bytes in pool 'kv'");
  CHECK_STATUS(PLD_ERR_NO_SPACE, compile(world, more_text, "kv", 4096, &none));
  CHECK_ERROR("pool 'kv' has 192 bytes, but with the windows of 'more' it needs 256");
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, compile(world, more_text, "", 0, &none));
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, compile(world, more_text, "\xff", 0, &none));
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, compile(world, more_text, NULL, 64, &none));
  /* Nobody else would notify what it waits for. */
  CHECK_STATUS(PLD_ERR_VERIFY, compile(world, prefill_text, NULL, 0, &none));
  CHECK_ERROR("PLD-V046");
  CHECK(none == NULL);
  pld_executable_destroy(x);
  pld_world_destroy(world);
}

int main(void) {
  test_deadline(60);
  shared(1);
  shared(2);
  shared(MOST_RANKS);
  refused();
  return 0;
}
