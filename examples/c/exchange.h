/* What the exchanges share: an entry that every rank runs once a launch, with its tensors and windows in a table; and
 * times. */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include "ranks.h"

#include <time.h>

/* A parameter of the entry with two dimensions: a tensor, of which a launch is given one part a rank, or a window. */
typedef struct {
  const char *name;
  pld_dtype_t dtype;
  pld_direction_t direction; /* 0: it is a window */
  pld_dim_t rows, columns;
} field_t;

enum { WINDOW = 0, MOST_FIELDS = 32 };

/* Begins the entry: the fields, then this rank's number and the epoch. */
static inline pld_entry_t exchange_entry_begin(pld_program_t *p, const char *name, const field_t *fields, size_t nfields,
                                               pld_tensor_t *tensors, pld_scalar_t *me, pld_scalar_t *epoch) {
  pld_entry_t entry = pld_entry_begin(p, name);
  size_t i;
  for (i = 0; i < nfields; i++) {
    const field_t *f = &fields[i];
    tensors[i] = f->direction == WINDOW
                     ? pld_param_window(p, f->name, f->dtype, PLD_DIMS(f->rows, f->columns))
                     : pld_param_tensor(p, f->name, f->dtype, PLD_DIMS(f->rows, f->columns), f->direction);
  }
  *me = pld_param_scalar(p, "me", PLD_DTYPE_I32);
  *epoch = pld_param_scalar(p, "epoch", PLD_DTYPE_I32);
  return entry;
}

/* The host driver: every rank runs the entry, with its parts of the tensors and its views of the windows. */
static inline void exchange_host(pld_program_t *p, pld_entry_t entry, const field_t *fields, size_t nfields) {
  pld_tensor_t hosts[MOST_FIELDS];
  pld_buffer_t buffers[MOST_FIELDS];
  pld_operand_t operands[MOST_FIELDS + 2];
  pld_scalar_t epoch, r;
  size_t i;
  for (i = 0; i < nfields; i++)
    if (fields[i].direction != WINDOW)
      hosts[i] = pld_host_tensor(p, fields[i].name, fields[i].dtype,
                                 PLD_DIMS(PLD_WORLD, fields[i].rows, fields[i].columns), fields[i].direction);
  epoch = pld_host_scalar(p, "epoch", PLD_DTYPE_I32);
  for (i = 0; i < nfields; i++) {
    char name[64];
    if (fields[i].direction != WINDOW) continue;
    snprintf(name, sizeof name, "%s_buf", fields[i].name);
    buffers[i] = pld_alloc_window(p, name, fields[i].dtype, PLD_DIMS(fields[i].rows, fields[i].columns));
  }
  r = pld_let(p, "r", pld_ranks_begin(p, PLD_INT(0), pld_world_size(p)));
  for (i = 0; i < nfields; i++)
    operands[i] = pld_of_tensor(fields[i].direction == WINDOW
                                    ? pld_window(p, buffers[i], fields[i].dtype,
                                                 PLD_DIMS(fields[i].rows, fields[i].columns))
                                    : pld_slice_rank(p, hosts[i], r));
  operands[nfields] = pld_of_scalar(r);
  operands[nfields + 1] = pld_of_scalar(epoch);
  pld_dispatch(p, entry, r, operands, nfields + 2);
  pld_ranks_end(p);
}

/* `for name in first..end`. */
static inline pld_scalar_t exchange_for(pld_program_t *p, const char *name, pld_scalar_t first, pld_scalar_t end) {
  return pld_let(p, name, pld_for_begin(p, first, end));
}

/* `for name in 0..world { if name != me {`; `exchange_others_end` ends it. */
static inline pld_scalar_t exchange_others(pld_program_t *p, const char *name, pld_scalar_t me) {
  pld_scalar_t other = exchange_for(p, name, PLD_INT(0), pld_world_size(p));
  pld_if_begin(p, pld_ne(p, other, me));
  return other;
}

static inline void exchange_others_end(pld_program_t *p) {
  pld_if_end(p);
  pld_for_end(p);
}

/* With windows that keep their contents from launch to launch. */
static inline pld_executable_t *ranks_compile_persistent(const ranks_t *ranks, const pld_program_t *p) {
  pld_compile_options_t options;
  pld_executable_t *executable;
  OK(pld_compile_options_init(&options, sizeof options));
  options.persistent = 1;
  OK(pld_compile(p, ranks->world, &options, &executable));
  return executable;
}

static inline double microseconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* Lets this rank fall behind: most often not at all, sometimes by up to two milliseconds. */
static inline void dawdle(uint32_t rank, size_t place) {
  struct timespec pause = {0, 0};
  float value = example_value(rank + 1000, place);
  if (value < 0.75f) return;
  pause.tv_nsec = (long)((value - 0.75f) * 8e6f);
  nanosleep(&pause, NULL);
}

static inline int ascending_(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Sorts the times of `count` launches, and shows them on rank 0. */
static inline void ranks_times(const ranks_t *ranks, const char *what, double *times, size_t count) {
  qsort(times, count, sizeof *times, ascending_);
  if (ranks->first != 0 || count == 0) return;
  printf("%s, %u ranks, %s: median %.2f us, best %.2f us of %zu\n", what, ranks->nranks,
         ranks->processes ? "processes" : "threads", times[count / 2], times[0], count);
}

#endif
