/* Shaken timing: the option, the environment variable, and which of them counts. */
#include "pld_test.h"

#define LAUNCHES 50

/* The second task reads what the first one writes, and nothing orders the two: with one core, a wrong result comes from
   the order in which the seed makes tasks run, and from nothing else. */
static const char text[] =
    "program missing_edge\n"
    "entry e(out: tensor[1] i32 out, box: window[1] i32, k: i32) {\n"
    "  at send no_dep [box] { box[0] = k }\n"
    "  at receive no_dep [box] { out[0] = box[0] }\n"
    "}\n"
    "host (outs: tensor[world, 1] i32 out, k: i32) {\n"
    "  box_buf = alloc_window [1] i32\n"
    "  ranks r in 0..world {\n"
    "    box = window box_buf [1] i32\n"
    "    dispatch e(outs[r], box, k) device r\n"
    "  }\n"
    "}\n";

static pld_world_options_t with_seed(uint64_t seed) {
  pld_world_options_t options;
  CHECK_OK(pld_world_options_init(&options, sizeof options));
  CHECK(options.chaos_seed == 0);
  options.nranks = 1;
  options.chaos_seed = seed;
  return options;
}

/* Makes a world, changes the environment, and launches: `right[i]` says whether launch `i` was. Returns how many were. */
static int run(uint64_t seed, char right[LAUNCHES]) {
  pld_world_options_t options = with_seed(seed);
  pld_program_t *p = NULL;
  pld_world_t *world = NULL;
  pld_executable_t *x = NULL;
  int32_t out, k;
  int count = 0;
  CHECK_OK(pld_world_create(&options, &world));
  CHECK(setenv("PLD_CHAOS", "read only when a world is made", 1) == 0);
  CHECK_OK(pld_program_parse(text, strlen(text), "missing_edge.pld", NULL, NULL, &p));
  CHECK_OK(pld_compile(p, world, NULL, &x));
  for (k = 1; k <= LAUNCHES; k++) {
    pld_arg_t args[2];
    args[0] = pld_arg_tensor(&out, PLD_DTYPE_I32, PLD_DIMS(1, 1));
    args[1] = pld_arg_int(k);
    out = -1;
    CHECK_OK(pld_launch(x, args, 2));
    CHECK(out == k || out == 0);
    right[k - 1] = out == k;
    count += out == k;
  }
  pld_executable_destroy(x);
  pld_world_destroy(world);
  pld_program_destroy(p);
  return count;
}

static int run_in(const char *variable, uint64_t seed, char right[LAUNCHES]) {
  if (variable == NULL) {
    CHECK(unsetenv("PLD_CHAOS") == 0);
  } else {
    CHECK(setenv("PLD_CHAOS", variable, 1) == 0);
  }
  return run(seed, right);
}

static void option_and_variable(void) {
  char undisturbed[LAUNCHES], first[LAUNCHES], second[LAUNCHES];
  int count;
  CHECK(run_in(NULL, 0, undisturbed) == LAUNCHES);
  CHECK(run_in("0", 0, undisturbed) == LAUNCHES);
  count = run_in(NULL, 7, first);
  CHECK(count > 0 && count < LAUNCHES);
  /* The variable says the same, and counts only where the option says nothing. */
  CHECK(run_in("7", 0, second) == count && memcmp(first, second, LAUNCHES) == 0);
  CHECK(run_in("0", 7, second) == count && memcmp(first, second, LAUNCHES) == 0);
  CHECK(run_in("not read", 7, second) == count && memcmp(first, second, LAUNCHES) == 0);
  run_in("8", 0, second);
  CHECK(memcmp(first, second, LAUNCHES) != 0);
}

static void malformed(void) {
  static const char *const values[] = {" ", "x", "-1", "1.5", "0x10", "18446744073709551616"};
  pld_world_options_t options = with_seed(0);
  size_t i;
  for (i = 0; i < COUNT(values); i++) {
    pld_world_t *world = NULL;
    CHECK(setenv("PLD_CHAOS", values[i], 1) == 0);
    CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_world_create(&options, &world));
    CHECK_ERROR("PLD_CHAOS is \"");
    CHECK_ERROR(values[i]);
    CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_world_join(&options, &world));
    CHECK_ERROR("PLD_CHAOS is \"");
    CHECK(world == NULL);
  }
  CHECK(unsetenv("PLD_CHAOS") == 0);
}

int main(void) {
  test_deadline(60);
  option_and_variable();
  malformed();
  return 0;
}
