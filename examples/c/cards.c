/* Ranks that are Ascend NPUs, one process a card: every card gets the rows of all others. The first launch waits for its
 * end; the others are queued on the engine's stream, and the host hears of them when it asks.
 *
 *   pld spawn -n 4 -- build/examples/cards
 *
 * An engine passes memory of its own (aclrtMalloc, torch_npu) and its own stream; this example has neither, and so takes
 * residents and the default stream.
 */
#include <pld.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { D = 256, LAUNCHES = 8, MOST_RANKS = 64 };

static const char *const TEXT =
    "program rows\n"
    "const D = 256\n"
    "entry gather(x: tensor[1, D] f32 in, y: tensor[world, D] f32 out, rows: window[2 * world, D] f32,\n"
    "             arrived: window[world, 1] i32, me: i32, epoch: i32) {\n"
    "  base = epoch % 2 * world                  # halves in turn: nobody writes what others still read\n"
    "  at push {\n"
    "    for peer in 0..world {\n"
    "      put rows[base + me, 0] @peer <- x[0, 0] [1, D]\n"
    "      notify arrived[me, 0] @peer += 1\n"
    "    }\n"
    "    for src in 0..world { wait arrived[src, 0] >= epoch }\n"
    "    get y[0, 0] <- rows[base, 0] @me [world, D]\n"
    "  }\n"
    "}\n"
    "host (xs: tensor[world, 1, D] f32 in, ys: tensor[world, world, D] f32 out, epoch: i32) {\n"
    "  rows_buf = alloc_window [2 * world, D] f32\n"
    "  arrived_buf = alloc_window [world, 1] i32\n"
    "  ranks r in 0..world {\n"
    "    rows = window rows_buf [2 * world, D] f32\n"
    "    arrived = window arrived_buf [world, 1] i32\n"
    "    dispatch gather(xs[r], ys[r], rows, arrived, r, epoch) device r\n"
    "  }\n"
    "}\n";

/* Element `column` of the row that `rank` sends. */
static float element(uint32_t rank, int column) { return (float)(1000 * rank + (uint32_t)column); }

static void check(pld_status_t status, const char *what) {
  char message[2048];
  if (status == PLD_OK) return;
  pld_last_error(message, sizeof message);
  fprintf(stderr, "cards: %s: %s\n", what, message);
  exit(1);
}

int main(void) {
  pld_world_options_t world_options;
  pld_compile_options_t compile_options;
  pld_world_t *world = NULL;
  pld_program_t *program = NULL;
  pld_executable_t *gather = NULL;
  pld_resident_t *x = NULL, *y = NULL;
  static float row[D], rows[MOST_RANKS * D];
  uint32_t rank, nranks, peer;
  int i, launch, wrong = 0;

  pld_world_options_init(&world_options, sizeof world_options);
  world_options.transport = PLD_TRANSPORT_HCCL; /* rank r has device r */
  check(pld_world_join(&world_options, &world), "the world");
  rank = (uint32_t)pld_world_rank(world);
  nranks = pld_world_nranks(world);

  check(pld_program_parse(TEXT, strlen(TEXT), "cards.c", NULL, NULL, &program), "the program");
  pld_compile_options_init(&compile_options, sizeof compile_options);
  compile_options.persistent = 1;
  check(pld_compile(program, world, &compile_options, &gather), "its kernels");

  check(pld_resident_create(world, rank, PLD_DTYPE_F32, PLD_DIMS(1, D), &x), "memory of the card");
  check(pld_resident_create(world, rank, PLD_DTYPE_F32, PLD_DIMS(nranks, D), &y), "memory of the card");
  for (i = 0; i < D; i++) row[i] = element(rank, i);
  check(pld_resident_copy_in(x, rank, row, sizeof row), "a copy to the card");

  for (launch = 1; launch <= LAUNCHES; launch++) {
    const pld_arg_t args[] = {pld_arg_resident(x), pld_arg_resident(y), pld_arg_int(launch)};
    if (launch == 1)
      check(pld_launch(gather, args, 3), "a launch");
    else
      check(pld_launch_on(gather, args, 3, NULL), "a launch on the default stream");
  }
  /* A launch of the host comes after all of them, and tells if one has failed. */
  {
    const pld_arg_t args[] = {pld_arg_resident(x), pld_arg_resident(y), pld_arg_int(LAUNCHES + 1)};
    check(pld_launch(gather, args, 3), "the launches before");
  }
  check(pld_resident_copy_out(y, rank, rows, nranks * sizeof row), "a copy from the card");
  for (peer = 0; peer < nranks; peer++)
    for (i = 0; i < D; i++) wrong += rows[peer * D + (uint32_t)i] != element(peer, i);
  printf("rank %u of %u: %d launches, %s\n", rank, nranks, LAUNCHES + 1, wrong ? "wrong" : "right");

  pld_resident_destroy(x);
  pld_resident_destroy(y);
  pld_executable_destroy(gather);
  pld_program_destroy(program);
  pld_world_destroy(world);
  return wrong != 0;
}
