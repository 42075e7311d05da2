/* The guide's all-reduce: every rank stages its row in a window, a barrier of signals makes all rows visible, and every
 * rank adds up the others'. Shows the verified result and the time of a launch, and with --print the program as text.
 *
 *   cmake -S examples/c -B build/examples -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/examples
 *   build/examples/allreduce --print                  two ranks, threads of this process
 *   build/examples/allreduce --ranks 4 --processes    four ranks, a process each
 */
#include "exchange.h"

enum { SIZE = 256, WARM_UP = 200 };

static pld_program_t *allreduce_program(void) {
  pld_program_t *p = pld_program_create("l3_allreduce");
  pld_entry_t allreduce = pld_entry_begin(p, "allreduce");
  pld_tensor_t inp = pld_param_tensor(p, "inp", PLD_DTYPE_F32, PLD_DIMS(1, SIZE), PLD_IN);
  pld_tensor_t out = pld_param_tensor(p, "out", PLD_DTYPE_F32, PLD_DIMS(1, SIZE), PLD_OUT);
  pld_tensor_t data = pld_param_window(p, "data", PLD_DTYPE_F32, PLD_DIMS(1, SIZE));
  pld_tensor_t signal = pld_param_window(p, "signal", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, 1));
  pld_scalar_t me = pld_param_scalar(p, "me", PLD_DTYPE_I32);
  pld_scalar_t world = pld_world_size(p), zero = PLD_INT(0);

  pld_at_begin(p, "reduce_step", NULL);
  pld_tile_t acc = pld_load(p, inp, PLD_AT(zero, zero), PLD_DIMS(1, SIZE));
  pld_tile_name(p, acc, "acc");
  pld_store(p, acc, data, PLD_AT(zero, zero));

  pld_scalar_t peer = pld_let(p, "peer", pld_for_begin(p, zero, world));
  pld_if_begin(p, pld_ne(p, peer, me));
  pld_notify(p, signal, peer, PLD_AT(me, zero), PLD_INT(1), PLD_NOTIFY_ADD);
  pld_if_end(p);
  pld_for_end(p);
  pld_scalar_t src = pld_let(p, "src", pld_for_begin(p, zero, world));
  pld_if_begin(p, pld_ne(p, src, me));
  pld_wait(p, signal, PLD_AT(src, zero), PLD_INT(1), PLD_WAIT_GE);
  pld_if_end(p);
  pld_for_end(p);

  peer = pld_let(p, "peer", pld_for_begin(p, zero, world));
  pld_if_begin(p, pld_ne(p, peer, me));
  pld_tile_t recv = pld_remote_load(p, data, peer, PLD_AT(zero, zero), PLD_DIMS(1, SIZE));
  pld_tile_name(p, recv, "recv");
  pld_tile_assign(p, acc, pld_tile_add(p, acc, recv));
  pld_if_end(p);
  pld_for_end(p);
  pld_store(p, acc, out, PLD_AT(zero, zero));
  pld_task_end(p);
  pld_entry_end(p);

  pld_tensor_t inputs = pld_host_tensor(p, "inputs", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, 1, SIZE), PLD_IN);
  pld_tensor_t outputs = pld_host_tensor(p, "outputs", PLD_DTYPE_F32, PLD_DIMS(PLD_WORLD, 1, SIZE), PLD_OUT);
  pld_buffer_t data_buf = pld_alloc_window(p, "data_buf", PLD_DTYPE_F32, PLD_DIMS(1, SIZE));
  pld_buffer_t signal_buf = pld_alloc_window(p, "signal_buf", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, 1));
  pld_scalar_t r = pld_let(p, "r", pld_ranks_begin(p, zero, world));
  pld_dispatch(p, allreduce, r,
               PLD_ARGS(pld_of_tensor(pld_slice_rank(p, inputs, r)), pld_of_tensor(pld_slice_rank(p, outputs, r)),
                        pld_of_tensor(pld_window(p, data_buf, PLD_DTYPE_F32, PLD_DIMS(1, SIZE))),
                        pld_of_tensor(pld_window(p, signal_buf, PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, 1))),
                        pld_of_scalar(r)));
  pld_ranks_end(p);
  return p;
}

/* Launches in a world, for the ranks that this process drives: all of them, or its own. */
static void run(const pld_program_t *p, const ranks_t *ranks) {
  pld_executable_t *executable;
  pld_arg_t args[2];
  double *times = (double *)zeroed(ranks->launches, sizeof *times);
  float *inputs = (float *)ranks_parts(ranks, SIZE, sizeof *inputs);
  float *outputs = (float *)ranks_parts(ranks, SIZE, sizeof *outputs);
  uint32_t launch, rank;
  size_t i;
  OK(pld_compile(p, ranks->world, NULL, &executable));
  args[0] = ranks_arg(ranks, inputs, PLD_DTYPE_F32, 1, SIZE);
  args[1] = ranks_arg(ranks, outputs, PLD_DTYPE_F32, 1, SIZE);
  for (launch = 0; launch < WARM_UP + ranks->launches; launch++) {
    double begin;
    /* Small whole numbers, so that sums are exact whatever the order. */
    for (i = 0; i < ranks->driven * SIZE; i++) {
      inputs[i] = (float)(100 * (ranks->first + i / SIZE) + i % SIZE + launch % 7);
      outputs[i] = -1;
    }
    begin = microseconds();
    OK(pld_launch(executable, args, 2));
    if (launch >= WARM_UP) times[launch - WARM_UP] = microseconds() - begin;
    for (i = 0; i < ranks->driven * SIZE; i++) {
      double sum = 0;
      for (rank = 0; rank < ranks->nranks; rank++) sum += (double)(100 * rank + i % SIZE + launch % 7);
      example_check("sum", ranks->first + (uint32_t)(i / SIZE), i % SIZE, outputs[i], sum);
    }
  }
  ranks_times(ranks, "all-reduce of 256 floats", times, ranks->launches);
  free(times);
  free(inputs);
  free(outputs);
  pld_executable_destroy(executable);
}

int main(int argc, char **argv) { return ranks_main(argc, argv, "allreduce", 2000, allreduce_program, run); }
