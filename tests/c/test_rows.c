/* All-to-all of rows by count: evenly divided and by offsets, counts of none, and more than there is room for. */
#include "pld_test.h"

enum { RANKS = 3, ROOM = 4, WIDTH = 5, ROWS = RANKS * ROOM };

static pld_scalar_t zero(void) { return PLD_INT(0); }

struct rows {
  int32_t x[RANKS][ROWS][WIDTH], y[RANKS][ROWS][WIDTH];
  int32_t sent[RANKS][RANKS], came[RANKS][RANKS];
  int64_t from[RANKS][RANKS], to[RANKS][RANKS];
};

/* Every rank sends, and gives what its window holds then. */
static pld_program_t *exchange(int offsets, pld_collective_mode_t mode, int *line) {
  pld_program_t *p = pld_program_create("rows");
  pld_entry_t entry = pld_entry_begin(p, "exchange");
  pld_tensor_t x = pld_param_tensor(p, "x", PLD_DTYPE_I32, PLD_DIMS(ROWS, WIDTH), PLD_IN);
  pld_tensor_t sent = pld_param_tensor(p, "sent", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD), PLD_IN);
  pld_tensor_t from = pld_param_tensor(p, "from", PLD_DTYPE_I64, PLD_DIMS(PLD_WORLD), PLD_IN);
  pld_tensor_t to = pld_param_tensor(p, "to", PLD_DTYPE_I64, PLD_DIMS(PLD_WORLD), PLD_IN);
  pld_tensor_t came = pld_param_tensor(p, "came", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD), PLD_OUT);
  pld_tensor_t y = pld_param_tensor(p, "y", PLD_DTYPE_I32, PLD_DIMS(ROWS, WIDTH), PLD_OUT);
  pld_tensor_t inbox = pld_param_window(p, "inbox", PLD_DTYPE_I32, PLD_DIMS(ROWS, WIDTH));
  pld_collective_options_t o = pld_collective_defaults();
  o.mode = mode;
  pld_at_begin(p, "exchange", NULL);
  *line = __LINE__ + 2;
  if (offsets)
    pld_all_to_all_v(p, pld_rows_at(inbox, came, to), pld_rows_at(x, sent, from), &o);
  else
    pld_all_to_all_v(p, pld_rows(inbox, came), pld_rows(x, sent), &o);
  pld_get(p, y, pld_rank(p, inbox), inbox, NULL);
  pld_task_end(p);
  pld_entry_end(p);
  {
    pld_tensor_t xs = pld_host_tensor(p, "xs", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, ROWS, WIDTH), PLD_IN);
    pld_tensor_t sents = pld_host_tensor(p, "sents", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, PLD_WORLD), PLD_IN);
    pld_tensor_t froms = pld_host_tensor(p, "froms", PLD_DTYPE_I64, PLD_DIMS(PLD_WORLD, PLD_WORLD), PLD_IN);
    pld_tensor_t tos = pld_host_tensor(p, "tos", PLD_DTYPE_I64, PLD_DIMS(PLD_WORLD, PLD_WORLD), PLD_IN);
    pld_tensor_t cames = pld_host_tensor(p, "cames", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, PLD_WORLD), PLD_OUT);
    pld_tensor_t ys = pld_host_tensor(p, "ys", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, ROWS, WIDTH), PLD_OUT);
    pld_buffer_t buffer = pld_alloc_window(p, "inbox_buf", PLD_DTYPE_I32, PLD_DIMS(ROWS, WIDTH));
    pld_scalar_t r = pld_ranks_begin(p, zero(), pld_world_size(p));
    pld_dispatch(p, entry, r,
                 PLD_ARGS(pld_of_tensor(pld_slice_rank(p, xs, r)), pld_of_tensor(pld_slice_rank(p, sents, r)),
                          pld_of_tensor(pld_slice_rank(p, froms, r)), pld_of_tensor(pld_slice_rank(p, tos, r)),
                          pld_of_tensor(pld_slice_rank(p, cames, r)), pld_of_tensor(pld_slice_rank(p, ys, r)),
                          pld_of_tensor(pld_window(p, buffer, PLD_DTYPE_I32, PLD_DIMS(ROWS, WIDTH)))));
    pld_ranks_end(p);
  }
  CHECK_OK(pld_program_finish(p, test_print_diagnostic, NULL));
  return p;
}

static pld_status_t launch(pld_executable_t *x, struct rows *r) {
  pld_arg_t args[6];
  args[0] = pld_arg_tensor(r->x, PLD_DTYPE_I32, PLD_DIMS(RANKS, ROWS, WIDTH));
  args[1] = pld_arg_tensor(r->sent, PLD_DTYPE_I32, PLD_DIMS(RANKS, RANKS));
  args[2] = pld_arg_tensor(r->from, PLD_DTYPE_I64, PLD_DIMS(RANKS, RANKS));
  args[3] = pld_arg_tensor(r->to, PLD_DTYPE_I64, PLD_DIMS(RANKS, RANKS));
  args[4] = pld_arg_tensor(r->came, PLD_DTYPE_I32, PLD_DIMS(RANKS, RANKS));
  args[5] = pld_arg_tensor(r->y, PLD_DTYPE_I32, PLD_DIMS(RANKS, ROWS, WIDTH));
  return pld_launch(x, args, 6);
}

/* How many rows rank `from` sends to rank `to`. */
typedef int count_fn(int from, int to);

static int none(int from, int to) { return (void)from, (void)to, 0; }
static int all(int from, int to) { return (void)from, (void)to, ROOM; }
static int mixed(int from, int to) { return (from * 2 + to) % (ROOM + 1); }
static int only_to_the_last(int from, int to) { return to == RANKS - 1 ? 1 + from : 0; }

/* Rows that depend on all ranks and places, at even shares or one behind the other, for the last rank first. */
static void fill(struct rows *r, count_fn *count, int offsets) {
  int rank, peer, row, i;
  memset(r, 0x55, sizeof *r);
  for (rank = 0; rank < RANKS; rank++) {
    int64_t sent = 0, came = 0;
    for (row = 0; row < ROWS; row++)
      for (i = 0; i < WIDTH; i++) r->x[rank][row][i] = (rank + 1) * 100003 + row * WIDTH + i;
    for (peer = 0; peer < RANKS; peer++) r->sent[rank][peer] = count(rank, peer);
    for (peer = RANKS - 1; peer >= 0; peer--) {
      r->from[rank][peer] = offsets ? sent : peer * ROOM;
      r->to[rank][peer] = offsets ? came : peer * ROOM;
      sent += count(rank, peer);
      came += count(peer, rank);
    }
  }
}

/* The rows that were sent have come, and nothing else has. */
static void check(const struct rows *r, count_fn *count) {
  int rank, peer, row, i;
  for (rank = 0; rank < RANKS; rank++) {
    int32_t expected[ROWS][WIDTH];
    memset(expected, 0, sizeof expected);
    for (peer = 0; peer < RANKS; peer++) {
      CHECK(r->came[rank][peer] == count(peer, rank));
      for (row = 0; row < count(peer, rank); row++)
        for (i = 0; i < WIDTH; i++)
          expected[r->to[rank][peer] + row][i] = r->x[peer][r->from[peer][rank] + row][i];
    }
    CHECK(memcmp(expected, r->y[rank], sizeof expected) == 0);
  }
}

static void rows_arrive(pld_world_t *world, int offsets, pld_collective_mode_t mode) {
  static count_fn *const counts[] = {mixed, none, all, only_to_the_last, mixed};
  static struct rows r;
  pld_executable_t *x = NULL;
  size_t launches;
  int line;
  pld_program_t *p = exchange(offsets, mode, &line);
  CHECK_OK(pld_compile(p, world, NULL, &x));
  for (launches = 0; launches < COUNT(counts); launches++) {
    fill(&r, counts[launches], offsets);
    CHECK_OK(launch(x, &r));
    check(&r, counts[launches]);
  }
  pld_executable_destroy(x);
  pld_program_destroy(p);
}

/* A count that is too large, or negative, ends the launch with both numbers; the one behind it is fine. */
static void over_capacity(pld_world_t *world, int offsets, pld_collective_mode_t mode, int unchecked) {
  static struct rows r;
  pld_executable_t *x = NULL;
  pld_compile_options_t options;
  char place[64];
  int line;
  pld_program_t *p = exchange(offsets, mode, &line);
  if (!offsets) line += 2;
  snprintf(place, sizeof place, "test_rows.c:%d", line);
  CHECK_OK(pld_compile_options_init(&options, sizeof options));
  options.unchecked = (uint32_t)unchecked;
  CHECK_OK(pld_compile(p, world, &options, &x));

  fill(&r, mixed, offsets);
  r.sent[2][1] = 77;
  if (offsets) r.from[2][1] = 0;
  CHECK_STATUS(PLD_ERR_OUT_OF_BOUNDS, launch(x, &r));
  CHECK_ERROR("77");
  CHECK_ERROR(offsets ? "12" : "4");
  CHECK_ERROR("rank 1");
  CHECK_ERROR(place);

  fill(&r, mixed, offsets);
  r.sent[0][2] = -1;
  CHECK_STATUS(PLD_ERR_OUT_OF_BOUNDS, launch(x, &r));
  CHECK_ERROR("-1");

  if (offsets) {
    /* The sender has the rows, but the receiver has no room behind where they go. */
    fill(&r, all, offsets);
    r.to[1][0] = ROWS - 1;
    CHECK_STATUS(PLD_ERR_OUT_OF_BOUNDS, launch(x, &r));
    CHECK_ERROR("4");
  }

  fill(&r, mixed, offsets);
  CHECK_OK(launch(x, &r));
  check(&r, mixed);
  pld_executable_destroy(x);
  pld_program_destroy(p);
}

int main(void) {
  static const pld_collective_mode_t modes[] = {PLD_COLLECTIVE_AUTO, PLD_COLLECTIVE_MESH, PLD_COLLECTIVE_DIRECT};
  pld_world_t *world;
  size_t mode;
  int offsets;
  test_deadline(120);
  world = test_world(RANKS, 20000000);
  for (mode = 0; mode < COUNT(modes); mode++)
    for (offsets = 0; offsets < 2; offsets++) {
      rows_arrive(world, offsets, modes[mode]);
      over_capacity(world, offsets, modes[mode], offsets);
    }
  pld_world_destroy(world);
  return 0;
}
