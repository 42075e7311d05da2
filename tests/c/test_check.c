/* The checker: what it finds and says, its options, and that it works on copies. */
#include "pld_test.h"

enum { RANKS = 2, D = 4 };

/* What was found, the first of each code. */
struct found {
  uint32_t errors, warnings;
  char codes[512], text[4096], schedule[1024];
};

static void collect(const pld_diagnostic_t *d, void *user_data) {
  struct found *found = (struct found *)user_data;
  if (d->severity == PLD_SEVERITY_ERROR) found->errors++;
  if (d->severity == PLD_SEVERITY_WARNING) found->warnings++;
  CHECK_CONTAINS(d->text, d->schedule);
  CHECK_CONTAINS(d->text, d->code);
  strncat(found->codes, d->code, sizeof found->codes - strlen(found->codes) - 2);
  strncat(found->codes, " ", 2);
  if (found->text[0] != '\0') return;
  snprintf(found->text, sizeof found->text, "%s", d->text);
  snprintf(found->schedule, sizeof found->schedule, "%s", d->schedule);
}

static pld_check_options_t defaults(void) {
  pld_check_options_t o;
  CHECK_OK(pld_check_options_init(&o, sizeof o));
  return o;
}

/* Checks a program, and counts what was found in two ways. */
static pld_status_t run(const pld_program_t *p, const pld_check_options_t *o, struct found *found,
                        pld_check_report_t *report) {
  pld_status_t status;
  memset(found, 0, sizeof *found);
  memset(report, 0xee, sizeof *report);
  report->struct_size = (uint32_t)sizeof *report;
  status = pld_check(p, o, collect, found, report);
  if (status == PLD_OK || status == PLD_ERR_CHECK) {
    CHECK(report->struct_size == sizeof *report);
    CHECK(report->errors == found->errors && report->warnings == found->warnings);
    CHECK(report->schedules > 0 && report->steps > 0 && report->complete <= 1);
    CHECK((status == PLD_ERR_CHECK) == (found->errors > 0));
    if (status == PLD_ERR_CHECK) CHECK_ERROR("PLD-C");
  }
  return status;
}

static pld_program_t *parsed(const char *text) {
  pld_program_t *p = NULL;
  CHECK_OK(pld_program_parse(text, strlen(text), "test.pld", test_print_diagnostic, NULL, &p));
  return p;
}

/* y[r] = x[r - 1], told before or after the row has been put. */
static pld_program_t *shift(int told_before, int *put_line, int *load_line) {
  const pld_scalar_t zero = PLD_INT(0);
  pld_program_t *p = pld_program_create("shift");
  pld_entry_t e = pld_entry_begin(p, "e");
  pld_tensor_t x = pld_param_tensor(p, "x", PLD_DTYPE_F32, PLD_DIMS(1, D), PLD_IN);
  pld_tensor_t y = pld_param_tensor(p, "y", PLD_DTYPE_F32, PLD_DIMS(1, D), PLD_OUT);
  pld_tensor_t inbox = pld_param_window(p, "inbox", PLD_DTYPE_F32, PLD_DIMS(1, D));
  pld_tensor_t arrived = pld_param_window(p, "arrived", PLD_DTYPE_I32, PLD_DIMS(1));
  pld_scalar_t me = pld_param_scalar(p, "me", PLD_DTYPE_I32), next;
  pld_at_begin(p, "exchange", NULL);
  next = pld_let(p, "next", pld_mod(p, pld_add(p, me, PLD_INT(1)), pld_world_size(p)));
  if (told_before) pld_notify(p, arrived, next, PLD_AT(zero), PLD_INT(1), PLD_NOTIFY_ADD);
  *put_line = __LINE__ + 1;
  pld_put(p, inbox, next, x, NULL);
  if (!told_before) pld_notify(p, arrived, next, PLD_AT(zero), PLD_INT(1), PLD_NOTIFY_ADD);
  pld_wait(p, arrived, PLD_AT(zero), PLD_INT(1), PLD_WAIT_GE);
  {
    pld_tile_t t;
    *load_line = __LINE__ + 1;
    t = pld_load(p, inbox, PLD_AT(zero, zero), PLD_DIMS(1, D));
    pld_store(p, t, y, PLD_AT(zero, zero));
  }
  pld_task_end(p);
  pld_entry_end(p);
  {
    pld_tensor_t xs = pld_host_tensor(p, "xs", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, 1, D), PLD_IN);
    pld_tensor_t ys = pld_host_tensor(p, "ys", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, 1, D), PLD_OUT);
    pld_buffer_t inbox_buf = pld_alloc_window(p, "inbox_buf", PLD_DTYPE_F32, PLD_DIMS(1, D));
    pld_buffer_t arrived_buf = pld_alloc_window(p, "arrived_buf", PLD_DTYPE_I32, PLD_DIMS(1));
    pld_scalar_t r = pld_ranks_begin(p, zero, pld_world_size(p));
    pld_tensor_t inbox_view = pld_window(p, inbox_buf, PLD_DTYPE_F32, PLD_DIMS(1, D));
    pld_tensor_t arrived_view = pld_window(p, arrived_buf, PLD_DTYPE_I32, PLD_DIMS(1));
    pld_dispatch(p, e, r,
                 PLD_ARGS(pld_of_tensor(pld_slice_rank(p, xs, r)), pld_of_tensor(pld_slice_rank(p, ys, r)),
                          pld_of_tensor(inbox_view), pld_of_tensor(arrived_view), pld_of_scalar(r)));
    pld_ranks_end(p);
  }
  return p;
}

/* Both lines are named, and the schedule shows it again, also alone. */
static void a_race(void) {
  struct found found, again;
  pld_check_report_t report;
  pld_check_options_t o = defaults();
  char place[64];
  int put_line, load_line;
  uint32_t explore;
  pld_program_t *p = shift(1, &put_line, &load_line);
  CHECK_STATUS(PLD_ERR_INVALID_STATE, pld_check(p, NULL, NULL, NULL, NULL));
  CHECK_OK(pld_program_finish(p, test_print_diagnostic, NULL));

  CHECK_STATUS(PLD_ERR_CHECK, run(p, NULL, &found, &report));
  CHECK_CONTAINS(found.codes, "PLD-C002 ");
  snprintf(place, sizeof place, "test_check.c:%d", put_line);
  CHECK_CONTAINS(found.text, place);
  CHECK_ERROR(place);
  snprintf(place, sizeof place, "test_check.c:%d", load_line);
  CHECK_CONTAINS(found.text, place);
  CHECK(found.schedule[0] != '\0');

  o.replay = found.schedule;
  CHECK_STATUS(PLD_ERR_CHECK, run(p, &o, &again, &report));
  CHECK_CONTAINS(again.codes, "PLD-C002 ");
  CHECK(report.schedules == 1);
  CHECK(strcmp(again.text, found.text) == 0 && strcmp(again.schedule, found.schedule) == 0);

  for (explore = PLD_EXPLORE_AUTO; explore <= PLD_EXPLORE_EXHAUSTIVE; explore++) {
    o = defaults();
    o.explore = explore;
    o.seed = 11;
    o.schedules = 50;
    CHECK_STATUS(PLD_ERR_CHECK, run(p, &o, &found, &report));
    CHECK_CONTAINS(found.codes, "PLD-C002 ");
    CHECK(report.schedules <= 50);
  }

  /* Neither a callback nor a report is needed. */
  CHECK_STATUS(PLD_ERR_CHECK, pld_check(p, NULL, NULL, NULL, NULL));
  pld_program_destroy(p);
}

static void a_clean_program(void) {
  struct found found;
  pld_check_report_t report;
  pld_check_options_t o = defaults();
  int put_line, load_line;
  pld_program_t *p = shift(0, &put_line, &load_line);
  CHECK_OK(pld_program_finish(p, test_print_diagnostic, NULL));
  o.explore = PLD_EXPLORE_EXHAUSTIVE;
  CHECK_OK(run(p, &o, &found, &report));
  CHECK(report.errors == 0 && report.warnings == 0 && report.complete == 1);
  o.explore = PLD_EXPLORE_RANDOM;
  o.schedules = 7;
  CHECK_OK(run(p, &o, &found, &report));
  CHECK(report.schedules == 7 && report.complete == 0);
  /* A time that is up at once. */
  o.schedules = UINT64_MAX;
  o.time_limit_us = 1;
  CHECK_OK(pld_check(p, &o, collect, &found, NULL));
  /* More ranks, and several launches. */
  o = defaults();
  o.nranks = 5;
  o.launches = 3;
  o.schedules = 20;
  CHECK_OK(run(p, &o, &found, &report));
  /* In a persistent executable the second launch goes by what the first one has left. */
  o.persistent = 1;
  CHECK_STATUS(PLD_ERR_CHECK, run(p, &o, &found, &report));
  CHECK_CONTAINS(found.codes, "PLD-C012 ");
  pld_program_destroy(p);
}

static void rules_of_the_verifier(void) {
  struct found found;
  pld_check_report_t report;
  pld_check_options_t o = defaults();
  pld_program_t *p = parsed(
      "program two\n"
      "entry e(arrived: window[1] i32, me: i32) {\n"
      "  at meet {\n"
      "    if me == 0 { notify arrived[0] @1 += 1 }\n"
      "    if me == 1 { wait arrived[0] >= 1 }\n"
      "  }\n"
      "}\n"
      "host () {\n"
      "  arrived_buf = alloc_window [1] i32\n"
      "  ranks r in 0..world {\n"
      "    arrived = window arrived_buf [1] i32\n"
      "    dispatch e(arrived, r) device r\n"
      "  }\n"
      "}\n");
  CHECK_OK(run(p, NULL, &found, &report));
  o.nranks = 1;
  CHECK_STATUS(PLD_ERR_VERIFY, run(p, &o, &found, &report));
  CHECK_CONTAINS(found.codes, "PLD-V034 ");
  CHECK(found.errors == 1 && found.schedule[0] == '\0');
  pld_program_destroy(p);
}

static void memory_models(void) {
  struct found found;
  pld_check_report_t report;
  pld_check_options_t o = defaults();
  pld_program_t *p = parsed(
      "program stores\n"
      "entry e(x: tensor[1, 4] i32 in, y: tensor[1, 4] i32 out, inbox: window[1, 4] i32,\n"
      "        arrived: window[1] i32, me: i32) {\n"
      "  push = at push {\n"
      "    t = load x[0, 0] [1, 4]\n"
      "    remote_store t -> inbox[0, 0] @((me + 1) % world)\n"
      "  }\n"
      "  told = at tell deps [push] { notify arrived[0] @((me + 1) % world) += 1 }\n"
      "  at collect deps [told] {\n"
      "    wait arrived[0] >= 1\n"
      "    t = load inbox[0, 0] [1, 4]\n"
      "    store t -> y[0, 0]\n"
      "  }\n"
      "}\n"
      "host (xs: tensor[world, 1, 4] i32 in, ys: tensor[world, 1, 4] i32 out) {\n"
      "  inbox_buf = alloc_window [1, 4] i32\n"
      "  arrived_buf = alloc_window [1] i32\n"
      "  ranks r in 0..world {\n"
      "    inbox = window inbox_buf [1, 4] i32\n"
      "    arrived = window arrived_buf [1] i32\n"
      "    dispatch e(xs[r], ys[r], inbox, arrived, r) device r\n"
      "  }\n"
      "}\n");
  CHECK_OK(run(p, NULL, &found, &report));
  o.memory = PLD_MEMORY_HOST;
  CHECK_OK(run(p, &o, &found, &report));
  o.memory = PLD_MEMORY_NPU;
  CHECK_STATUS(PLD_ERR_CHECK, run(p, &o, &found, &report));
  CHECK_CONTAINS(found.codes, "PLD-C006 ");
  pld_program_destroy(p);
}

/* What a function of the engine gets, and what it should. */
struct seen {
  const int32_t *expected; /* of rank 0 in the first launch; counts up from there */
  int64_t rows;
  int64_t epoch;
  int refuse;
  unsigned ranks, launches, calls;
  const void *not_here;
};

static int32_t look(const pld_task_context_t *context, void *user_data) {
  struct seen *seen = (struct seen *)user_data;
  const pld_task_tensor_t *x = pld_context_tensor(context, 0), *y = pld_context_tensor(context, 1);
  int64_t i;
  seen->calls++;
  seen->ranks |= 1u << context->rank;
  seen->launches |= 1u << context->launch;
  if (strcmp(context->name, "look") != 0 || context->nranks != RANKS || context->blocks != 1) return 2;
  if (x->ndims != 1 || x->dtype != PLD_DTYPE_I32 || x->shape[0] != seen->rows || x->strides[0] != 1) return 3;
  if (x->data == seen->not_here || y->data == seen->not_here) return 4;
  if (pld_context_int(context, 0) != (seen->epoch != 0 ? seen->epoch : (int64_t)context->launch)) return 5;
  if (pld_context_float(context, 1) != 0.5) return 6;
  if (seen->expected != NULL)
    for (i = 0; i < x->shape[0]; i++)
      if (((const int32_t *)x->data)[i] != seen->expected[(int64_t)context->rank * seen->rows + i]) return 7;
  for (i = 0; i < x->shape[0]; i++) ((int32_t *)y->data)[i] = ((const int32_t *)x->data)[i] + 1;
  return seen->refuse;
}

static pld_program_t *looking(void) {
  return parsed(
      "program looking\n"
      "dim n\n"
      "entry e(x: tensor[n] i32 in, y: tensor[n] i32 out, inbox: window[1] i32, arrived: window[1] i32,\n"
      "        me: i32, epoch: i32, s: f32) {\n"
      "  made = extern look(x in, y out, epoch, s)\n"
      "  at exchange deps [made] {\n"
      "    put inbox[0] @((me + 1) % world) <- y[0] [1]\n"
      "    notify arrived[0] @((me + 1) % world) += 1\n"
      "    wait arrived[0] >= 1\n"
      "    y[0] = inbox[0]\n"
      "  }\n"
      "}\n"
      "host (xs: tensor[world, n] i32 in, ys: tensor[world, n] i32 out, epoch: i32, s: f32) {\n"
      "  inbox_buf = alloc_window [1] i32\n"
      "  arrived_buf = alloc_window [1] i32\n"
      "  ranks r in 0..world {\n"
      "    inbox = window inbox_buf [1] i32\n"
      "    arrived = window arrived_buf [1] i32\n"
      "    dispatch e(xs[r], ys[r], inbox, arrived, r, epoch, s) device r\n"
      "  }\n"
      "}\n");
}

static void inputs(void) {
  static const int32_t iota[RANKS][4] = {{100003, 100004, 100005, 100006}, {200006, 200007, 200008, 200009}};
  int32_t x[RANKS][3] = {{1, 2, 3}, {4, 5, 6}}, y[RANKS][3] = {{7, 7, 7}, {7, 7, 7}};
  struct seen seen;
  struct found found;
  pld_check_report_t report;
  pld_check_options_t o = defaults();
  pld_callback_t function;
  pld_arg_t args[8];
  pld_tensor_arg_t parts[RANKS];
  pld_program_t *p = looking();
  memset(&seen, 0, sizeof seen);
  function.name = "look";
  function.function = look;
  function.user_data = &seen;
  o.schedules = 4;

  /* No function is needed, nor any argument. */
  CHECK_OK(run(p, &o, &found, &report));
  CHECK(seen.calls == 0);

  /* All but a float is made up. */
  o.callbacks = &function;
  o.ncallbacks = 1;
  args[0] = args[1] = args[2] = pld_arg_generated();
  args[3] = pld_arg_float(0.5);
  o.args = args;
  o.nargs = 4;
  seen.rows = 4;
  seen.expected = iota[0];
  CHECK_OK(run(p, &o, &found, &report));
  CHECK(seen.calls >= RANKS && seen.ranks == 3 && seen.launches == 2);
  seen.expected = NULL;
  o.launches = 2;
  o.fill = PLD_FILL_RANDOM;
  o.seed = 3;
  CHECK_OK(run(p, &o, &found, &report));
  CHECK(seen.launches == 6);

  /* All is given, and left alone. */
  o = defaults();
  o.schedules = 4;
  o.launches = 2;
  o.callbacks = &function;
  o.ncallbacks = 1;
  o.args = args;
  o.nargs = 4;
  args[0] = pld_arg_tensor(x, PLD_DTYPE_I32, PLD_DIMS(RANKS, 3));
  args[1] = pld_arg_tensor(y, PLD_DTYPE_I32, PLD_DIMS(RANKS, 3));
  args[2] = pld_arg_int(9);
  seen.rows = 3;
  seen.epoch = 9;
  seen.expected = x[0];
  seen.not_here = x;
  CHECK_OK(run(p, &o, &found, &report));
  CHECK(y[0][0] == 7 && y[1][2] == 7);

  /* As parts; a tensor of which only the shape is given; a set for each launch. */
  parts[0] = pld_tensor_of(x[0], PLD_DTYPE_I32, PLD_DIMS(3));
  parts[1] = pld_tensor_of(x[1], PLD_DTYPE_I32, PLD_DIMS(3));
  args[0] = pld_arg_parts(parts, RANKS);
  args[1] = pld_arg_tensor(NULL, PLD_DTYPE_I32, PLD_DIMS(RANKS, 3));
  args[2] = pld_arg_generated();
  seen.epoch = 0;
  memcpy(args + 4, args, 4 * sizeof args[0]);
  o.nargs = 8;
  CHECK_OK(run(p, &o, &found, &report));

  /* What a function refuses is found, with what it returned. */
  seen.refuse = 77;
  CHECK_STATUS(PLD_ERR_CHECK, run(p, &o, &found, &report));
  CHECK_CONTAINS(found.codes, "PLD-C009 ");
  CHECK_CONTAINS(found.text, "77");
  CHECK_CONTAINS(found.text, "look");
  pld_program_destroy(p);
}

/* As a function that the program was built with, on the host too. */
static int32_t sum_up(const pld_task_context_t *context, void *user_data) {
  const pld_task_tensor_t *ys = pld_context_tensor(context, 0);
  CHECK(ys->ndims == 2 && ys->shape[0] == RANKS && ys->shape[1] == D);
  *(float *)user_data = ((const float *)ys->data)[0] + ((const float *)ys->data)[D];
  return 0;
}

static int32_t double_up(const pld_task_context_t *context, void *user_data) {
  const pld_task_tensor_t *x = pld_context_tensor(context, 0), *y = pld_context_tensor(context, 1);
  (void)user_data;
  ((float *)y->data)[context->block] = 2 * ((const float *)x->data)[context->block];
  return 0;
}

static void built_in_functions(void) {
  float sum = 0, x[RANKS][D] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
  struct found found;
  pld_check_report_t report;
  pld_check_options_t o = defaults();
  pld_arg_t args[2];
  pld_program_t *p = pld_program_create("functions");
  pld_entry_t e = pld_entry_begin(p, "e");
  pld_tensor_t in = pld_param_tensor(p, "x", PLD_DTYPE_F32, PLD_DIMS(D), PLD_IN), xs;
  pld_tensor_t out = pld_param_tensor(p, "y", PLD_DTYPE_F32, PLD_DIMS(D), PLD_OUT), ys;
  pld_scalar_t r;
  pld_extern_task(p, "double_up", double_up, NULL, PLD_CALLBACK_ARGS(pld_in(in), pld_out(out)), PLD_INT(1), NULL);
  pld_entry_end(p);
  xs = pld_host_tensor(p, "xs", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, D), PLD_IN);
  ys = pld_host_tensor(p, "ys", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, D), PLD_OUT);
  r = pld_ranks_begin(p, PLD_INT(0), pld_world_size(p));
  pld_dispatch(p, e, r, PLD_ARGS(pld_of_tensor(pld_slice_rank(p, xs, r)), pld_of_tensor(pld_slice_rank(p, ys, r))));
  pld_ranks_end(p);
  pld_host_task(p, "sum_up", sum_up, &sum, PLD_CALLBACK_ARGS(pld_in(ys)));
  CHECK_OK(pld_program_finish(p, test_print_diagnostic, NULL));
  args[0] = pld_arg_tensor(x, PLD_DTYPE_F32, PLD_DIMS(RANKS, D));
  args[1] = pld_arg_generated();
  o.args = args;
  o.nargs = 2;
  CHECK_OK(run(p, &o, &found, &report));
  CHECK(sum == 12);
  pld_program_destroy(p);
}

/* The check is refused, and says what is wrong. */
static void refused(const pld_program_t *p, const pld_check_options_t *o, const char *part) {
  struct found found;
  pld_check_report_t report;
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, run(p, o, &found, &report));
  CHECK_ERROR(part);
  CHECK(found.codes[0] == '\0');
}

static void bad_options(void) {
  static const char *const schedules[] = {"", "7", "random:", "pct:x", "first:", "first:2=1,1=1"};
  pld_program_t *p = looking();
  pld_callback_t function;
  pld_check_options_t o = defaults();
  pld_arg_t args[12];
  float wrong[RANKS][4] = {{0}};
  size_t i;
  o.nranks = 257;
  refused(p, &o, "nranks is 257");
  o = defaults();
  o.launches = 1001;
  refused(p, &o, "launches is 1001");
  o = defaults();
  o.memory = 3;
  refused(p, &o, "memory is 3");
  o = defaults();
  o.explore = 4;
  refused(p, &o, "explore is 4");
  o = defaults();
  o.fill = 2;
  refused(p, &o, "fill is 2");
  o = defaults();
  for (i = 0; i < COUNT(schedules); i++) {
    o.replay = schedules[i];
    refused(p, &o, "replay");
  }
  o = defaults();
  o.ncallbacks = 1;
  refused(p, &o, "callbacks is NULL");
  function.name = "overlook";
  function.function = look;
  function.user_data = NULL;
  o.callbacks = &function;
  refused(p, &o, "\"overlook\" is no extern or host task");
  function.name = NULL;
  refused(p, &o, "the name of callback 0 is NULL");
  function.name = "look";
  function.function = NULL;
  refused(p, &o, "\"look\" is NULL");

  o = defaults();
  o.nargs = 4;
  refused(p, &o, "args is NULL");
  for (i = 0; i < COUNT(args); i++) args[i] = pld_arg_generated();
  o.args = args;
  o.nargs = 3;
  refused(p, &o, "3 arguments are given, the program takes 4 (xs, ys, epoch, s)");
  o.nargs = 8;
  refused(p, &o, "8 arguments are given");
  o.launches = 3;
  refused(p, &o, "or 12 for 3 launches");
  o.nargs = 12;
  args[6] = pld_arg_float(1);
  refused(p, &o, "launch 2: argument epoch is the float 1");
  o.nargs = 4;
  args[0] = pld_arg_tensor(wrong, PLD_DTYPE_F32, PLD_DIMS(RANKS, 4));
  refused(p, &o, "argument xs is f32, not i32");
  args[0] = pld_arg_tensor(wrong, PLD_DTYPE_I32, PLD_DIMS(RANKS + 1, 2));
  refused(p, &o, "argument xs has the extent 3 in dimension 0");
  args[0] = pld_arg_tensor(wrong, PLD_DTYPE_I32, PLD_DIMS(RANKS, 4));
  args[0].tensor.strides[0] = 1;
  args[0].tensor.strides[1] = 2;
  refused(p, &o, "argument 0: the tensor is not contiguous");
  args[0] = pld_arg_tensor(wrong, PLD_DTYPE_I32, PLD_DIMS(INT64_MAX, INT64_MAX));
  refused(p, &o, "argument 0: a tensor of shape");
  args[0] = pld_arg_parts(NULL, RANKS);
  refused(p, &o, "argument 0: parts is NULL");
  args[0] = pld_arg_int(1);
  args[0].kind = 99;
  refused(p, &o, "argument 0: kind 99 is unknown");
  {
    pld_world_t *world = test_world(RANKS, 0);
    pld_resident_t *resident = NULL;
    CHECK_OK(pld_resident_create_stacked(world, PLD_DTYPE_I32, PLD_DIMS(4), &resident));
    args[0] = pld_arg_resident(resident);
    refused(p, &o, "argument 0: a resident");
    pld_resident_destroy(resident);
    pld_world_destroy(world);
  }
  pld_program_destroy(p);
}

/* Structs of other versions. */
static void sizes(void) {
  struct {
    pld_check_report_t report;
    uint32_t tail[4];
  } longer;
  struct {
    pld_check_options_t options;
    uint32_t tail[4];
  } o;
  int put_line, load_line;
  pld_program_t *p = shift(0, &put_line, &load_line);
  CHECK_OK(pld_program_finish(p, test_print_diagnostic, NULL));
  memset(&longer, 0xee, sizeof longer);
  longer.report.struct_size = (uint32_t)sizeof longer.report + 8;
  CHECK_OK(pld_check(p, NULL, NULL, NULL, &longer.report));
  CHECK(longer.report.schedules > 0 && longer.report.errors == 0);
  CHECK(longer.tail[0] == 0 && longer.tail[1] == 0 && longer.tail[2] == 0xeeeeeeee);
  memset(&longer, 0xee, sizeof longer);
  longer.report.struct_size = 16;
  CHECK_OK(pld_check(p, NULL, NULL, NULL, &longer.report));
  CHECK(longer.report.struct_size == 16 && longer.report.schedules > 0 && longer.report.errors == 0xeeeeeeee);
  longer.report.struct_size = 0;
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_check(p, NULL, NULL, NULL, &longer.report));
  CHECK_ERROR("out_report");

  memset(&o, 0xee, sizeof o);
  CHECK_OK(pld_check_options_init(&o.options, sizeof o.options));
  CHECK(o.options.struct_size == sizeof o.options && o.options.nranks == 0 && o.tail[0] == 0xeeeeeeee);
  memset(o.tail, 0, sizeof o.tail);
  o.options.struct_size = (uint32_t)sizeof o;
  CHECK_OK(pld_check(p, &o.options, NULL, NULL, NULL));
  o.tail[3] = 1;
  CHECK_STATUS(PLD_ERR_VERSION, pld_check(p, &o.options, NULL, NULL, NULL));
  o.options.struct_size = 8;
  o.options.launches = 9999;
  CHECK_OK(pld_check(p, &o.options, NULL, NULL, NULL));
  o.options.struct_size = 3;
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_check(p, &o.options, NULL, NULL, NULL));
  CHECK_ERROR("pld_check_options_init");
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_check_options_init(&o.options, 0));
  pld_program_destroy(p);
}

int main(void) {
  test_deadline(120);
  bad_options();
  a_race();
  a_clean_program();
  rules_of_the_verifier();
  memory_models();
  inputs();
  built_in_functions();
  sizes();
  return 0;
}
