/* The task graph: options, grids, manual parts, deferred waits, and the engine's own functions. */
#include "pld_test.h"

static int32_t collect(const char *text, size_t size, void *user_data) {
  strncat((char *)user_data, text, size);
  return 0;
}

static const char *printed(const pld_program_t *p) {
  static char text[65536];
  text[0] = '\0';
  CHECK_OK(pld_program_print(p, collect, text));
  return text;
}

static int32_t gemm(const pld_task_context_t *context, void *user_data) {
  (void)context;
  (void)user_data;
  return 0;
}

static int32_t check(const pld_task_context_t *context, void *user_data) {
  (void)user_data;
  return context->blocks == 1 ? 0 : 2;
}

/* x[block] += rank * 100 + value, and the limit is not passed. */
static int32_t shift(const pld_task_context_t *context, void *user_data) {
  const pld_task_tensor_t *x = pld_context_tensor(context, 0);
  float *element = (float *)x->data + context->block * x->strides[0];
  const double limit = *(const double *)user_data;
  *element += (float)(context->rank * 100) + (float)pld_context_float(context, 0);
  return *element > limit ? 5 : 0;
}

/* Sums up what the ranks have done. */
static int32_t report(const pld_task_context_t *context, void *user_data) {
  const pld_task_tensor_t *xs = pld_context_tensor(context, 0);
  int64_t i;
  double *sum = (double *)user_data;
  *sum = (double)pld_context_int(context, 0);
  for (i = 0; i < xs->shape[0] * xs->shape[1]; i++) *sum += ((const float *)xs->data)[i];
  return 0;
}

static pld_program_t *everything(void *user_data) {
  const pld_scalar_t zero = PLD_INT(0);
  pld_program_t *p = pld_program_create("tasks");
  pld_entry_t e = pld_entry_begin(p, "e");
  pld_tensor_t x = pld_param_tensor(p, "x", PLD_DTYPE_F32, PLD_DIMS(8, 64), PLD_IN);
  pld_tensor_t y = pld_param_tensor(p, "y", PLD_DTYPE_F32, PLD_DIMS(8, 64), PLD_OUT);
  pld_tensor_t w = pld_param_window(p, "w", PLD_DTYPE_F32, PLD_DIMS(8, 64));
  pld_tensor_t sig = pld_param_window(p, "sig", PLD_DTYPE_I32, PLD_DIMS(1));
  pld_tensor_t flags = pld_param_window(p, "flags", PLD_DTYPE_I32, PLD_DIMS(1));
  pld_scalar_t me = pld_param_scalar(p, "me", PLD_DTYPE_I32), b;
  pld_task_t push, arrived, done, product;
  pld_tensor_t xs, ys;
  pld_manual_dep(p, w);

  {
    const pld_scalar_t first[] = {zero};
    const pld_tensor_t free_of[] = {w};
    pld_predicate_t flagged = pld_predicate(flags, first, COUNT(first), PLD_CMP_GE, 0);
    pld_task_options_t o = pld_task_defaults();
    CHECK(o.struct_size == sizeof o);
    o.no_dep = free_of;
    o.n_no_dep = COUNT(free_of);
    o.predicate = &flagged;
    o.allow_early_resolve = 1;
    b = pld_let(p, "b", pld_spmd_begin(p, "push", PLD_INT(8), &o));
    CHECK(pld_block_index(p).id == b.id);
    pld_put(p, w, me, x, PLD_REGION(PLD_AT(b, zero), PLD_AT(b, zero), PLD_DIMS(1, 64)));
    pld_notify(p, sig, me, PLD_AT(zero), PLD_INT(1), PLD_NOTIFY_ADD);
    push = pld_task_end(p);
    pld_task_name(p, push, "pushed");
  }
  pld_manual_begin(p);
  pld_at_begin(p, "arrive", PLD_DEPS(push));
  pld_defer_wait(p, sig, PLD_AT(zero), PLD_INT(8));
  arrived = pld_task_end(p);
  done = pld_join(p, "meet", PLD_TASKS(push, arrived));
  pld_manual_end(p);
  product = pld_extern_task(p, "gemm", gemm, user_data, PLD_CALLBACK_ARGS(pld_in(x), pld_inout(w), pld_value(me), pld_out(y)),
                            PLD_INT(4), PLD_DEPS(done));
  CHECK(push.id != 0 && arrived.id != 0 && done.id != 0 && product.id != 0 && push.id != product.id);
  pld_extern_task(p, "gemm", gemm, user_data, PLD_CALLBACK_ARGS(pld_in(x), pld_inout(w), pld_value(me), pld_out(y)),
                  PLD_INT(1), NULL);
  pld_entry_end(p);

  xs = pld_host_tensor(p, "xs", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, 8, 64), PLD_IN);
  ys = pld_host_tensor(p, "ys", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, 8, 64), PLD_OUT);
  {
    pld_buffer_t w_buf = pld_alloc_window(p, "w_buf", PLD_DTYPE_F32, PLD_DIMS(8, 64));
    pld_buffer_t sig_buf = pld_alloc_window(p, "sig_buf", PLD_DTYPE_I32, PLD_DIMS(1));
    pld_buffer_t flags_buf = pld_alloc_window(p, "flags_buf", PLD_DTYPE_I32, PLD_DIMS(1));
    pld_scalar_t r = pld_ranks_begin(p, zero, pld_world_size(p));
    pld_tensor_t w_view = pld_window(p, w_buf, PLD_DTYPE_F32, PLD_DIMS(8, 64));
    pld_tensor_t sig_view = pld_window(p, sig_buf, PLD_DTYPE_I32, PLD_DIMS(1));
    pld_tensor_t flags_view = pld_window(p, flags_buf, PLD_DTYPE_I32, PLD_DIMS(1));
    pld_dispatch(p, e, r,
                 PLD_ARGS(pld_of_tensor(pld_slice_rank(p, xs, r)), pld_of_tensor(pld_slice_rank(p, ys, r)),
                          pld_of_tensor(w_view), pld_of_tensor(sig_view), pld_of_tensor(flags_view), pld_of_scalar(r)));
    pld_ranks_end(p);
  }
  pld_host_task(p, "check", check, NULL, PLD_CALLBACK_ARGS(pld_in(ys), pld_value(pld_bool(p, 1))));
  return p;
}

static void prints(void) {
  static const char *const expected[] = {
      "w: window[8, 64] f32 manual",
      "pushed = spmd push [8] no_dep [w] predicate flags[0] >= 0 allow_early_resolve as b {",
      "manual {",
      " = at arrive deps [pushed] {",
      "defer_wait sig[0] >= 8",
      " = at meet deps [pushed, ",
      "extern gemm(x in, w inout, me, y out) [4] deps [",
      "extern gemm(x in, w inout, me, y out)\n",
      "host_task check(ys in, true)",
  };
  pld_program_t *p = everything(NULL), *again = NULL;
  const char *text;
  size_t i;
  CHECK_OK(pld_program_finish(p, test_print_diagnostic, NULL));
  text = printed(p);
  for (i = 0; i < COUNT(expected); i++) CHECK_CONTAINS(text, expected[i]);
  CHECK_OK(pld_program_parse(text, strlen(text), NULL, test_print_diagnostic, NULL, &again));
  pld_program_destroy(again);
  pld_program_destroy(p);
}

static void first_message(const pld_diagnostic_t *d, void *user_data) {
  char *message = (char *)user_data;
  if (message[0] == '\0') snprintf(message, 512, "%s %s", d->code, d->message);
}

/* The open entry is ended, and what was found first contains the text. */
static void mistaken(pld_program_t *p, const char *expected) {
  char message[512] = "";
  pld_entry_end(p);
  CHECK_STATUS(PLD_ERR_VERIFY, pld_program_finish(p, first_message, message));
  CHECK_CONTAINS(message, expected);
  pld_program_destroy(p);
}

static pld_program_t *begin(pld_tensor_t *x) {
  pld_program_t *p = pld_program_create("mistaken");
  pld_entry_begin(p, "e");
  *x = pld_param_tensor(p, "x", PLD_DTYPE_I32, PLD_DIMS(4), PLD_IN);
  return p;
}

static void options(pld_task_options_t o, const char *expected) {
  pld_tensor_t x;
  pld_program_t *p = begin(&x);
  pld_at_begin(p, "t", &o);
  pld_task_end(p);
  mistaken(p, expected);
}

static void mistakes(void) {
  pld_tensor_t x, zero_tensor = {0};
  pld_task_t foreign = {12345}, unset = {0};
  pld_scalar_t first[1];
  pld_predicate_t predicate;
  pld_task_options_t o = pld_task_defaults();
  pld_program_t *p;
  first[0] = PLD_INT(0);

  o.struct_size = 0;
  options(o, "struct_size is 0");
  o = pld_task_defaults();
  o.ndeps = 3;
  options(o, "deps is NULL, but its count is 3");
  o = pld_task_defaults();
  o.n_no_dep = 1;
  options(o, "no_dep is NULL, but its count is 1");
  options(pld_deps(&unset, 1), "a task of deps is no task: the handle is zero");
  options(pld_deps(&foreign, 1), "a task of deps is no task of this program");
  o = pld_task_defaults();
  predicate = pld_predicate(zero_tensor, first, 1, PLD_CMP_EQ, 0);
  o.predicate = &predicate;
  options(o, "the tensor of the predicate is no tensor");

  p = begin(&x);
  predicate = pld_predicate(x, first, 1, 7, 0);
  pld_at_begin(p, "t", &o);
  pld_task_end(p);
  mistaken(p, "comparison 7 is unknown");

  p = begin(&x);
  predicate = pld_predicate(x, NULL, 1, PLD_CMP_EQ, 0);
  pld_at_begin(p, "t", &o);
  pld_task_end(p);
  mistaken(p, "the list of offsets is NULL");

  p = begin(&x);
  CHECK(pld_task_end(p).id != 0);
  mistaken(p, "this ends a task");

  p = begin(&x);
  pld_at_begin(p, "t", NULL);
  CHECK(pld_block_index(p).id != 0);
  pld_task_end(p);
  mistaken(p, "the block index is asked for outside a grid");

  p = begin(&x);
  pld_task_name(p, pld_join(p, "j", NULL, 0), "at");
  mistaken(p, "it is a word of the language");

  p = begin(&x);
  pld_manual_begin(p);
  mistaken(p, "this ends a entry, but the innermost open block is a manual");

  p = begin(&x);
  pld_manual_dep(p, pld_slice(p, x, PLD_AT(PLD_INT(0)), PLD_DIMS(1)));
  mistaken(p, "only a parameter of an entry");

  p = begin(&x);
  pld_extern_task(p, "f", gemm, NULL, NULL, 2, PLD_INT(1), NULL);
  mistaken(p, "a NULL list of arguments with count 2");

  p = begin(&x);
  pld_extern_task(p, NULL, gemm, NULL, NULL, 0, PLD_INT(1), NULL);
  mistaken(p, "cannot name a task");

  p = begin(&x);
  pld_extern_task(p, "f", gemm, NULL, PLD_CALLBACK_ARGS(pld_callback_tensor(9, x)), PLD_INT(1), NULL);
  mistaken(p, "direction 9 is unknown");

  /* One name, one function: pointer and user data. */
  p = begin(&x);
  pld_extern_task(p, "f", gemm, NULL, NULL, 0, PLD_INT(1), NULL);
  pld_extern_task(p, "f", gemm, p, NULL, 0, PLD_INT(1), NULL);
  mistaken(p, "\"f\" already names another function");
  p = begin(&x);
  pld_extern_task(p, "f", gemm, NULL, NULL, 0, PLD_INT(1), NULL);
  pld_extern_task(p, "f", check, NULL, NULL, 0, PLD_INT(1), NULL);
  mistaken(p, "\"f\" already names another function");
}

/* Functions are given with the program, or when it is compiled. */
static void functions(void) {
  static const char text[] =
      "program parsed\n"
      "entry e(x: tensor[4] f32 inout) {\n"
      "  extern scale(x inout)\n"
      "  extern shift(x inout, 0.5) [4]\n"
      "}\n"
      "host (xs: tensor[world, 4] f32 inout, n: i32) {\n"
      "  ranks r in 0..world { dispatch e(xs[r]) device r }\n"
      "  host_task report(xs in, n)\n"
      "}\n";
  double limit = 200, sum = 0;
  float xs[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  pld_callback_t callbacks[4] = {{"scale", gemm, NULL}, {"report", report, NULL}, {"shift", shift, NULL}, {"shft", gemm, NULL}};
  pld_arg_t args[2];
  pld_world_t *world = test_world(2, 5000000);
  pld_program_t *p = NULL;
  pld_executable_t *x = NULL;
  pld_compile_options_t o;
  size_t i;
  CHECK_OK(pld_program_parse(text, sizeof text - 1, NULL, test_print_diagnostic, NULL, &p));
  CHECK_OK(pld_compile_options_init(&o, sizeof o));
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_compile(p, world, NULL, &x));
  CHECK_ERROR("\"report\" of program \"parsed\" has no function");
  o.callbacks = callbacks;
  o.ncallbacks = 2;
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_compile(p, world, &o, &x));
  CHECK_ERROR("\"shift\" of program \"parsed\" has no function");
  o.ncallbacks = 4;
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_compile(p, world, &o, &x));
  CHECK_ERROR("\"shft\" is no extern or host task of program \"parsed\": it has report, scale, shift");
  o.ncallbacks = 3;
  callbacks[1].function = NULL;
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_compile(p, world, &o, &x));
  CHECK_ERROR("function \"report\" is NULL");
  callbacks[1].name = NULL;
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_compile(p, world, &o, &x));
  CHECK_ERROR("the name of callback 1 is NULL");
  o.callbacks = NULL;
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_compile(p, world, &o, &x));
  CHECK_ERROR("callbacks is NULL, but ncallbacks is 3");
  CHECK(x == NULL);

  callbacks[1].name = "report";
  callbacks[1].function = report;
  callbacks[1].user_data = &sum;
  callbacks[2].user_data = &limit;
  o.callbacks = callbacks;
  args[0] = pld_arg_tensor(xs, PLD_DTYPE_F32, PLD_DIMS(2, 4));
  args[1] = pld_arg_int(1000);
  CHECK_OK(pld_compile(p, world, &o, &x));
  CHECK_OK(pld_launch(x, args, COUNT(args)));
  for (i = 0; i < COUNT(xs); i++) CHECK(xs[i] == (float)i + (float)(i / 4 * 100) + 0.5f);
  CHECK(sum == 1000 + 28 + 400 + 4);
  CHECK_STATUS(PLD_ERR_CALLBACK, pld_launch(x, args, COUNT(args)));
  CHECK_ERROR("rank 1: function shift returned 5");
  pld_executable_destroy(x);
  pld_program_destroy(p);
  pld_world_destroy(world);
}

/* What a function of the engine reads from its context. */
static void contexts(void) {
  const int64_t extents[] = {3, 4};
  const pld_task_tensor_t tensors[] = {{NULL, PLD_DTYPE_F32, 2, extents, extents}, {NULL, PLD_DTYPE_I8, 1, extents, extents}};
  int64_t scalars[3];
  const double half = -0.5;
  pld_task_context_t context;
  scalars[0] = -7;
  memcpy(&scalars[1], &half, sizeof half);
  scalars[2] = 1;
  memset(&context, 0, sizeof context);
  context.tensors = tensors;
  context.ntensors = COUNT(tensors);
  context.scalars = scalars;
  context.nscalars = COUNT(scalars);
  CHECK(pld_context_tensor(&context, 1)->dtype == PLD_DTYPE_I8 && pld_context_tensor(&context, 2) == NULL);
  CHECK(pld_context_int(&context, 0) == -7 && pld_context_int(&context, 2) == 1 && pld_context_int(&context, 3) == 0);
  CHECK(pld_context_float(&context, 1) == -0.5 && pld_context_float(&context, 9) == 0.0);
}

int main(void) {
  test_deadline(60);
  prints();
  mistakes();
  functions();
  contexts();
  return 0;
}
