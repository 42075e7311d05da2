/* A unit test of an exchange, as an engine has it beside its other tests: no world, no second process, no card. The exchange
 * is an all-reduce that is launched for each layer on persistent windows, with signals that count launches.
 *
 * A rank may be a launch ahead of another one that still reads its part. With two halves of the window, used in turn, that
 * does no harm; with one half it does, and the checker says so, whatever this machine's timing.
 *
 *   cmake -S examples/c -B build/examples -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/examples
 *   build/examples/check
 */
#include "example.h"

#include <string.h>

enum { D = 64 };

static pld_program_t *allreduce(int64_t halves) {
  pld_program_t *p = pld_program_create("allreduce");
  pld_entry_t reduce = pld_entry_begin(p, "reduce");
  pld_tensor_t x = pld_param_tensor(p, "x", PLD_DTYPE_I32, PLD_DIMS(1, D), PLD_IN);
  pld_tensor_t y = pld_param_tensor(p, "y", PLD_DTYPE_I32, PLD_DIMS(1, D), PLD_OUT);
  pld_tensor_t part = pld_param_window(p, "part", PLD_DTYPE_I32, PLD_DIMS(halves, D));
  pld_tensor_t arrived = pld_param_window(p, "arrived", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD));
  pld_scalar_t me = pld_param_scalar(p, "me", PLD_DTYPE_I32), epoch = pld_param_scalar(p, "epoch", PLD_DTYPE_I32);
  pld_scalar_t zero = PLD_INT(0), world = pld_world_size(p);
  pld_at_begin(p, "reduce", NULL);
  pld_scalar_t half = pld_let(p, "half", pld_mod(p, epoch, PLD_INT(halves)));
  pld_tile_t sum = pld_load(p, x, PLD_AT(zero, zero), PLD_DIMS(1, D));
  pld_store(p, sum, part, PLD_AT(half, zero));

  pld_scalar_t peer = pld_let(p, "peer", pld_for_begin(p, zero, world));
  pld_if_begin(p, pld_ne(p, peer, me));
  pld_notify(p, arrived, peer, PLD_AT(me), PLD_INT(1), PLD_NOTIFY_ADD);
  pld_if_end(p);
  pld_for_end(p);

  pld_scalar_t source = pld_let(p, "source", pld_for_begin(p, zero, world));
  pld_if_begin(p, pld_ne(p, source, me));
  pld_wait(p, arrived, PLD_AT(source), epoch, PLD_WAIT_GE);
  pld_tile_assign(p, sum,
                  pld_tile_add(p, sum, pld_remote_load(p, part, source, PLD_AT(half, zero), PLD_DIMS(1, D))));
  pld_if_end(p);
  pld_for_end(p);

  pld_store(p, sum, y, PLD_AT(zero, zero));
  pld_task_end(p);
  pld_entry_end(p);

  pld_tensor_t xs = pld_host_tensor(p, "xs", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, 1, D), PLD_IN);
  pld_tensor_t ys = pld_host_tensor(p, "ys", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD, 1, D), PLD_OUT);
  pld_scalar_t launch = pld_host_scalar(p, "epoch", PLD_DTYPE_I32);
  pld_buffer_t part_buf = pld_alloc_window(p, "part_buf", PLD_DTYPE_I32, PLD_DIMS(halves, D));
  pld_buffer_t arrived_buf = pld_alloc_window(p, "arrived_buf", PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD));
  pld_scalar_t r = pld_ranks_begin(p, zero, world);
  pld_dispatch(p, reduce, r,
               PLD_ARGS(pld_of_tensor(pld_slice_rank(p, xs, r)), pld_of_tensor(pld_slice_rank(p, ys, r)),
                        pld_of_tensor(pld_window(p, part_buf, PLD_DTYPE_I32, PLD_DIMS(halves, D))),
                        pld_of_tensor(pld_window(p, arrived_buf, PLD_DTYPE_I32, PLD_DIMS(PLD_WORLD))),
                        pld_of_scalar(r), pld_of_scalar(launch)));
  pld_ranks_end(p);
  OK(pld_program_finish(p, example_diagnostic, NULL));
  return p;
}

/* The first finding, to look at and to run again. */
struct finding {
  char code[16], schedule[256];
};

static void on_finding(const pld_diagnostic_t *d, void *user_data) {
  struct finding *finding = (struct finding *)user_data;
  printf("%s\n", d->text);
  if (finding->code[0] != '\0') return;
  snprintf(finding->code, sizeof finding->code, "%s", d->code);
  snprintf(finding->schedule, sizeof finding->schedule, "%s", d->schedule);
}

/* Three launches in a row, as in a persistent executable. Inputs are made up, and `epoch` is 1, 2, 3. */
static pld_status_t check(const pld_program_t *p, uint32_t nranks, const char *replay, struct finding *finding) {
  pld_check_options_t options;
  pld_check_report_t report = {sizeof report, 0, 0, 0, 0, 0};
  OK(pld_check_options_init(&options, sizeof options));
  options.nranks = nranks;
  options.launches = 3;
  options.persistent = 1;
  options.replay = replay;
  pld_status_t status = pld_check(p, &options, on_finding, finding, &report);
  printf("%u ranks: %s, %llu schedules%s\n", (unsigned)nranks, pld_status_message(status),
         (unsigned long long)report.schedules, report.complete ? ", which are all" : "");
  return status;
}

int main(void) {
  struct finding finding = {"", ""}, again = {"", ""};
  pld_program_t *right = allreduce(2), *wrong = allreduce(1);

  OK(check(right, 2, NULL, &finding));
  OK(check(right, 3, NULL, &finding));

  if (check(wrong, 2, NULL, &finding) != PLD_ERR_CHECK) example_wrong++;
  if (strcmp(finding.code, "PLD-C003") != 0) example_wrong++;

  /* The schedule of a finding shows it again: set a breakpoint in a function of the engine, or try a fix. */
  if (check(wrong, 2, finding.schedule, &again) != PLD_ERR_CHECK) example_wrong++;
  if (strcmp(finding.code, again.code) != 0) example_wrong++;

  pld_program_destroy(right);
  pld_program_destroy(wrong);
  printf("check: %s\n", example_wrong == 0 ? "finds what is wrong, and nothing else" : "WRONG");
  return example_wrong == 0 ? 0 : 1;
}
