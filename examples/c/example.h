/* What the examples share: errors that end them, and the walk from a finished program to a launch. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <pld.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends the example if a call failed, with the library's message. */
#define OK(call) example_ok((call), #call)

static inline void example_ok(pld_status_t status, const char *call) {
  char message[4096];
  if (status == PLD_OK) return;
  pld_last_error(message, sizeof message);
  fprintf(stderr, "%s\n  %s: %s\n", call, pld_status_name(status), message);
  exit(1);
}

static inline void example_diagnostic(const pld_diagnostic_t *d, void *user_data) {
  (void)user_data;
  fprintf(stderr, "%s\n", d->text);
}

static inline int32_t example_write(const char *text, size_t size, void *user_data) {
  return fwrite(text, 1, size, (FILE *)user_data) == size ? 0 : 1;
}

/* A world whose ranks are threads of this process. */
static inline pld_world_t *example_threads(uint32_t nranks) {
  pld_world_options_t options;
  pld_world_t *world;
  OK(pld_world_options_init(&options, sizeof options));
  options.nranks = nranks;
  OK(pld_world_create(&options, &world));
  return world;
}

/* Nothing can go wrong in a launch with these arguments, in any of some orders of its ranks. */
static inline void example_explore(const pld_program_t *p, uint32_t nranks, const pld_arg_t *args, size_t nargs) {
  pld_check_options_t options;
  OK(pld_check_options_init(&options, sizeof options));
  options.nranks = nranks;
  options.schedules = 50;
  options.args = args;
  options.nargs = nargs;
  OK(pld_check(p, &options, example_diagnostic, NULL, NULL));
}

/* Finishes the program, checks it, and launches it once in a world of threads. */
static inline void example_run(pld_program_t *p, uint32_t nranks, const pld_arg_t *args, size_t nargs) {
  pld_world_t *world = example_threads(nranks);
  pld_executable_t *executable;
  OK(pld_program_finish(p, example_diagnostic, NULL));
  example_explore(p, nranks, args, nargs);
  OK(pld_compile(p, world, NULL, &executable));
  OK(pld_launch(executable, args, nargs));
  pld_executable_destroy(executable);
  pld_world_destroy(world);
  pld_program_destroy(p);
}

/* Numbers that depend on rank and place, as if random. */
static inline float example_value(uint32_t rank, size_t place) {
  uint32_t x = (rank * 7919u + (uint32_t)place) * 2654435761u;
  return (float)(x >> 8) / 8388608.0f - 1.0f;
}

static int example_wrong = 0;

/* Counts a wrong result, and shows the first ones. */
static inline void example_is_wrong(const char *what, uint32_t rank, size_t place, double got, double expected) {
  if (example_wrong++ < 5) fprintf(stderr, "%s: rank %u, element %zu is %g, not %g\n", what, rank, place, got, expected);
}

/* The result is right but for rounding. */
static inline void example_check(const char *what, uint32_t rank, size_t place, double got, double expected) {
  if (!(fabs(got - expected) <= 1e-8 + 1e-5 * fabs(expected))) example_is_wrong(what, rank, place, got, expected);
}

/* The example's last line and exit code. */
static inline int example_result(const char *what) {
  printf("%s: %s\n", what, example_wrong == 0 ? "right on every rank" : "WRONG");
  return example_wrong == 0 ? 0 : 1;
}

#endif
