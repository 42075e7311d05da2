/* Collectives: exchanges that all ranks of a window take part in. First those of the host driver, between dispatches: every
 * rank publishes its numbers, the library exchanges them, and every rank reads the result. Then one inside a task, in a
 * loop: rows go to other ranks by counts that only the launch knows. With --print it shows what the library writes for the
 * all-reduce.
 *
 *   cmake -S examples/c -B build/examples -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/examples
 *   build/examples/collectives --print
 */
#include "example.h"

#include <string.h>

enum { COLUMNS = 32, MOST_RANKS = 4 };

/* Copies x into this rank's part of a window. */
static pld_entry_t publish(pld_program_t *p, const char *name, pld_dim_t rows) {
  pld_entry_t entry = pld_entry_begin(p, name);
  pld_tensor_t x = pld_param_tensor(p, "x", PLD_DTYPE_F32, PLD_DIMS(rows, COLUMNS), PLD_IN);
  pld_tensor_t w = pld_param_window(p, "w", PLD_DTYPE_F32, PLD_DIMS(rows, COLUMNS));
  pld_at_begin(p, name, NULL);
  pld_put(p, w, pld_rank(p, w), x, NULL);
  pld_task_end(p);
  pld_entry_end(p);
  return entry;
}

/* Copies this rank's part of a window into y. */
static pld_entry_t read_back(pld_program_t *p, const char *name, pld_dim_t rows) {
  pld_entry_t entry = pld_entry_begin(p, name);
  pld_tensor_t w = pld_param_window(p, "w", PLD_DTYPE_F32, PLD_DIMS(rows, COLUMNS));
  pld_tensor_t y = pld_param_tensor(p, "y", PLD_DTYPE_F32, PLD_DIMS(rows, COLUMNS), PLD_OUT);
  pld_at_begin(p, name, NULL);
  pld_get(p, y, pld_rank(p, w), w, NULL);
  pld_task_end(p);
  pld_entry_end(p);
  return entry;
}

/* The entry runs on every rank, with its part of a host tensor and its part of a window. */
static void on_every_rank(pld_program_t *p, pld_entry_t entry, pld_tensor_t host, pld_tensor_t w, int host_first) {
  pld_scalar_t r = pld_ranks_begin(p, PLD_INT(0), pld_world_size(p));
  pld_operand_t part = pld_of_tensor(pld_slice_rank(p, host, r)), window = pld_of_tensor(w);
  pld_dispatch(p, entry, r, PLD_ARGS(host_first ? part : window, host_first ? window : part));
  pld_ranks_end(p);
}

/* x: a row for each rank, on each rank. sums: their sums, all-reduced. turned: what other ranks have for this one. */
static pld_program_t *host_program(void) {
  pld_program_t *p = pld_program_create("between_dispatches");
  pld_entry_t give = publish(p, "publish", PLD_WORLD), take = read_back(p, "read_back", PLD_WORLD);
  pld_tensor_t x = pld_host_tensor(p, "x", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, PLD_WORLD, COLUMNS), PLD_IN);
  pld_tensor_t sums = pld_host_tensor(p, "sums", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, PLD_WORLD, COLUMNS), PLD_OUT);
  pld_tensor_t turned = pld_host_tensor(p, "turned", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, PLD_WORLD, COLUMNS), PLD_OUT);
  pld_buffer_t data_buf = pld_alloc_window(p, "data_buf", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS));
  pld_buffer_t mine_buf = pld_alloc_window(p, "mine_buf", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS));
  pld_tensor_t data = pld_window(p, data_buf, PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS));
  pld_tensor_t mine = pld_window(p, mine_buf, PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS));
  pld_collective_options_t blocks = pld_collective_defaults();
  pld_tensor_name(p, data, "data");
  pld_tensor_name(p, mine, "mine");
  blocks.cores = 2;

  on_every_rank(p, give, x, data, 1);
  pld_all_to_all(p, mine, data, NULL);
  pld_allreduce(p, data, PLD_COMBINE_SUM, &blocks);
  on_every_rank(p, take, sums, data, 0);
  on_every_rank(p, take, turned, mine, 0);
  return p;
}

enum { ROOM = 3, ROUNDS = 2 };

/* In round k rank r sends counts[k][p] rows of x to rank p, which adds up all that come. */
static pld_program_t *task_program(void) {
  pld_program_t *p = pld_program_create("inside_a_task");
  pld_dim_t rows = pld_dim_of(p, pld_mul(p, pld_world_size(p), PLD_INT(ROOM)));
  pld_entry_t entry = pld_entry_begin(p, "route");
  pld_tensor_t x = pld_param_tensor(p, "x", PLD_DTYPE_F32, PLD_DIMS(rows, COLUMNS), PLD_IN);
  pld_tensor_t counts = pld_param_tensor(p, "counts", PLD_DTYPE_I32, PLD_DIMS(ROUNDS, PLD_WORLD), PLD_IN);
  pld_tensor_t came = pld_param_tensor(p, "came", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD), PLD_OUT);
  pld_tensor_t y = pld_param_tensor(p, "y", PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS), PLD_OUT);
  pld_tensor_t inbox = pld_param_window(p, "inbox", PLD_DTYPE_F32, PLD_DIMS(rows, COLUMNS));
  pld_scalar_t zero = PLD_INT(0), round, source, row;
  pld_tensor_t sent;
  pld_tile_t sum;

  pld_at_begin(p, "route", NULL);
  sum = pld_tile_full(p, PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS), pld_float(p, 0));
  pld_tile_name(p, sum, "sum");
  round = pld_let(p, "round", pld_for_begin(p, zero, PLD_INT(ROUNDS)));
  sent = pld_slice(p, counts, PLD_AT(round, zero), PLD_DIMS(1, PLD_WORLD));
  pld_tensor_name(p, sent, "sent");
  pld_all_to_all_v(p, pld_rows(inbox, came), pld_rows(x, sent), NULL);
  source = pld_let(p, "source", pld_for_begin(p, zero, pld_world_size(p)));
  row = pld_let(p, "row", pld_for_begin(p, zero, pld_read(p, came, PLD_AT(source))));
  row = pld_add(p, pld_mul(p, source, PLD_INT(ROOM)), row);
  pld_tile_assign(p, sum, pld_tile_add(p, sum, pld_load(p, inbox, PLD_AT(row, zero), PLD_DIMS(1, COLUMNS))));
  pld_for_end(p);
  pld_for_end(p);
  pld_for_end(p);
  pld_store(p, sum, y, PLD_AT(zero, zero));
  pld_task_end(p);
  pld_entry_end(p);

  pld_tensor_t xs = pld_host_tensor(p, "xs", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, rows, COLUMNS), PLD_IN);
  pld_tensor_t all_counts = pld_host_tensor(p, "counts", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, ROUNDS, PLD_WORLD), PLD_IN);
  pld_tensor_t cames = pld_host_tensor(p, "came", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, PLD_WORLD), PLD_OUT);
  pld_tensor_t ys = pld_host_tensor(p, "ys", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, 1, COLUMNS), PLD_OUT);
  pld_buffer_t inbox_buf = pld_alloc_window(p, "inbox_buf", PLD_DTYPE_F32, PLD_DIMS(rows, COLUMNS));
  pld_scalar_t r = pld_ranks_begin(p, zero, pld_world_size(p));
  pld_dispatch(p, entry, r,
               PLD_ARGS(pld_of_tensor(pld_slice_rank(p, xs, r)), pld_of_tensor(pld_slice_rank(p, all_counts, r)),
                        pld_of_tensor(pld_slice_rank(p, cames, r)), pld_of_tensor(pld_slice_rank(p, ys, r)),
                        pld_of_tensor(pld_window(p, inbox_buf, PLD_DTYPE_F32, PLD_DIMS(rows, COLUMNS)))));
  pld_ranks_end(p);
  return p;
}

static void run_host(uint32_t nranks) {
  static float x[MOST_RANKS * MOST_RANKS * COLUMNS], sums[MOST_RANKS * MOST_RANKS * COLUMNS];
  static float turned[MOST_RANKS * MOST_RANKS * COLUMNS];
  const size_t each = nranks * COLUMNS;
  pld_arg_t args[3];
  uint32_t r, q;
  size_t i;
  for (r = 0; r < nranks; r++)
    for (i = 0; i < each; i++) x[r * each + i] = example_value(r, i);
  args[0] = pld_arg_tensor(x, PLD_DTYPE_F32, PLD_DIMS(nranks, nranks, COLUMNS));
  args[1] = pld_arg_tensor(sums, PLD_DTYPE_F32, PLD_DIMS(nranks, nranks, COLUMNS));
  args[2] = pld_arg_tensor(turned, PLD_DTYPE_F32, PLD_DIMS(nranks, nranks, COLUMNS));
  example_run(host_program(), nranks, args, 3);
  for (r = 0; r < nranks; r++)
    for (i = 0; i < each; i++) {
      double sum = 0;
      for (q = 0; q < nranks; q++) sum += example_value(q, i);
      example_check("sum", r, i, sums[r * each + i], sum);
      /* The same bits on every rank. */
      if (sums[r * each + i] != sums[i]) example_is_wrong("sum of rank 0", r, i, sums[r * each + i], sums[i]);
      example_check("turned", r, i, turned[r * each + i],
                    example_value((uint32_t)(i / COLUMNS), r * COLUMNS + i % COLUMNS));
    }
  printf("%u ranks: element 0 is %.4f on all\n", nranks, sums[0]);
}

static int32_t count(uint32_t round, uint32_t from, uint32_t to) { return (int32_t)(from + 2 * to + round) % (ROOM + 1); }

static void run_task(uint32_t nranks) {
  static float xs[MOST_RANKS * MOST_RANKS * ROOM * COLUMNS], ys[MOST_RANKS * COLUMNS];
  static int32_t counts[MOST_RANKS * ROUNDS * MOST_RANKS], came[MOST_RANKS * MOST_RANKS];
  const size_t each = nranks * ROOM * COLUMNS;
  pld_arg_t args[4];
  uint32_t r, q, k;
  size_t i;
  for (r = 0; r < nranks; r++) {
    for (i = 0; i < each; i++) xs[r * each + i] = example_value(r, i);
    for (k = 0; k < ROUNDS; k++)
      for (q = 0; q < nranks; q++) counts[(r * ROUNDS + k) * nranks + q] = count(k, r, q);
  }
  args[0] = pld_arg_tensor(xs, PLD_DTYPE_F32, PLD_DIMS(nranks, nranks * ROOM, COLUMNS));
  args[1] = pld_arg_tensor(counts, PLD_DTYPE_I32, PLD_DIMS(nranks, ROUNDS, nranks));
  args[2] = pld_arg_tensor(came, PLD_DTYPE_I32, PLD_DIMS(nranks, nranks));
  args[3] = pld_arg_tensor(ys, PLD_DTYPE_F32, PLD_DIMS(nranks, 1, COLUMNS));
  example_run(task_program(), nranks, args, 4);
  for (r = 0; r < nranks; r++) {
    for (i = 0; i < COLUMNS; i++) {
      double sum = 0;
      int32_t row;
      for (k = 0; k < ROUNDS; k++)
        for (q = 0; q < nranks; q++)
          for (row = 0; row < count(k, q, r); row++)
            sum += example_value(q, (r * ROOM + (size_t)row) * COLUMNS + i);
      if (fabs(ys[r * COLUMNS + i] - sum) > 1e-4) example_is_wrong("routed", r, i, ys[r * COLUMNS + i], sum);
    }
    for (q = 0; q < nranks; q++)
      example_check("came", r, q, came[r * nranks + q], count(ROUNDS - 1, q, r));
  }
  printf("%u ranks: in the last round %d rows came from rank 0 to rank 1\n", nranks, came[nranks]);
}

/* The program in the operations that the library writes for two ranks. */
static void print(void) {
  pld_program_t *p = host_program(), *expanded;
  OK(pld_program_finish(p, example_diagnostic, NULL));
  OK(pld_program_expand(p, NULL, &expanded));
  OK(pld_program_print(expanded, example_write, stdout));
  pld_program_destroy(expanded);
  pld_program_destroy(p);
}

int main(int argc, char **argv) {
  uint32_t nranks;
  if (argc > 1 && strcmp(argv[1], "--print") == 0) print();
  for (nranks = 2; nranks <= MOST_RANKS; nranks++) {
    run_host(nranks);
    run_task(nranks);
  }
  return example_result("collectives");
}
