/* Comm domains: declared and inferred, numbering, and what is refused. */
#include "pld_test.h"

#define WIDTH 8

struct text {
  char data[8192];
  size_t size;
};

static int32_t append(const char *text, size_t size, void *user_data) {
  struct text *t = (struct text *)user_data;
  CHECK(t->size + size < sizeof t->data);
  memcpy(t->data + t->size, text, size);
  t->size += size;
  t->data[t->size] = '\0';
  return 0;
}

static pld_scalar_t zero(void) { return PLD_INT(0); }

/* Every rank of a window's domain puts its row into the window of the next one, and notes its number and how many
   there are. */
static pld_entry_t exchange(pld_program_t *p) {
  pld_entry_t entry = pld_entry_begin(p, "exchange");
  pld_tensor_t in = pld_param_tensor(p, "inp", PLD_DTYPE_I32, PLD_DIMS(1, WIDTH), PLD_IN);
  pld_tensor_t out = pld_param_tensor(p, "outp", PLD_DTYPE_I32, PLD_DIMS(1, WIDTH), PLD_OUT);
  pld_tensor_t numbers = pld_param_tensor(p, "numbers", PLD_DTYPE_I32, PLD_DIMS(2), PLD_OUT);
  pld_tensor_t inbox = pld_param_window(p, "inbox", PLD_DTYPE_I32, PLD_DIMS(1, WIDTH));
  pld_tensor_t arrived = pld_param_window(p, "arrived", PLD_DTYPE_I32, PLD_DIMS(1));
  pld_scalar_t n, me, next;
  pld_transfer_t whole = pld_whole();
  pld_at_begin(p, "send", NULL);
  n = pld_let(p, "n", pld_nranks(p, inbox));
  me = pld_let(p, "me", pld_rank(p, inbox));
  next = pld_let(p, "next", pld_mod(p, pld_add(p, me, PLD_INT(1)), n));
  pld_put(p, inbox, next, in, &whole);
  pld_notify(p, arrived, next, PLD_AT(zero()), PLD_INT(1), PLD_NOTIFY_ADD);
  pld_wait(p, arrived, PLD_AT(zero()), PLD_INT(1), PLD_WAIT_GE);
  pld_store(p, pld_load(p, inbox, PLD_AT(zero(), zero()), PLD_DIMS(1, WIDTH)), out, PLD_AT(zero(), zero()));
  pld_write(p, numbers, PLD_AT(zero()), me);
  pld_write(p, numbers, PLD_AT(PLD_INT(1)), n);
  pld_task_end(p);
  pld_entry_end(p);
  return entry;
}

/* Dispatches the entry on a rank, with views of these buffers. */
static void dispatch(pld_program_t *p, pld_entry_t entry, pld_scalar_t device, pld_tensor_t in, pld_tensor_t out,
                     pld_tensor_t numbers, pld_buffer_t inbox, pld_buffer_t arrived) {
  pld_tensor_t inbox_view = pld_window(p, inbox, PLD_DTYPE_I32, PLD_DIMS(1, WIDTH));
  pld_tensor_t arrived_view = pld_window(p, arrived, PLD_DTYPE_I32, PLD_DIMS(1));
  pld_dispatch(p, entry, device,
               PLD_ARGS(pld_of_tensor(pld_slice_rank(p, in, device)), pld_of_tensor(pld_slice_rank(p, out, device)),
                        pld_of_tensor(pld_slice_rank(p, numbers, device)), pld_of_tensor(inbox_view),
                        pld_of_tensor(arrived_view)));
}

/* In a world of four: a domain in an order of its own, one by range, and one that follows from the dispatches. */
static void exchange_in_three_domains(void) {
  static const int rings[3][4] = {{2, 3, 0, -1}, {1, 2, -1, -1}, {1, 2, 3, -1}};
  static const int sizes[3] = {3, 2, 3};
  int32_t in[4][WIDTH], out[3][4][WIDTH], numbers[3][4][2];
  pld_program_t *p = pld_program_create("domains");
  pld_entry_t entry = exchange(p);
  pld_tensor_t ins = pld_host_tensor(p, "ins", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, 1, WIDTH), PLD_IN);
  pld_tensor_t outs[3], notes[3];
  pld_domain_t ring, pair;
  pld_buffer_t inboxes[3], arrivals[3];
  pld_scalar_t r;
  pld_world_t *world = test_world(4, 20000000);
  pld_executable_t *x = NULL;
  pld_arg_t args[7];
  struct text text;
  int d, i, rank, launch;

  outs[0] = pld_host_tensor(p, "ring_out", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, 1, WIDTH), PLD_OUT);
  outs[1] = pld_host_tensor(p, "pair_out", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, 1, WIDTH), PLD_OUT);
  outs[2] = pld_host_tensor(p, "rest_out", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, 1, WIDTH), PLD_OUT);
  notes[0] = pld_host_tensor(p, "ring_numbers", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, 2), PLD_OUT);
  notes[1] = pld_host_tensor(p, "pair_numbers", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, 2), PLD_OUT);
  notes[2] = pld_host_tensor(p, "rest_numbers", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, 2), PLD_OUT);
  ring = pld_domain_create(p, "ring", PLD_AT(PLD_INT(2), pld_sub(p, pld_world_size(p), PLD_INT(1)), PLD_INT(0)));
  pair = pld_domain_range(p, "pair", PLD_INT(1), PLD_INT(3));
  CHECK(ring.id != 0 && pair.id != 0);
  inboxes[0] = pld_alloc_window_in(p, ring, "ring_inbox", PLD_DTYPE_I32, PLD_DIMS(1, WIDTH));
  arrivals[0] = pld_alloc_window_bytes_in(p, ring, "ring_arrived", PLD_INT(4));
  inboxes[1] = pld_alloc_window_in(p, pair, "pair_inbox", PLD_DTYPE_I32, PLD_DIMS(1, WIDTH));
  arrivals[1] = pld_alloc_window_in(p, pair, "pair_arrived", PLD_DTYPE_I32, PLD_DIMS(1));
  inboxes[2] = pld_alloc_window(p, "rest_inbox", PLD_DTYPE_I32, PLD_DIMS(1, WIDTH));
  arrivals[2] = pld_alloc_window(p, "rest_arrived", PLD_DTYPE_I32, PLD_DIMS(1));
  r = pld_ranks_begin(p, PLD_INT(0), pld_world_size(p));
  pld_if_begin(p, pld_ne(p, r, PLD_INT(1)));
  dispatch(p, entry, r, ins, outs[0], notes[0], inboxes[0], arrivals[0]);
  pld_if_end(p);
  pld_ranks_end(p);
  r = pld_ranks_begin(p, PLD_INT(1), PLD_INT(3));
  dispatch(p, entry, r, ins, outs[1], notes[1], inboxes[1], arrivals[1]);
  pld_ranks_end(p);
  r = pld_ranks_begin(p, PLD_INT(1), PLD_INT(4));
  dispatch(p, entry, r, ins, outs[2], notes[2], inboxes[2], arrivals[2]);
  pld_ranks_end(p);
  CHECK_OK(pld_program_finish(p, test_print_diagnostic, NULL));
  text.size = 0;
  CHECK_OK(pld_program_print(p, append, &text));
  CHECK_CONTAINS(text.data, "= domain [2, world - 1, 0]");
  CHECK_CONTAINS(text.data, "= domain 1..3");
  CHECK_CONTAINS(text.data, "= alloc_window bytes 4 in ring");
  CHECK_CONTAINS(text.data, "= alloc_window [1, 8] i32 in pair");

  CHECK_OK(pld_compile(p, world, NULL, &x));
  for (launch = 0; launch < 3; launch++) {
    memset(out, 0, sizeof out);
    memset(numbers, 0, sizeof numbers);
    for (rank = 0; rank < 4; rank++)
      for (i = 0; i < WIDTH; i++) in[rank][i] = 1000 * launch + 100 * (rank + 1) + i;
    args[0] = pld_arg_tensor(in, PLD_DTYPE_I32, PLD_DIMS(4, 1, WIDTH));
    for (d = 0; d < 3; d++) {
      args[1 + d] = pld_arg_tensor(out[d], PLD_DTYPE_I32, PLD_DIMS(4, 1, WIDTH));
      args[4 + d] = pld_arg_tensor(numbers[d], PLD_DTYPE_I32, PLD_DIMS(4, 2));
    }
    CHECK_OK(pld_launch(x, args, 7));
    for (d = 0; d < 3; d++) {
      int32_t expected[4][WIDTH], expected_numbers[4][2];
      memset(expected, 0, sizeof expected);
      memset(expected_numbers, 0, sizeof expected_numbers);
      for (i = 0; i < sizes[d]; i++) {
        int sender = rings[d][i], receiver = rings[d][(i + 1) % sizes[d]];
        memcpy(expected[receiver], in[sender], sizeof in[sender]);
        expected_numbers[sender][0] = i;
        expected_numbers[sender][1] = sizes[d];
      }
      CHECK(memcmp(expected, out[d], sizeof expected) == 0);
      CHECK(memcmp(expected_numbers, numbers[d], sizeof expected_numbers) == 0);
    }
  }
  pld_executable_destroy(x);
  pld_world_destroy(world);
  pld_program_destroy(p);
}

static void collect(const pld_diagnostic_t *d, void *user_data) { append(d->text, strlen(d->text), user_data); }

/* The program is refused with this finding. */
static void refused(pld_program_t *p, const char *code, const char *says) {
  struct text findings;
  findings.size = 0;
  CHECK_STATUS(PLD_ERR_VERIFY, pld_program_finish(p, collect, &findings));
  CHECK_CONTAINS(findings.data, code);
  CHECK_CONTAINS(findings.data, says);
  pld_program_destroy(p);
}

static void mistakes(void) {
  pld_program_t *p, *other;
  pld_domain_t d, none = {0};
  pld_scalar_t ranks[2];

  p = pld_program_create("empty");
  d = pld_domain_create(p, "d", NULL, 0);
  CHECK(d.id != 0);
  refused(p, "PLD-V077", "domain d has no ranks");

  p = pld_program_create("twice");
  pld_domain_create(p, "d", PLD_AT(PLD_INT(1), PLD_INT(0), PLD_INT(1)));
  refused(p, "PLD-V077", "domain d has rank 1 twice");

  p = pld_program_create("unreached");
  pld_domain_range(p, "d", PLD_INT(0), PLD_INT(2));
  refused(p, "PLD-V079", "no dispatch passes a window of d to ranks 0 and 1");

  p = pld_program_create("null_list");
  d = pld_domain_create(p, "d", NULL, 2);
  CHECK(pld_alloc_window_in(p, d, "w", PLD_DTYPE_I32, PLD_DIMS(1)).id != 0);
  refused(p, "PLD-B008", "a NULL list of ranks with count 2");

  p = pld_program_create("same_name");
  pld_domain_range(p, "d", PLD_INT(0), PLD_INT(2));
  pld_domain_range(p, "d", PLD_INT(0), PLD_INT(2));
  refused(p, "PLD-B005", "domain \"d\" is declared twice");

  p = pld_program_create("launch_decides");
  ranks[0] = PLD_INT(0);
  ranks[1] = pld_host_scalar(p, "k", PLD_DTYPE_I32);
  pld_domain_create(p, "d", ranks, 2);
  refused(p, "PLD-B004", "not constant");

  p = pld_program_create("no_domain");
  pld_alloc_window_in(p, none, "w", PLD_DTYPE_I32, PLD_DIMS(1));
  refused(p, "PLD-B001", "the domain is no domain: the handle is zero");

  other = pld_program_create("other");
  d = pld_domain_range(other, "d", PLD_INT(0), PLD_INT(1));
  p = pld_program_create("foreign");
  pld_alloc_window_bytes_in(p, d, "w", PLD_INT(64));
  refused(p, "PLD-B001", "the domain is no domain of this program");
  pld_program_destroy(other);
}

int main(void) {
  test_deadline(60);
  exchange_in_three_domains();
  mistakes();
  return 0;
}
