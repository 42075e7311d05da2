// The engine's functions for the extern tasks of moe.pld.
#include "engine.h"
#include "pld.h"

static void *data(const pld_task_context_t *context, int tensor) { return context->tensors[tensor].data; }

// expert(counts in, given in, factors in, made inout, e)
int32_t moe_expert(const pld_task_context_t *context, void *user_data) {
  (void)user_data;
  const int32_t *counts = data(context, 0);
  const Row *given = data(context, 1);
  const float *factors = data(context, 2);
  Made *made = data(context, 3);
  int expert = (int)context->scalars[0];
  int64_t places = context->tensors[1].shape[0] / context->nranks;
  for (int64_t source = 0; source < context->nranks; source++) {
    int64_t first = source * places;
    for (int64_t row = first; row < first + counts[source * EXPERTS + expert]; row++)
      expert_row(expert, &given[row], factors[row], &made[row]);
  }
  return 0;
}

// sum(back in, weight in, y out)
int32_t moe_sum(const pld_task_context_t *context, void *user_data) {
  (void)user_data;
  const Made *back = data(context, 0);
  const float(*weights)[ROUTES] = data(context, 1);
  Sum *y = data(context, 2);
  for (int64_t token = 0; token < context->tensors[2].shape[0]; token++) {
    const Made *rows[ROUTES];
    for (int k = 0; k < ROUTES; k++) rows[k] = &back[token * ROUTES + k];
    sum_rows(rows, weights[token], &y[token]);
  }
  return 0;
}
