/* The guide's all-reduce: every rank stages its row in a window, a barrier of signals makes all rows visible, and every
 * rank adds up the others'. Shows the verified result and the time of a launch, and with --print the program as text.
 *
 *   cmake -S examples/c -B build/examples -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/examples
 *   build/examples/allreduce --print                  two ranks, threads of this process
 *   build/examples/allreduce --ranks 4 --processes    four ranks, a process each
 */
#include "processes.h"

#include <string.h>
#include <time.h>

enum { SIZE = 256, WARM_UP = 200, LAUNCHES = 2000 };

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
  OK(pld_program_finish(p, example_diagnostic, NULL));
  return p;
}

static double microseconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Launches in a world, for the ranks that this process drives: all of them, or its own. */
static void run(const pld_program_t *p, pld_world_t *world) {
  uint32_t nranks = pld_world_nranks(world), rank, first = 0, driven = nranks;
  int32_t own = pld_world_rank(world);
  pld_executable_t *executable;
  pld_arg_t args[2];
  double *times = (double *)malloc(sizeof *times * LAUNCHES);
  float *inputs, *outputs;
  size_t i, launch;
  if (own >= 0) {
    first = (uint32_t)own;
    driven = 1;
  }
  inputs = (float *)malloc(sizeof *inputs * driven * SIZE);
  outputs = (float *)malloc(sizeof *outputs * driven * SIZE);
  if (times == NULL || inputs == NULL || outputs == NULL) exit(1);

  OK(pld_compile(p, world, NULL, &executable));
  if (own >= 0) {
    args[0] = pld_arg_tensor(inputs, PLD_DTYPE_F32, PLD_DIMS(1, SIZE));
    args[1] = pld_arg_tensor(outputs, PLD_DTYPE_F32, PLD_DIMS(1, SIZE));
  } else {
    args[0] = pld_arg_tensor(inputs, PLD_DTYPE_F32, PLD_DIMS(nranks, 1, SIZE));
    args[1] = pld_arg_tensor(outputs, PLD_DTYPE_F32, PLD_DIMS(nranks, 1, SIZE));
  }
  for (launch = 0; launch < WARM_UP + LAUNCHES; launch++) {
    double begin;
    /* Small whole numbers, so that sums are exact whatever the order. */
    for (i = 0; i < driven * SIZE; i++) {
      inputs[i] = (float)(100 * (first + i / SIZE) + i % SIZE + launch % 7);
      outputs[i] = -1;
    }
    begin = microseconds();
    OK(pld_launch(executable, args, 2));
    if (launch >= WARM_UP) times[launch - WARM_UP] = microseconds() - begin;
    for (i = 0; i < driven * SIZE; i++) {
      double sum = 0;
      for (rank = 0; rank < nranks; rank++) sum += (double)(100 * rank + i % SIZE + launch % 7);
      example_check("sum", first + (uint32_t)(i / SIZE), i % SIZE, outputs[i], sum);
    }
  }
  qsort(times, LAUNCHES, sizeof *times, ascending);
  if (first == 0) {
    printf("%u ranks, %s: element 1 is %g on rank 0, %d launches of %d floats checked\n", nranks,
           own >= 0 ? "processes" : "threads", outputs[1], WARM_UP + LAUNCHES, SIZE);
    printf("time per launch: median %.2f us, best %.2f us\n", times[LAUNCHES / 2], times[0]);
  }
  free(times);
  free(inputs);
  free(outputs);
  pld_executable_destroy(executable);
}

int main(int argc, char **argv) {
  uint32_t nranks = 2;
  int processes = 0, print = 0, i;
  pld_program_t *p;
  pld_world_t *world;
  for (i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--processes") == 0) {
      processes = 1;
    } else if (strcmp(argv[i], "--print") == 0) {
      print = 1;
    } else if (strcmp(argv[i], "--ranks") == 0 && i + 1 < argc && atoi(argv[i + 1]) > 0) {
      nranks = (uint32_t)atoi(argv[++i]);
    } else {
      fprintf(stderr, "usage: allreduce [--ranks N] [--processes] [--print]\n");
      return 2;
    }
  }

  p = allreduce_program();
  if (!processes_is_rank()) {
    if (print) OK(pld_program_print(p, example_write, stdout));
    fflush(stdout);
    if (processes) {
      pld_program_destroy(p);
      return processes_start(argv, nranks);
    }
  }
  world = processes_is_rank() ? processes_join() : example_threads(nranks);
  run(p, world);
  pld_world_destroy(world);
  pld_program_destroy(p);
  if (processes_is_rank() && example_wrong == 0) return 0;
  return example_result("allreduce");
}
