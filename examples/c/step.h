/* What the steps of the tutorial share. A step is a program and what its tensors have to be; it runs as
 *
 *   01_hello_rank                           between 2 ranks, threads of this process
 *   01_hello_rank --ranks 4 --processes     between 4, a process each
 *   01_hello_rank --print                   with its program as text, that of examples/pld/01_hello_rank.pld
 */
#ifndef STEP_H
#define STEP_H

#include "ranks.h"

/* An element of a tensor of a rank. */
typedef double (*step_element_fn)(uint32_t nranks, uint32_t rank, size_t row, size_t column);

/* A parameter of the host driver: on each rank so many rows (PLD_WORLD: one for each rank) of f32 or i32. */
typedef struct {
  const char *name;
  pld_dtype_t dtype;
  int64_t rows, columns;
  step_element_fn result; /* what has to come out; NULL: it is an input, of step_input */
} step_tensor_t;

/* An element of an input, in digits: the hundreds are the rank, the tens the row, the ones the column. */
static inline double step_input(uint32_t nranks, uint32_t rank, size_t row, size_t column) {
  (void)nranks;
  return (double)(100 * rank + 10 * row + column);
}

/* The sum of an element of the input over all ranks. */
static inline double step_sum(uint32_t nranks, uint32_t rank, size_t row, size_t column) {
  double sum = 0;
  for (rank = 0; rank < nranks; rank++) sum += step_input(nranks, rank, row, column);
  return sum;
}

static inline size_t step_rows(const step_tensor_t *tensor, const ranks_t *ranks) {
  return tensor->rows == PLD_WORLD ? ranks->nranks : (size_t)tensor->rows;
}

static inline double step_get(const step_tensor_t *tensor, const void *values, size_t at) {
  return tensor->dtype == PLD_DTYPE_I32 ? (double)((const int32_t *)values)[at] : (double)((const float *)values)[at];
}

/* An argument for a tensor, with the parts of the ranks of this process: the input, or -1. */
static inline pld_arg_t step_arg(const step_tensor_t *tensor, const ranks_t *ranks) {
  const size_t rows = step_rows(tensor, ranks), columns = (size_t)tensor->columns;
  void *values = ranks_parts(ranks, rows * columns, pld_dtype_size(tensor->dtype));
  size_t i;
  for (i = 0; i < ranks->driven * rows * columns; i++) {
    const uint32_t rank = ranks->first + (uint32_t)(i / (rows * columns));
    double value = tensor->result != NULL ? -1 : step_input(ranks->nranks, rank, i / columns % rows, i % columns);
    if (tensor->dtype == PLD_DTYPE_I32)
      ((int32_t *)values)[i] = (int32_t)value;
    else
      ((float *)values)[i] = (float)value;
  }
  return ranks_arg(ranks, values, tensor->dtype, (int64_t)rows, tensor->columns);
}

/* Every element is right. Shows where the last part begins. */
static inline void step_check(const step_tensor_t *tensor, const ranks_t *ranks, const void *values) {
  const size_t rows = step_rows(tensor, ranks), columns = (size_t)tensor->columns;
  const uint32_t last = ranks->first + ranks->driven - 1;
  size_t row, column, at = 0;
  uint32_t rank;
  for (rank = ranks->first; rank <= last; rank++)
    for (row = 0; row < rows; row++)
      for (column = 0; column < columns; column++, at++)
        example_check(tensor->name, rank, row * columns + column, step_get(tensor, values, at),
                      tensor->result(ranks->nranks, rank, row, column));

  printf("rank %u has %s =", last, tensor->name);
  for (row = 0; row < rows && row < 4; row++)
    for (column = 0; column < columns && column < 4; column++)
      printf("%s%g%s", column == 0 ? " [" : " ", step_get(tensor, values, at - (rows - row) * columns + column),
             column + 1 == columns ? "]" : column == 3 ? " ...]" : "");
  printf(rows > 4 ? " ...\n" : "\n");
}

/* Runs a finished program on these tensors, its arguments, and checks what comes out. */
static inline void step_run(const pld_program_t *p, const ranks_t *ranks, const step_tensor_t *tensors,
                            size_t ntensors) {
  pld_arg_t args[PLD_MAX_RANK];
  pld_executable_t *executable;
  uint32_t launch;
  size_t i;
  for (i = 0; i < ntensors; i++) args[i] = step_arg(&tensors[i], ranks);

  if (!ranks->processes) example_explore(p, ranks->nranks, args, ntensors);
  OK(pld_compile(p, ranks->world, NULL, &executable));
  for (launch = 0; launch < ranks->launches; launch++) OK(pld_launch(executable, args, ntensors));
  pld_executable_destroy(executable);

  for (i = 0; i < ntensors; i++) {
    if (tensors[i].result != NULL) step_check(&tensors[i], ranks, args[i].tensor.data);
    free(args[i].tensor.data);
  }
}

#endif
