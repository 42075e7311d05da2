/* An inference engine in small: what docs/engine.md tells, in one file that runs.
 *
 * Each layer multiplies by this rank's share of the weights, which is the engine's own function, and adds up the products
 * of all ranks. Programs are built and compiled once: one for a prompt of several rows, one for a single row; both use
 * the same windows. Then each step runs all layers. In the third step one rank's function fails on purpose, and the
 * engine recovers.
 *
 *   cmake -S examples/c -B build/examples -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/examples
 *   build/examples/engine                              two ranks, threads of this process
 *   build/examples/engine --ranks 4 --processes        four ranks, a process each
 *   build/examples/engine --trace engine.trace         writes what its ranks do when, for Perfetto
 *   build/examples/engine --check                      what a unit test of the engine does
 */
#include "exchange.h"

enum { LAYERS = 4, STEPS = 6, PROMPT = 8, D = 64, BLOCKS = 2, FAILING_STEP = 3, FAILING_LAYER = 1, MOST_FAILURES = 3 };

/* What a layer is given. */
enum { X, WEIGHTS, Y, PRODUCT, PARTS, ARRIVED, FIELDS };

typedef struct {
  ranks_t ranks;
  pld_executable_t *prefill, *decode, *agree;
  pld_resident_t *weights[LAYERS];
  float *x, *y;     /* a part of [PROMPT, D] for each rank of this process */
  int32_t epoch;    /* layers since the windows were zeroed */
  int fails;        /* the function of the last rank returns an error */
} engine_t;

/* Small whole numbers, so that sums are exact. */
static float weight(uint32_t layer, uint32_t rank, size_t place) {
  return (float)((place * 7 + place / D * 3 + layer * 5 + rank * 11) % 3);
}

static float activation(float value) { return fmodf(value, 251); }

/* product = activation(x) * weights: the columns of one block. */
static int32_t multiply(const pld_task_context_t *context, void *user_data) {
  const engine_t *engine = (const engine_t *)user_data;
  const pld_task_tensor_t *x = pld_context_tensor(context, 0), *product = pld_context_tensor(context, 2);
  const float *in = (const float *)x->data;
  const float *weights = (const float *)pld_context_tensor(context, 1)->data;
  float *out = (float *)product->data;
  const int64_t first = context->block * (D / context->blocks), end = first + D / context->blocks;
  int64_t row, k, column;
  if (engine->fails && context->rank + 1 == context->nranks) return 7;
  for (row = 0; row < x->shape[0]; row++)
    for (column = first; column < end; column++) {
      float sum = 0;
      for (k = 0; k < D; k++) sum += activation(in[row * D + k]) * weights[k * D + column];
      out[row * product->strides[0] + column] = sum;
    }
  return 0;
}

/* One layer for so many rows. Ranks push their products to all, into halves of `parts` that calls use in turn: a rank
 * ends a call with all products of it, so none is more than one call ahead. */
static pld_program_t *layer_program(const char *name, int64_t nrows, engine_t *engine) {
  pld_program_t *p = pld_program_create(name);
  pld_scalar_t zero = PLD_INT(0), world = pld_world_size(p), me, epoch, base, peer, src, row, from;
  pld_tensor_t f[FIELDS], product;
  pld_task_t pushed, arrived;
  pld_tile_t sum;
  const field_t fields[FIELDS] = {
      {"x", PLD_DTYPE_F32, PLD_IN, nrows, D},
      {"weights", PLD_DTYPE_F32, PLD_IN, D, D},
      {"y", PLD_DTYPE_F32, PLD_OUT, nrows, D},
      {"product", PLD_DTYPE_F32, WINDOW, PROMPT, D},
      {"parts", PLD_DTYPE_F32, WINDOW, pld_dim_of(p, pld_mul(p, world, PLD_INT(2 * PROMPT))), D},
      {"arrived", PLD_DTYPE_I32, WINDOW, 1, PLD_WORLD},
  };
  pld_entry_t entry = exchange_entry_begin(p, "layer", fields, FIELDS, f, &me, &epoch);
  base = pld_let(p, "base", pld_mul(p, pld_mul(p, pld_mod(p, epoch, PLD_INT(2)), world), PLD_INT(PROMPT)));
  product = pld_slice(p, f[PRODUCT], PLD_AT(zero, zero), PLD_DIMS(nrows, D));
  pld_extern_task(p, "multiply", multiply, engine, PLD_CALLBACK_ARGS(pld_in(f[X]), pld_in(f[WEIGHTS]), pld_out(product)),
                  PLD_INT(BLOCKS), NULL);

  pld_at_begin(p, "push", NULL);
  from = pld_add(p, base, pld_mul(p, me, PLD_INT(PROMPT)));
  peer = exchange_for(p, "peer", zero, world);
  pld_put(p, f[PARTS], peer, product, PLD_REGION(PLD_AT(from, zero), PLD_AT(zero, zero), PLD_DIMS(nrows, D)));
  pld_notify(p, f[ARRIVED], peer, PLD_AT(zero, me), PLD_INT(1), PLD_NOTIFY_ADD);
  pld_for_end(p);
  pushed = pld_task_end(p);

  pld_at_begin(p, "arrive", PLD_DEPS(pushed));
  src = exchange_for(p, "src", zero, world);
  pld_defer_wait(p, f[ARRIVED], PLD_AT(zero, src), epoch);
  pld_for_end(p);
  arrived = pld_task_end(p);

  pld_at_begin(p, "add_up", PLD_DEPS(arrived));
  row = exchange_for(p, "row", zero, PLD_INT(nrows));
  sum = pld_load(p, f[PARTS], PLD_AT(pld_add(p, base, row), zero), PLD_DIMS(1, D));
  pld_tile_name(p, sum, "sum");
  src = exchange_for(p, "src", PLD_INT(1), world);
  from = pld_sum(p, base, pld_mul(p, src, PLD_INT(PROMPT)), row);
  pld_tile_assign(p, sum, pld_tile_add(p, sum, pld_load(p, f[PARTS], PLD_AT(from, zero), PLD_DIMS(1, D))));
  pld_for_end(p);
  pld_store(p, sum, f[Y], PLD_AT(row, zero));
  pld_for_end(p);
  pld_task_end(p);
  pld_entry_end(p);
  exchange_host(p, entry, fields, FIELDS);
  OK(pld_program_finish(p, example_diagnostic, NULL));
  return p;
}

/* The least step of all ranks. */
static pld_program_t *agree_program(void) {
  pld_program_t *p = pld_program_create("agree");
  pld_entry_t entry = pld_entry_begin(p, "agree");
  pld_tensor_t step = pld_param_tensor(p, "step", PLD_DTYPE_I32, PLD_DIMS(1), PLD_IN);
  pld_tensor_t agreed = pld_param_tensor(p, "agreed", PLD_DTYPE_I32, PLD_DIMS(1), PLD_OUT);
  pld_tensor_t least = pld_param_window(p, "least", PLD_DTYPE_I32, PLD_DIMS(1));
  pld_at_begin(p, "agree", NULL);
  pld_write(p, least, PLD_AT(PLD_INT(0)), pld_read(p, step, PLD_AT(PLD_INT(0))));
  pld_allreduce(p, least, PLD_COMBINE_MIN, NULL);
  pld_write(p, agreed, PLD_AT(PLD_INT(0)), pld_read(p, least, PLD_AT(PLD_INT(0))));
  pld_task_end(p);
  pld_entry_end(p);

  pld_tensor_t steps = pld_host_tensor(p, "steps", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, 1), PLD_IN);
  pld_tensor_t all_agreed = pld_host_tensor(p, "all_agreed", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, 1), PLD_OUT);
  pld_buffer_t least_buf = pld_alloc_window(p, "least_buf", PLD_DTYPE_I32, PLD_DIMS(1));
  pld_scalar_t r = pld_let(p, "r", pld_ranks_begin(p, PLD_INT(0), pld_world_size(p)));
  pld_dispatch(p, entry, r,
               PLD_ARGS(pld_of_tensor(pld_slice_rank(p, steps, r)), pld_of_tensor(pld_slice_rank(p, all_agreed, r)),
                        pld_of_tensor(pld_window(p, least_buf, PLD_DTYPE_I32, PLD_DIMS(1)))));
  pld_ranks_end(p);
  OK(pld_program_finish(p, example_diagnostic, NULL));
  return p;
}

static void log_message(pld_log_level_t level, const char *message, void *user_data) {
  (void)user_data;
  fprintf(stderr, "pld: %s%s\n", level == PLD_LOG_ERROR ? "error: " : "", message);
}

/* One process a card: a rank of the launcher's world. Or all ranks in this process, for a test on one machine. */
static void start_world(engine_t *engine, pld_world_options_t *options) {
  ranks_t *ranks = &engine->ranks;
  options->timeout_us = 20 * 1000 * 1000;
  options->log = log_message;
  options->log_level = PLD_LOG_ERROR;
  ranks->processes = processes_is_rank();
  if (ranks->processes) {
    OK(pld_world_join(options, &ranks->world));
  } else {
    OK(pld_world_create(options, &ranks->world));
  }
  ranks->nranks = pld_world_nranks(ranks->world);
  ranks->first = ranks->processes ? (uint32_t)pld_world_rank(ranks->world) : 0;
  ranks->driven = ranks->processes ? 1 : ranks->nranks;
}

static pld_executable_t *compile(engine_t *engine, pld_program_t *p, const char *pool) {
  pld_compile_options_t options;
  pld_executable_t *executable;
  OK(pld_compile_options_init(&options, sizeof options));
  options.persistent = pool != NULL;
  options.pool = pool;
  OK(pld_compile(p, engine->ranks.world, &options, &executable));
  pld_program_destroy(p);
  return executable;
}

/* Everything that takes time or memory happens here, once. */
static void start_engine(engine_t *engine, pld_world_options_t *options) {
  float *shard = (float *)zeroed(D * D, sizeof *shard);
  uint32_t layer, rank;
  size_t i;
  start_world(engine, options);
  engine->prefill = compile(engine, layer_program("prefill", PROMPT, engine), "layers");
  engine->decode = compile(engine, layer_program("decode", 1, engine), "layers");
  engine->agree = compile(engine, agree_program(), NULL);
  for (layer = 0; layer < LAYERS; layer++) {
    pld_resident_t **weights = &engine->weights[layer];
    OK(pld_resident_create_stacked(engine->ranks.world, PLD_DTYPE_F32, PLD_DIMS(D, D), weights));
    for (rank = engine->ranks.first; rank < engine->ranks.first + engine->ranks.driven; rank++) {
      for (i = 0; i < D * D; i++) shard[i] = weight(layer, rank, i);
      OK(pld_resident_copy_in(*weights, rank, shard, D * D * sizeof *shard));
    }
  }
  free(shard);
  engine->x = (float *)ranks_parts(&engine->ranks, PROMPT * D, sizeof *engine->x);
  engine->y = (float *)ranks_parts(&engine->ranks, PROMPT * D, sizeof *engine->y);
}

static void stop_engine(engine_t *engine) {
  uint32_t layer;
  for (layer = 0; layer < LAYERS; layer++) pld_resident_destroy(engine->weights[layer]);
  pld_executable_destroy(engine->prefill);
  pld_executable_destroy(engine->decode);
  pld_executable_destroy(engine->agree);
  pld_world_destroy(engine->ranks.world);
  free(engine->x);
  free(engine->y);
}

/* One layer: y of every rank becomes the sum of all products of x. `meanwhile` is the engine's work while it runs. */
static pld_status_t run_layer(engine_t *engine, uint32_t layer, int64_t nrows, void (*meanwhile)(void *), void *work) {
  pld_executable_t *executable = nrows == 1 ? engine->decode : engine->prefill;
  pld_arg_t args[4];
  pld_run_t *run;
  pld_status_t status;
  float *swap;
  args[0] = ranks_arg(&engine->ranks, engine->x, PLD_DTYPE_F32, nrows, D);
  args[1] = pld_arg_resident(engine->weights[layer]);
  args[2] = ranks_arg(&engine->ranks, engine->y, PLD_DTYPE_F32, nrows, D);
  args[3] = pld_arg_int(++engine->epoch);
  status = pld_submit(executable, args, 4, &run);
  if (status != PLD_OK) return status;
  meanwhile(work);
  status = pld_run_wait(run, -1);
  pld_run_destroy(run);
  swap = engine->x, engine->x = engine->y, engine->y = swap;
  return status;
}

/* What all layers together should give, computed while they run: one row of all ranks. */
typedef struct {
  uint32_t layer, nranks;
  int64_t nrows;
  float values[PROMPT * D];
} reference_t;

static void advance_reference(void *work) {
  reference_t *reference = (reference_t *)work;
  float sums[D];
  int64_t row, k, column;
  uint32_t rank;
  for (row = 0; row < reference->nrows; row++) {
    float *values = &reference->values[row * D];
    memset(sums, 0, sizeof sums);
    for (rank = 0; rank < reference->nranks; rank++)
      for (k = 0; k < D; k++)
        for (column = 0; column < D; column++)
          sums[column] += activation(values[k]) * weight(reference->layer, rank, (size_t)(k * D + column));
    memcpy(values, sums, sizeof sums);
  }
}

/* A step: all layers on what the step begins with, which is the same on every rank. */
static pld_status_t run_step(engine_t *engine, uint32_t step, int fails) {
  const int64_t nrows = step == 1 ? PROMPT : 1;
  const size_t part = (size_t)(nrows * D);
  reference_t reference;
  size_t i;
  reference.nranks = engine->ranks.nranks;
  reference.nrows = nrows;
  for (i = 0; i < part; i++) reference.values[i] = (float)((i * 13 + step * 29) % 101);
  for (i = 0; i < engine->ranks.driven * part; i++) engine->x[i] = reference.values[i % part];
  for (reference.layer = 0; reference.layer < LAYERS; reference.layer++) {
    engine->fails = fails && reference.layer == FAILING_LAYER;
    pld_status_t status = run_layer(engine, reference.layer, nrows, advance_reference, &reference);
    engine->fails = 0;
    if (status != PLD_OK) return status;
  }
  for (i = 0; i < engine->ranks.driven * part; i++) {
    uint32_t rank = engine->ranks.first + (uint32_t)(i / part);
    if (engine->x[i] != reference.values[i % part])
      example_is_wrong("x", rank, i % part, engine->x[i], reference.values[i % part]);
  }
  return PLD_OK;
}

/* Reports why a launch failed. Some failures end the world: then all that is left is to start again in a new one. */
static void report(engine_t *engine, pld_status_t status, uint32_t step) {
  char message[4096];
  pld_last_error(message, sizeof message);
  fprintf(stderr, "step %u: %s: %s\n", step, pld_status_name(status), message);
  if (pld_world_status(engine->ranks.world) == PLD_OK) return;
  stop_engine(engine);
  exit(1);
}

/* Ranks may have noticed the failure in different launches, so they agree on the step to go on from. The first launch
 * after a failure is where all ranks meet; the windows of the layers are zeroed then, so counting begins anew. */
static uint32_t recover(engine_t *engine, uint32_t step) {
  int32_t *steps = (int32_t *)ranks_parts(&engine->ranks, 1, sizeof *steps);
  int32_t *agreed = (int32_t *)ranks_parts(&engine->ranks, 1, sizeof *agreed);
  const int64_t shape[] = {engine->ranks.nranks, 1};
  const int64_t *own = engine->ranks.processes ? shape + 1 : shape;
  const size_t ndims = engine->ranks.processes ? 1 : 2;
  pld_arg_t args[2];
  uint32_t rank;
  for (rank = 0; rank < engine->ranks.driven; rank++) steps[rank] = (int32_t)step;
  args[0] = pld_arg_tensor(steps, PLD_DTYPE_I32, own, ndims);
  args[1] = pld_arg_tensor(agreed, PLD_DTYPE_I32, own, ndims);
  OK(pld_launch(engine->agree, args, 2));
  engine->epoch = 0;
  step = (uint32_t)agreed[0];
  free(steps);
  free(agreed);
  return step;
}

static int run_engine(engine_t *engine) {
  uint32_t step = 1, failures = 0;
  while (step <= STEPS) {
    pld_status_t status = run_step(engine, step, step == FAILING_STEP && failures == 0);
    if (status == PLD_OK) {
      step++;
      continue;
    }
    report(engine, status, step);
    if (++failures > MOST_FAILURES) exit(1);
    step = recover(engine, step);
  }
  if (failures != 1) example_is_wrong("failures", engine->ranks.first, 0, failures, 1);
  if (engine->ranks.first == 0)
    printf("%d steps of %d layers on %u ranks, %u failure overcome\n", STEPS, LAYERS, engine->ranks.nranks, failures);
  return engine->ranks.first == 0 || example_wrong != 0 ? example_result("engine") : 0;
}

/* In a unit test: what can go wrong in the exchange, in any order of the ranks, over several layers. */
static int check_layers(engine_t *engine) {
  const int64_t nrows[] = {1, PROMPT};
  pld_check_options_t options;
  pld_check_report_t found = {sizeof found, 0, 0, 0, 0, 0};
  size_t i;
  OK(pld_check_options_init(&options, sizeof options));
  options.nranks = 3;
  options.launches = 3;
  options.persistent = 1;
  options.schedules = 50;
  for (i = 0; i < 2; i++) {
    pld_program_t *p = layer_program("layer", nrows[i], engine);
    OK(pld_check(p, &options, example_diagnostic, NULL, &found));
    example_check("findings", 0, i, found.errors + found.warnings, 0);
    pld_program_destroy(p);
  }
  return example_result("check");
}

int main(int argc, char **argv) {
  engine_t engine;
  pld_world_options_t options;
  int processes = 0, status, i;
  memset(&engine, 0, sizeof engine);
  OK(pld_world_options_init(&options, sizeof options));
  options.nranks = 2;
  for (i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--processes") == 0) {
      processes = 1;
    } else if (strcmp(argv[i], "--check") == 0) {
      return check_layers(&engine);
    } else if (strcmp(argv[i], "--trace") == 0 && i + 1 < argc) {
      options.trace = argv[++i];
    } else if (strcmp(argv[i], "--ranks") == 0 && i + 1 < argc && atoi(argv[i + 1]) > 0) {
      options.nranks = (uint32_t)atoi(argv[++i]);
    } else if (strcmp(argv[i], "--cores") == 0 && i + 1 < argc && atoi(argv[i + 1]) > 0) {
      options.cores_per_rank = (uint32_t)atoi(argv[++i]);
    } else {
      fprintf(stderr, "usage: engine [--ranks N] [--cores N] [--trace FILE] [--processes | --check]\n");
      return 2;
    }
  }
  if (processes && !processes_is_rank()) return processes_start(argv, options.nranks);
  if (processes_is_rank()) options.nranks = 0; /* the launcher says */
  start_engine(&engine, &options);
  status = run_engine(&engine);
  stop_engine(&engine);
  return status;
}
