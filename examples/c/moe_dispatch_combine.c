/* MoE dispatch and combine between the ranks of an expert-parallel world, called once a layer: the program of
 * examples/pld/moe_dispatch_combine.pld, whose comments explain the protocol, with an expert of the engine's own and a
 * reference computed on the host.
 *
 *   cmake -S examples/c -B build/examples -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/examples
 *   build/examples/moe_dispatch_combine                              two ranks, two steps of 60 layers
 *   build/examples/moe_dispatch_combine --ranks 4 --processes        four ranks, a process each
 *   build/examples/moe_dispatch_combine --launches 600 --cores 2     ten steps, two cores a rank
 */
#include "exchange.h"

enum {
  TOKENS = 128,
  TOPK = 8,
  ROUTES = TOKENS * TOPK,
  D = 4096,
  LOCAL_EXPERTS = 16,
  MAX_PER_SRC = TOKENS, /* rows of the lane that an expert keeps for each source */
  PAD = 8,
  BLOCKS = 4,
  LAYERS = 60,
  OTHER_LAYERS = 3 /* of each other kind of routing */
};

/* What the entry is given. */
enum {
  X, SCALES, INDICES, WEIGHTS, COUNT, OUT, /* of the launch */
  SENT, SLOTS, COUNTS, COUNTED, RECV_X, RECV_SCALE, RECV_WEIGHT, RECV_ROUTE, ARRIVED, FIRST, Y, ROUTED_Y, RETURNED,
  FIELDS
};

static uint16_t to_bf16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16); /* to nearest, ties to even */
}

static float of_bf16(uint16_t value) {
  uint32_t bits = (uint32_t)value << 16;
  float wide;
  memcpy(&wide, &bits, sizeof wide);
  return wide;
}

/* What an expert makes of a row: a different thing for each expert. */
static void answer(int64_t expert, const int8_t *x, float scale, float weight, uint16_t *y) {
  float factor = scale * (1.0f + 0.125f * (float)expert) * weight;
  int d;
  for (d = 0; d < D; d++) y[d] = to_bf16((float)x[d] * factor);
}

/* The engine's kernel, a block an expert: reads the lanes of the expert, writes its answers packed. */
static int32_t expert(const pld_task_context_t *context, void *user_data) {
  const pld_task_tensor_t *answers = pld_context_tensor(context, 5);
  const int8_t *x = (const int8_t *)pld_context_tensor(context, 0)->data;
  const float *scales = (const float *)pld_context_tensor(context, 1)->data;
  const float *weights = (const float *)pld_context_tensor(context, 2)->data;
  const int32_t *counts = (const int32_t *)pld_context_tensor(context, 3)->data;
  const int32_t *first = (const int32_t *)pld_context_tensor(context, 4)->data;
  int64_t e = context->block, src, i;
  (void)user_data;
  for (src = 0; src < context->nranks; src++) {
    int64_t lane = (e * context->nranks + src) * MAX_PER_SRC, to = first[e * context->nranks + src];
    int64_t rows = counts[src * LOCAL_EXPERTS + e];
    if (rows > MAX_PER_SRC || to + rows > answers->shape[0]) return 1;
    for (i = 0; i < rows; i++)
      answer(context->rank * LOCAL_EXPERTS + e, x + (lane + i) * D, scales[(lane + i) * PAD], weights[(lane + i) * PAD],
             (uint16_t *)answers->data + (to + i) * D);
  }
  return 0;
}

/* Which row of its lane each route takes, and how many rows each lane gets. */
static pld_task_t route(pld_program_t *p, const pld_tensor_t *f, pld_scalar_t me) {
  pld_scalar_t world = pld_world_size(p), zero = PLD_INT(0), t, k, e, dst, expert_id;
  pld_array_t rows;
  pld_at_begin(p, "route", NULL);
  rows = pld_array(p, "rows", PLD_DTYPE_I32, pld_dim_of(p, pld_mul(p, world, PLD_INT(LOCAL_EXPERTS))), zero);
  t = exchange_for(p, "t", zero, pld_clamp(p, pld_read(p, f[COUNT], PLD_AT(zero, zero)), zero, PLD_INT(TOKENS)));
  k = exchange_for(p, "k", zero, PLD_INT(TOPK));
  expert_id = pld_let(p, "eid", pld_read(p, f[INDICES], PLD_AT(t, k)));
  pld_write(p, f[SLOTS], PLD_AT(t, k), pld_array_get(p, rows, expert_id));
  pld_array_set(p, rows, expert_id, pld_add(p, pld_array_get(p, rows, expert_id), PLD_INT(1)));
  pld_for_end(p);
  pld_for_end(p);

  dst = exchange_for(p, "dst", zero, world);
  e = exchange_for(p, "e", zero, PLD_INT(LOCAL_EXPERTS));
  pld_write(p, f[SENT], PLD_AT(dst, e),
            pld_array_get(p, rows, pld_add(p, pld_mul(p, dst, PLD_INT(LOCAL_EXPERTS)), e)));
  pld_for_end(p);
  pld_put(p, f[COUNTS], dst, f[SENT], PLD_REGION(PLD_AT(me, zero), PLD_AT(dst, zero), PLD_DIMS(1, LOCAL_EXPERTS)));
  pld_if_begin(p, pld_ne(p, dst, me));
  pld_notify(p, f[COUNTED], dst, PLD_AT(me, zero), PLD_INT(1), PLD_NOTIFY_ADD);
  pld_if_end(p);
  pld_for_end(p);
  return pld_task_end(p);
}

/* A row of numbers that are all the same, beside a row of the payload. */
static void put_aux(pld_program_t *p, pld_tensor_t window, pld_scalar_t dst, pld_scalar_t row, pld_dtype_t dtype,
                    pld_scalar_t value) {
  pld_remote_store(p, pld_tile_full(p, dtype, PLD_DIMS(1, PAD), value), window, dst, PLD_AT(row, PLD_INT(0)), PLD_ATOMIC_NONE);
}

static pld_task_t push(pld_program_t *p, const pld_tensor_t *f, pld_scalar_t me) {
  pld_scalar_t zero = PLD_INT(0), b, t, k, eid, dst, lane, slot, row;
  pld_tensor_t lane_x;
  b = pld_let(p, "b", pld_spmd_begin(p, "push", PLD_INT(BLOCKS), NULL));
  t = pld_clamp(p, pld_read(p, f[COUNT], PLD_AT(zero, zero)), zero, PLD_INT(TOKENS));
  t = pld_let(p, "t", pld_for_step_begin(p, b, t, PLD_INT(BLOCKS)));
  k = exchange_for(p, "k", zero, PLD_INT(TOPK));
  eid = pld_let(p, "eid", pld_read(p, f[INDICES], PLD_AT(t, k)));
  dst = pld_let(p, "dst", pld_div(p, eid, PLD_INT(LOCAL_EXPERTS)));
  lane = pld_mul(p, pld_mod(p, eid, PLD_INT(LOCAL_EXPERTS)), pld_world_size(p));
  lane = pld_let(p, "lane", pld_mul(p, pld_add(p, lane, me), PLD_INT(MAX_PER_SRC)));
  slot = pld_let(p, "slot", pld_read(p, f[SLOTS], PLD_AT(t, k)));
  lane_x = pld_slice(p, f[RECV_X], PLD_AT(lane, zero), PLD_DIMS(MAX_PER_SRC, D));
  pld_put(p, lane_x, dst, f[X], PLD_REGION(PLD_AT(slot, zero), PLD_AT(t, zero), PLD_DIMS(1, D)));
  row = pld_let(p, "row", pld_add(p, lane, slot));
  put_aux(p, f[RECV_SCALE], dst, row, PLD_DTYPE_F32, pld_read(p, f[SCALES], PLD_AT(t, zero)));
  put_aux(p, f[RECV_WEIGHT], dst, row, PLD_DTYPE_F32, pld_read(p, f[WEIGHTS], PLD_AT(t, k)));
  put_aux(p, f[RECV_ROUTE], dst, row, PLD_DTYPE_I32, pld_add(p, pld_mul(p, t, PLD_INT(TOPK)), k));
  pld_for_end(p);
  pld_for_end(p);
  dst = exchange_others(p, "dst", me);
  pld_notify(p, f[ARRIVED], dst, PLD_AT(me, zero), PLD_INT(1), PLD_NOTIFY_ADD);
  exchange_others_end(p);
  return pld_task_end(p);
}

/* Where the answers to each lane begin in Y: expert by expert, packed. Needs the counts only. */
static pld_task_t place(pld_program_t *p, const pld_tensor_t *f, pld_scalar_t me, pld_scalar_t epoch, pld_task_t routed) {
  pld_scalar_t src, e, total_now;
  pld_var_t total;
  pld_at_begin(p, "place", PLD_DEPS(routed));
  src = exchange_others(p, "src", me);
  pld_wait(p, f[COUNTED], PLD_AT(src, PLD_INT(0)), epoch, PLD_WAIT_GE);
  exchange_others_end(p);
  total = pld_var(p, "total", PLD_DTYPE_I32, PLD_INT(0));
  e = exchange_for(p, "e", PLD_INT(0), PLD_INT(LOCAL_EXPERTS));
  src = exchange_for(p, "src", PLD_INT(0), pld_world_size(p));
  total_now = pld_var_get(p, total);
  pld_write(p, f[FIRST], PLD_AT(e, src), total_now);
  pld_var_set(p, total, pld_add(p, total_now, pld_read(p, f[COUNTS], PLD_AT(src, e))));
  pld_for_end(p);
  pld_for_end(p);
  return pld_task_end(p);
}

/* Over when every other rank has counted `expected` here; holds no core. */
static pld_task_t await(pld_program_t *p, const char *name, pld_tensor_t signal, pld_scalar_t me, pld_scalar_t expected,
                        pld_task_t after) {
  pld_scalar_t src;
  pld_at_begin(p, name, PLD_DEPS(after));
  src = exchange_others(p, "src", me);
  pld_defer_wait(p, signal, PLD_AT(src, PLD_INT(0)), expected);
  exchange_others_end(p);
  return pld_task_end(p);
}

/* Every row goes back to where it came from. */
static pld_task_t give_back(pld_program_t *p, const pld_tensor_t *f, pld_scalar_t me, pld_task_t answers) {
  pld_scalar_t zero = PLD_INT(0), e, src, lane, i, origin, from;
  e = pld_let(p, "e", pld_spmd_begin(p, "answer", PLD_INT(LOCAL_EXPERTS), PLD_DEPS(answers)));
  src = exchange_for(p, "src", zero, pld_world_size(p));
  lane = pld_mul(p, pld_add(p, pld_mul(p, e, pld_world_size(p)), src), PLD_INT(MAX_PER_SRC));
  lane = pld_let(p, "lane", lane);
  i = exchange_for(p, "i", zero, pld_read(p, f[COUNTS], PLD_AT(src, e)));
  origin = pld_read(p, f[RECV_ROUTE], PLD_AT(pld_add(p, lane, i), zero));
  from = pld_add(p, pld_read(p, f[FIRST], PLD_AT(e, src)), i);
  pld_put(p, f[ROUTED_Y], src, f[Y], PLD_REGION(PLD_AT(origin, zero), PLD_AT(from, zero), PLD_DIMS(1, D)));
  pld_for_end(p);
  pld_for_end(p);
  src = exchange_others(p, "src", me);
  pld_notify(p, f[RETURNED], src, PLD_AT(me, zero), PLD_INT(1), PLD_NOTIFY_ADD);
  exchange_others_end(p);
  return pld_task_end(p);
}

/* The sum of the answers to each token. */
static void combine(pld_program_t *p, const pld_tensor_t *f, pld_task_t gathered) {
  pld_scalar_t zero = PLD_INT(0), b, t, k;
  pld_tile_t sum, row;
  b = pld_let(p, "b", pld_spmd_begin(p, "combine", PLD_INT(BLOCKS), PLD_DEPS(gathered)));
  t = pld_clamp(p, pld_read(p, f[COUNT], PLD_AT(zero, zero)), zero, PLD_INT(TOKENS));
  t = pld_let(p, "t", pld_for_step_begin(p, b, t, PLD_INT(BLOCKS)));
  sum = pld_tile_full(p, PLD_DTYPE_F32, PLD_DIMS(1, D), pld_float(p, 0.0));
  pld_tile_name(p, sum, "sum");
  k = exchange_for(p, "k", zero, PLD_INT(TOPK));
  row = pld_load(p, f[ROUTED_Y], PLD_AT(pld_add(p, pld_mul(p, t, PLD_INT(TOPK)), k), zero), PLD_DIMS(1, D));
  pld_tile_assign(p, sum, pld_tile_add(p, sum, pld_tile_cast(p, row, PLD_DTYPE_F32)));
  pld_for_end(p);
  pld_store(p, sum, f[OUT], PLD_AT(t, zero));
  pld_for_end(p);
  pld_task_end(p);
}

static pld_program_t *moe_program(void) {
  pld_program_t *p = pld_program_create("moe_dispatch_combine");
  pld_scalar_t world = pld_world_size(p), me, epoch;
  pld_dim_t lanes = pld_dim_of(p, pld_mul(p, world, PLD_INT(LOCAL_EXPERTS * MAX_PER_SRC)));
  pld_dim_t answered_rows = pld_dim_of(p, pld_mul(p, world, PLD_INT(ROUTES)));
  pld_tensor_t f[FIELDS];
  pld_task_t routed, pushed, placed, received, answers, returned, gathered;
  pld_entry_t entry;
  field_t fields[FIELDS] = {
      {"x", PLD_DTYPE_I8, PLD_IN, TOKENS, D},
      {"scales", PLD_DTYPE_F32, PLD_IN, TOKENS, 1},
      {"indices", PLD_DTYPE_I32, PLD_IN, TOKENS, TOPK},
      {"weights", PLD_DTYPE_F32, PLD_IN, TOKENS, TOPK},
      {"tokens", PLD_DTYPE_I32, PLD_IN, 1, 1},
      {"out", PLD_DTYPE_F32, PLD_OUT, TOKENS, D},
      {"sent", PLD_DTYPE_I32, WINDOW, PLD_WORLD, LOCAL_EXPERTS},
      {"slots", PLD_DTYPE_I32, WINDOW, TOKENS, TOPK},
      {"counts", PLD_DTYPE_I32, WINDOW, PLD_WORLD, LOCAL_EXPERTS},
      {"counted", PLD_DTYPE_I32, WINDOW, PLD_WORLD, 1},
      {"recv_x", PLD_DTYPE_I8, WINDOW, 0, D},
      {"recv_scale", PLD_DTYPE_F32, WINDOW, 0, PAD},
      {"recv_weight", PLD_DTYPE_F32, WINDOW, 0, PAD},
      {"recv_route", PLD_DTYPE_I32, WINDOW, 0, PAD},
      {"arrived", PLD_DTYPE_I32, WINDOW, PLD_WORLD, 1},
      {"first", PLD_DTYPE_I32, WINDOW, LOCAL_EXPERTS, PLD_WORLD},
      {"y", PLD_DTYPE_BF16, WINDOW, 0, D},
      {"routed_y", PLD_DTYPE_BF16, WINDOW, ROUTES, D},
      {"returned", PLD_DTYPE_I32, WINDOW, PLD_WORLD, 1},
  };
  fields[RECV_X].rows = fields[RECV_SCALE].rows = fields[RECV_WEIGHT].rows = fields[RECV_ROUTE].rows = lanes;
  fields[Y].rows = answered_rows;

  entry = exchange_entry_begin(p, "moe", fields, FIELDS, f, &me, &epoch);
  routed = route(p, f, me);
  pushed = push(p, f, me);
  placed = place(p, f, me, epoch, routed);
  received = await(p, "receive", f[ARRIVED], me, pld_mul(p, epoch, PLD_INT(BLOCKS)), pushed);
  answers = pld_extern_task(p, "expert", expert, NULL,
                            PLD_CALLBACK_ARGS(pld_in(f[RECV_X]), pld_in(f[RECV_SCALE]), pld_in(f[RECV_WEIGHT]),
                                              pld_in(f[COUNTS]), pld_in(f[FIRST]), pld_out(f[Y])),
                            PLD_INT(LOCAL_EXPERTS), PLD_DEPS(placed, received));
  returned = give_back(p, f, me, answers);
  gathered = await(p, "gather", f[RETURNED], me, pld_mul(p, epoch, PLD_INT(LOCAL_EXPERTS)), returned);
  combine(p, f, gathered);
  pld_entry_end(p);
  exchange_host(p, entry, fields, FIELDS);
  return p;
}

/* Kinds of routing. */
typedef enum { SPREAD, COLD, HOT, HOTTER, OWN, KINDS } kind_t;

static const char *const kind_names[KINDS] = {
    "experts at random", "ranks without tokens", "one expert in every token", "one expert and nobody else",
    "own experts only"};

/* What a rank has in a layer; of all ranks of this process, behind each other. */
typedef struct {
  int8_t *x;        /* [TOKENS, D] */
  float *scales;    /* [TOKENS, 1] */
  int32_t *indices; /* [TOKENS, TOPK] */
  float *weights;   /* [TOKENS, TOPK] */
  int32_t *tokens;  /* [1] */
  float *out;       /* [TOKENS, D] */
} layer_t;

static layer_t allocate(const ranks_t *ranks) {
  layer_t l;
  l.x = (int8_t *)ranks_parts(ranks, TOKENS * D, sizeof *l.x);
  l.scales = (float *)ranks_parts(ranks, TOKENS, sizeof *l.scales);
  l.indices = (int32_t *)ranks_parts(ranks, ROUTES, sizeof *l.indices);
  l.weights = (float *)ranks_parts(ranks, ROUTES, sizeof *l.weights);
  l.tokens = (int32_t *)ranks_parts(ranks, 1, sizeof *l.tokens);
  l.out = (float *)ranks_parts(ranks, TOKENS * D, sizeof *l.out);
  return l;
}

/* What the rank number `part` of this process has. */
static layer_t part_of(const layer_t *all, uint32_t part) {
  layer_t l;
  l.x = all->x + (size_t)part * TOKENS * D;
  l.scales = all->scales + part * TOKENS;
  l.indices = all->indices + part * ROUTES;
  l.weights = all->weights + part * ROUTES;
  l.tokens = all->tokens + part;
  l.out = all->out + (size_t)part * TOKENS * D;
  return l;
}

/* A whole number below `end`, as if random. */
static int32_t draw(uint32_t rank, size_t place, int32_t end) {
  return (int32_t)((example_value(rank, place) + 1.0f) * 0.5f * (float)end) % end;
}

/* The experts of a token: different ones. */
static void choose(uint32_t rank, size_t place, int32_t first, int32_t experts, int32_t *chosen) {
  int k, other;
  for (k = 0; k < TOPK; k++) {
    do {
      chosen[k] = first + draw(rank, place++, experts);
      for (other = 0; other < k && chosen[other] != chosen[k]; other++) {
      }
    } while (other < k);
  }
}

/* A row of activations as int8, with the scale that makes them activations again. */
static void quantise(uint32_t rank, size_t place, int8_t *x, float *scale) {
  float row[D], largest = 0;
  int d;
  for (d = 0; d < D; d++) {
    row[d] = example_value(rank, place + (size_t)d);
    largest = fmaxf(largest, fabsf(row[d]));
  }
  *scale = largest / 127;
  for (d = 0; d < D; d++) x[d] = (int8_t)floorf(row[d] / *scale + 0.5f);
}

/* The inputs of a rank. */
static void fill(const layer_t *l, kind_t kind, uint32_t layer, uint32_t rank, uint32_t nranks) {
  int32_t experts = (int32_t)nranks * LOCAL_EXPERTS, hot = draw(nranks, layer, experts);
  uint32_t seed = rank + nranks * layer;
  int t, k;
  *l->tokens = kind == HOTTER ? MAX_PER_SRC / TOPK : TOKENS;
  if (kind == COLD && (rank + layer) % 2 == 0) *l->tokens = 0;
  for (t = 0; t < TOKENS; t++) {
    int32_t *chosen = l->indices + t * TOPK;
    if (kind == OWN)
      choose(seed, (size_t)t * 4096, (int32_t)rank * LOCAL_EXPERTS, LOCAL_EXPERTS, chosen);
    else
      choose(seed, (size_t)t * 4096, 0, experts, chosen);
    for (k = 0; k < TOPK; k++) l->weights[t * TOPK + k] = example_value(seed, 1000003 + (size_t)(t * TOPK + k));
    if (kind == HOT) {
      for (k = 0; k < TOPK && chosen[k] != hot; k++) {
      }
      if (k == TOPK) chosen[t % TOPK] = hot;
    }
    for (k = 0; kind == HOTTER && k < TOPK; k++) chosen[k] = hot;
    quantise(seed, 2000003 + (size_t)t * D, l->x + t * D, &l->scales[t]);
  }
  for (t = 0; t < TOKENS * D; t++) l->out[t] = -1;
}

/* Compares with what the rank computes from its own tokens, as if it had all the experts. */
static void check(const layer_t *l, uint32_t rank) {
  static uint16_t y[D];
  static float sum[D];
  int t, k, d;
  for (t = 0; t < TOKENS; t++) {
    for (d = 0; d < D; d++) sum[d] = t < *l->tokens ? 0.0f : -1.0f;
    for (k = 0; k < TOPK && t < *l->tokens; k++) {
      answer(l->indices[t * TOPK + k], l->x + t * D, l->scales[t], l->weights[t * TOPK + k], y);
      for (d = 0; d < D; d++) sum[d] += of_bf16(y[d]);
    }
    /* The same operations in the same order, so the same bits. */
    for (d = 0; d < D; d++)
      if (sum[d] != l->out[t * D + d]) example_is_wrong("out", rank, (size_t)(t * D + d), l->out[t * D + d], sum[d]);
  }
}

static void run(const pld_program_t *p, const ranks_t *ranks) {
  pld_executable_t *executable = ranks_compile_persistent(ranks, p);
  double *times = (double *)zeroed(ranks->launches, sizeof *times), begin;
  layer_t all = allocate(ranks), l;
  pld_arg_t args[7];
  uint32_t layer, epoch = 0, part;
  int kind;
  args[0] = ranks_arg(ranks, all.x, PLD_DTYPE_I8, TOKENS, D);
  args[1] = ranks_arg(ranks, all.scales, PLD_DTYPE_F32, TOKENS, 1);
  args[2] = ranks_arg(ranks, all.indices, PLD_DTYPE_I32, TOKENS, TOPK);
  args[3] = ranks_arg(ranks, all.weights, PLD_DTYPE_F32, TOKENS, TOPK);
  args[4] = ranks_arg(ranks, all.tokens, PLD_DTYPE_I32, 1, 1);
  args[5] = ranks_arg(ranks, all.out, PLD_DTYPE_F32, TOKENS, D);
  for (kind = SPREAD; kind < KINDS; kind++) {
    uint32_t layers = kind == SPREAD ? ranks->launches : OTHER_LAYERS;
    for (layer = 0; layer < layers; layer++) {
      epoch++;
      for (part = 0; part < ranks->driven; part++) {
        l = part_of(&all, part);
        fill(&l, (kind_t)kind, epoch, ranks->first + part, ranks->nranks);
      }
      args[6] = pld_arg_int(epoch);
      begin = microseconds();
      OK(pld_launch(executable, args, 7));
      if (kind == SPREAD) times[layer] = microseconds() - begin;
      for (part = 0; part < ranks->driven; part++) {
        l = part_of(&all, part);
        check(&l, ranks->first + part);
      }
    }
    if (ranks->first == 0) printf("%s: %u layers checked\n", kind_names[kind], layers);
  }
  ranks_times(ranks, "a layer of 128 tokens to 8 experts each, rows of 4096", times, ranks->launches);
  free(all.x);
  free(all.scales);
  free(all.indices);
  free(all.weights);
  free(all.tokens);
  free(all.out);
  free(times);
  pld_executable_destroy(executable);
}

int main(int argc, char **argv) {
  return ranks_main(argc, argv, "moe_dispatch_combine", 2 * LAYERS, moe_program, run);
}
