/* Step 16: three collectives in one program: a tensor-parallel layer. Rank 0 has the tokens and gives them to all.
 * Each rank multiplies them by its share of the weights - here by the number r + 1 - which gives it a part of every
 * row of the result. Each rank adds up one row, adds the token to it (the residual), and all rows come together
 * again: y = x[0] * (1 + 2 + ... + world) + x[0], on every rank.
 *
 *   cmake -S examples/c -B build/examples -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/examples
 *   build/examples/16_composed --ranks 3
 */
#include "step.h"

enum { COLUMNS = 8 };

static pld_program_t *composed(void) {
  pld_program_t *p = pld_program_create("composed");
  pld_entry_t layer = pld_entry_begin(p, "layer");
  pld_tensor_t x = pld_param_tensor(p, "x", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS), PLD_IN);
  pld_tensor_t y = pld_param_tensor(p, "y", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS), PLD_OUT);
  pld_tensor_t tokens = pld_param_window(p, "tokens", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS));
  pld_tensor_t parts = pld_param_window(p, "parts", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS));
  pld_scalar_t zero = PLD_INT(0), one = PLD_INT(1);

  pld_at_begin(p, "layer", NULL);
  pld_scalar_t me = pld_let(p, "me", pld_rank(p, tokens));
  pld_put(p, tokens, me, x, NULL);
  pld_broadcast(p, tokens, zero, NULL);

  pld_scalar_t weight = pld_let(p, "weight", pld_cast(p, pld_add(p, me, one), PLD_DTYPE_F32));
  pld_tile_t all = pld_load(p, tokens, PLD_AT(zero, zero), PLD_DIMS(PLD_WORLD, COLUMNS));
  pld_store(p, pld_tile_muls(p, all, weight), parts, PLD_AT(zero, zero));
  pld_reduce_scatter(p, parts, PLD_COMBINE_SUM, NULL);

  pld_tile_t sum = pld_load(p, parts, PLD_AT(me, zero), PLD_DIMS(1, COLUMNS));
  pld_tile_t token = pld_load(p, tokens, PLD_AT(me, zero), PLD_DIMS(1, COLUMNS));
  pld_store(p, pld_tile_add(p, sum, token), parts, PLD_AT(me, zero));
  pld_tensor_t row = pld_slice(p, parts, PLD_AT(me, zero), PLD_DIMS(1, COLUMNS));
  pld_tensor_name(p, row, "row");
  pld_allgather(p, tokens, row, NULL);
  pld_get(p, y, me, tokens, NULL);
  pld_task_end(p);
  pld_entry_end(p);

  pld_tensor_t xs = pld_host_tensor(p, "xs", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, PLD_WORLD, COLUMNS), PLD_IN);
  pld_tensor_t ys = pld_host_tensor(p, "ys", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, PLD_WORLD, COLUMNS), PLD_OUT);
  pld_buffer_t tokens_buf = pld_alloc_window(p, "tokens_buf", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS));
  pld_buffer_t parts_buf = pld_alloc_window(p, "parts_buf", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS));
  pld_scalar_t r = pld_let(p, "r", pld_ranks_begin(p, zero, pld_world_size(p)));
  pld_dispatch(p, layer, r,
               PLD_ARGS(pld_of_tensor(pld_slice_rank(p, xs, r)), pld_of_tensor(pld_slice_rank(p, ys, r)),
                        pld_of_tensor(pld_window(p, tokens_buf, PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS))),
                        pld_of_tensor(pld_window(p, parts_buf, PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, COLUMNS)))));
  pld_ranks_end(p);
  return p;
}

static double of_layer(uint32_t nranks, uint32_t rank, size_t row, size_t column) {
  (void)rank;
  return step_input(nranks, 0, row, column) * (nranks * (nranks + 1) / 2 + 1);
}

static void run(const pld_program_t *p, const ranks_t *ranks) {
  const step_tensor_t tensors[] = {{"x", PLD_DTYPE_F32, PLD_WORLD, COLUMNS, NULL},
                                   {"y", PLD_DTYPE_F32, PLD_WORLD, COLUMNS, of_layer}};
  step_run(p, ranks, tensors, 2);
}

int main(int argc, char **argv) { return ranks_main(argc, argv, "16_composed", 1, composed, run); }
