/* The exchange of a context-parallel prefill, once a layer: every rank gets the last rows of all segments of the
 * sequence. The protocol, with its two counters, is that of examples/pld/cp_prefill_exchange.pld. Here the layer itself
 * is in the graph too, as a function of the engine that sometimes takes its time; and between launches ranks that are
 * processes fall behind as well.
 *
 *   cmake -S examples/c -B build/examples -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/examples
 *   build/examples/cp_prefill_exchange                             two ranks, 100 epochs
 *   build/examples/cp_prefill_exchange --ranks 4 --processes       four ranks, a process each
 */
#include "exchange.h"

enum { SEG_ROWS = 512, TAIL_ROWS = 128, D = 4096, ROW_TILE = 16 };

/* What the entry is given. A rank owns two segments, of which it keeps all rows. */
enum { HIDDEN, CONTEXT, TAILS, READY, CONSUMED, FIELDS };

/* A rank's two segments: r and 2 * nranks - 1 - r, so that all ranks have the same amount of causal attention. */
static int64_t segment_of(int64_t rank, int64_t nranks, int half) { return half == 0 ? rank : 2 * nranks - 1 - rank; }

/* The bits of one bf16 of a segment's tail. */
static uint16_t hidden_value(int64_t epoch, int64_t segment, int64_t row, int64_t column) {
  uint32_t x = (uint32_t)((epoch * 131 + segment) * 137 + row) * 8191u + (uint32_t)column;
  return (uint16_t)(x * 2654435761u >> 16);
}

/* The engine's layer: computes the rows of this rank's segments, sooner or later. */
static int32_t layer(const pld_task_context_t *context, void *user_data) {
  uint16_t *hidden = (uint16_t *)pld_context_tensor(context, 0)->data;
  int64_t epoch = pld_context_int(context, 0), row, column;
  int half;
  (void)user_data;
  dawdle(context->rank, (size_t)epoch);
  for (half = 0; half < 2; half++) {
    uint16_t *tail = hidden + ((half + 1) * SEG_ROWS - TAIL_ROWS) * D;
    for (row = 0; row < TAIL_ROWS; row++)
      for (column = 0; column < D; column++)
        tail[row * D + column] =
            hidden_value(epoch, segment_of(context->rank, context->nranks, half), row, column);
  }
  return 0;
}

/* `half == 0 ? rank : 2 * world - 1 - rank`. */
static pld_scalar_t segment(pld_program_t *p, pld_scalar_t rank, pld_scalar_t half) {
  pld_scalar_t mirrored = pld_sub(p, pld_sub(p, pld_mul(p, PLD_INT(2), pld_world_size(p)), PLD_INT(1)), rank);
  return pld_let(p, "segment", pld_select(p, pld_eq(p, half, PLD_INT(0)), rank, mirrored));
}

static pld_transfer_t tail(const pld_scalar_t *dst, const pld_scalar_t *src) {
  pld_transfer_t t = pld_region(dst, 2, src, 2, PLD_DIMS(TAIL_ROWS, D));
  t.chunk_rows = ROW_TILE;
  t.chunk_cols = D;
  t.pipeline = 1;
  return t;
}

static pld_program_t *cp_program(void) {
  pld_program_t *p = pld_program_create("cp_prefill_exchange");
  pld_dim_t all_tails = pld_dim_of(p, pld_mul(p, pld_world_size(p), PLD_INT(2 * TAIL_ROWS)));
  pld_scalar_t zero = PLD_INT(0), me, epoch, peer, owner, half, from, at;
  pld_tensor_t f[FIELDS];
  pld_task_t freed, published, arrived;
  pld_task_options_t consume;
  pld_transfer_t region;
  pld_entry_t entry;
  field_t fields[FIELDS] = {
      {"hidden", PLD_DTYPE_BF16, PLD_INOUT, 2 * SEG_ROWS, D}, {"context", PLD_DTYPE_BF16, PLD_OUT, 0, D},
      {"tails", PLD_DTYPE_BF16, WINDOW, 0, D},                {"ready", PLD_DTYPE_I32, WINDOW, PLD_WORLD, 1},
      {"consumed", PLD_DTYPE_I32, WINDOW, PLD_WORLD, 1},
  };
  fields[CONTEXT].rows = fields[TAILS].rows = all_tails;

  entry = exchange_entry_begin(p, "exchange", fields, FIELDS, f, &me, &epoch);
  pld_extern_task(p, "layer", layer, NULL, PLD_CALLBACK_ARGS(pld_inout(f[HIDDEN]), pld_value(epoch)), PLD_INT(1), NULL);

  pld_at_begin(p, "await_consumed", NULL);
  peer = exchange_others(p, "peer", me);
  pld_defer_wait(p, f[CONSUMED], PLD_AT(peer, zero), pld_sub(p, epoch, PLD_INT(1)));
  exchange_others_end(p);
  freed = pld_task_end(p);

  peer = pld_let(p, "peer", pld_spmd_begin(p, "publish", pld_world_size(p), PLD_DEPS(freed)));
  half = exchange_for(p, "half", zero, PLD_INT(2));
  at = pld_mul(p, segment(p, me, half), PLD_INT(TAIL_ROWS));
  from = pld_sub(p, pld_mul(p, pld_add(p, half, PLD_INT(1)), PLD_INT(SEG_ROWS)), PLD_INT(TAIL_ROWS));
  {
    const pld_scalar_t dst[] = {at, zero}, src[] = {from, zero};
    region = tail(dst, src);
    pld_put(p, f[TAILS], peer, f[HIDDEN], &region);
  }
  pld_for_end(p);
  pld_if_begin(p, pld_ne(p, peer, me));
  pld_notify(p, f[READY], peer, PLD_AT(me, zero), PLD_INT(1), PLD_NOTIFY_ADD);
  pld_if_end(p);
  published = pld_task_end(p);

  owner = exchange_for(p, "owner", zero, pld_world_size(p));
  pld_at_begin(p, "await_ready", PLD_DEPS(published));
  pld_if_begin(p, pld_ne(p, owner, me));
  pld_defer_wait(p, f[READY], PLD_AT(owner, zero), epoch);
  pld_if_end(p);
  arrived = pld_task_end(p);

  /* The rows of `context` are others for each owner: no owner waits for another one. */
  consume = pld_deps(&arrived, 1);
  consume.no_dep = &f[CONTEXT];
  consume.n_no_dep = 1;
  pld_at_begin(p, "consume", &consume);
  half = exchange_for(p, "half", zero, PLD_INT(2));
  at = pld_mul(p, segment(p, owner, half), PLD_INT(TAIL_ROWS));
  {
    const pld_scalar_t rows[] = {at, zero};
    region = tail(rows, rows);
    pld_get(p, f[CONTEXT], me, f[TAILS], &region);
  }
  pld_for_end(p);
  pld_if_begin(p, pld_ne(p, owner, me));
  pld_notify(p, f[CONSUMED], owner, PLD_AT(me, zero), PLD_INT(1), PLD_NOTIFY_ADD);
  pld_if_end(p);
  pld_task_end(p);
  pld_for_end(p);
  pld_entry_end(p);
  exchange_host(p, entry, fields, FIELDS);
  return p;
}

static void run(const pld_program_t *p, const ranks_t *ranks) {
  const size_t elements = (size_t)2 * ranks->nranks * TAIL_ROWS * D;
  pld_executable_t *executable = ranks_compile_persistent(ranks, p);
  uint16_t *hidden = (uint16_t *)ranks_parts(ranks, (size_t)2 * SEG_ROWS * D, sizeof *hidden);
  uint16_t *contexts = (uint16_t *)ranks_parts(ranks, elements, sizeof *contexts);
  uint16_t *expected = (uint16_t *)zeroed(elements, sizeof *expected);
  double *times = (double *)zeroed(ranks->launches, sizeof *times), begin;
  pld_arg_t args[3];
  uint32_t epoch, part;
  size_t i;
  args[0] = ranks_arg(ranks, hidden, PLD_DTYPE_BF16, 2 * SEG_ROWS, D);
  args[1] = ranks_arg(ranks, contexts, PLD_DTYPE_BF16, 2 * (int64_t)ranks->nranks * TAIL_ROWS, D);
  for (epoch = 1; epoch <= ranks->launches; epoch++) {
    for (i = 0; i < elements; i++)
      expected[i] = hidden_value(epoch, (int64_t)(i / D / TAIL_ROWS), (int64_t)(i / D % TAIL_ROWS), (int64_t)(i % D));
    memset(contexts, 0xff, ranks->driven * elements * sizeof *contexts);
    if (ranks->processes) dawdle(ranks->first, 5000 + epoch);
    args[2] = pld_arg_int(epoch);
    begin = microseconds();
    OK(pld_launch(executable, args, 3));
    times[epoch - 1] = microseconds() - begin;
    for (part = 0; part < ranks->driven; part++) {
      const uint16_t *context = contexts + part * elements;
      for (i = 0; i < elements; i++)
        if (context[i] != expected[i]) example_is_wrong("context", ranks->first + part, i, context[i], expected[i]);
    }
  }
  if (ranks->first == 0) printf("%u epochs checked\n", ranks->launches);
  ranks_times(ranks, "a layer with tails of 128 x 4096 from two segments a rank", times, ranks->launches);
  free(hidden);
  free(contexts);
  free(expected);
  free(times);
  pld_executable_destroy(executable);
}

int main(int argc, char **argv) { return ranks_main(argc, argv, "cp_prefill_exchange", 100, cp_program, run); }
