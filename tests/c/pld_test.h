/* What every C test uses: CHECK macros that say where and what, and a deadline. */
#ifndef PLD_TEST_H
#define PLD_TEST_H

#include <pld.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition)                                                                    \
  do {                                                                                      \
    if (!(condition)) test_fail(__FILE__, __LINE__, #condition);                            \
  } while (0)

/* The call returns this status, and says why if it is an error. */
#define CHECK_STATUS(expected, call) test_status(__FILE__, __LINE__, #call, (expected), (call))

#define CHECK_OK(call) CHECK_STATUS(PLD_OK, call)

/* This thread's last error contains the text. */
#define CHECK_ERROR(part) test_contains(__FILE__, __LINE__, test_last_error(), (part))

#define CHECK_CONTAINS(text, part) test_contains(__FILE__, __LINE__, (text), (part))

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static inline void test_fail(const char *file, int line, const char *what) {
  fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
  exit(1);
}

static inline const char *test_last_error(void) {
  static char message[4096];
  pld_last_error(message, sizeof message);
  return message;
}

static inline void test_status(const char *file, int line, const char *call, pld_status_t expected, pld_status_t got) {
  if (got == expected && (got == PLD_OK || test_last_error()[0] != '\0')) return;
  fprintf(stderr, "%s:%d: %s\n  is %s (%s), expected %s\n", file, line, call, pld_status_name(got),
          got == PLD_OK ? "" : test_last_error(), pld_status_name(expected));
  exit(1);
}

static inline void test_contains(const char *file, int line, const char *text, const char *part) {
  if (strstr(text, part) != NULL) return;
  fprintf(stderr, "%s:%d: \"%s\" is not in:\n%s\n", file, line, part, text);
  exit(1);
}

/* A test that hangs ends here. */
static inline void test_deadline(unsigned seconds) { alarm(seconds); }

/* Prints every finding: for programs that should have none. */
static inline void test_print_diagnostic(const pld_diagnostic_t *d, void *user_data) {
  (void)user_data;
  fprintf(stderr, "%s\n", d->text);
}

/* A world of threads. */
static inline pld_world_t *test_world(uint32_t nranks, uint64_t timeout_us) {
  pld_world_options_t options;
  pld_world_t *world = NULL;
  CHECK_OK(pld_world_options_init(&options, sizeof options));
  options.nranks = nranks;
  options.timeout_us = timeout_us;
  CHECK_OK(pld_world_create(&options, &world));
  CHECK(world != NULL);
  return world;
}

/* out[r] = in[(r - 1) mod ranks] * factor: every rank puts its row into the next one's window. With `factor` a launch
   has the arguments in, out, factor. */
static inline pld_program_t *test_shift(int64_t columns) {
  pld_program_t *p = pld_program_create("shift");
  pld_entry_t entry = pld_entry_begin(p, "shift_rank");
  pld_tensor_t in = pld_param_tensor(p, "inp", PLD_DTYPE_F32, PLD_DIMS(1, columns), PLD_IN);
  pld_tensor_t out = pld_param_tensor(p, "outp", PLD_DTYPE_F32, PLD_DIMS(1, columns), PLD_OUT);
  pld_tensor_t data = pld_param_window(p, "data", PLD_DTYPE_F32, PLD_DIMS(1, columns));
  pld_tensor_t ready = pld_param_window(p, "ready", PLD_DTYPE_I32, PLD_DIMS(1, 1));
  pld_scalar_t me = pld_param_scalar(p, "me", PLD_DTYPE_I32);
  pld_scalar_t factor = pld_param_scalar(p, "factor", PLD_DTYPE_F32);
  pld_at_begin(p, "exchange", NULL);
  {
    pld_scalar_t next = pld_let(p, "next", pld_mod(p, pld_add(p, me, PLD_INT(1)), pld_world_size(p)));
    pld_tile_t row;
    pld_put(p, data, next, in, PLD_REGION(PLD_AT(PLD_INT(0), PLD_INT(0)), PLD_AT(PLD_INT(0), PLD_INT(0)),
                                          PLD_DIMS(1, columns)));
    pld_notify(p, ready, next, PLD_AT(PLD_INT(0), PLD_INT(0)), PLD_INT(1), PLD_NOTIFY_ADD);
    pld_wait(p, ready, PLD_AT(PLD_INT(0), PLD_INT(0)), PLD_INT(1), PLD_WAIT_GE);
    row = pld_load(p, data, PLD_AT(PLD_INT(0), PLD_INT(0)), PLD_DIMS(1, columns));
    pld_tile_assign(p, row, pld_tile_muls(p, row, factor));
    pld_store(p, row, out, PLD_AT(PLD_INT(0), PLD_INT(0)));
  }
  pld_task_end(p);
  pld_entry_end(p);
  {
    pld_tensor_t ins = pld_host_tensor(p, "ins", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, 1, columns), PLD_IN);
    pld_tensor_t outs = pld_host_tensor(p, "outs", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, 1, columns), PLD_OUT);
    pld_scalar_t scale = pld_host_scalar(p, "scale", PLD_DTYPE_F32);
    pld_buffer_t data_buf = pld_alloc_window(p, "data_buf", PLD_DTYPE_F32, PLD_DIMS(1, columns));
    pld_buffer_t ready_buf = pld_alloc_window(p, "ready_buf", PLD_DTYPE_I32, PLD_DIMS(1, 1));
    pld_scalar_t r = pld_ranks_begin(p, PLD_INT(0), pld_world_size(p));
    pld_tensor_t data_view = pld_window(p, data_buf, PLD_DTYPE_F32, PLD_DIMS(1, columns));
    pld_tensor_t ready_view = pld_window(p, ready_buf, PLD_DTYPE_I32, PLD_DIMS(1, 1));
    pld_dispatch(p, entry, r,
                 PLD_ARGS(pld_of_tensor(pld_slice_rank(p, ins, r)), pld_of_tensor(pld_slice_rank(p, outs, r)),
                          pld_of_tensor(data_view), pld_of_tensor(ready_view), pld_of_scalar(r),
                          pld_of_scalar(scale)));
    pld_ranks_end(p);
  }
  return p;
}

/* The same, finished. */
static inline pld_program_t *test_shift_finished(int64_t columns) {
  pld_program_t *p = test_shift(columns);
  CHECK_OK(pld_program_finish(p, test_print_diagnostic, NULL));
  return p;
}

#endif
