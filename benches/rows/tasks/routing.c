// The scalar part of a dispatch, as a C programmer writes it: where each route goes. The bound of a benchmark.
#include <stdint.h>
#include <string.h>

enum { TOKENS = 128, ROUTES = 8, EXPERTS = 16, RANKS = 2 };

// For each route the rank that it goes to, and the row of the expert's lane there.
void route(const int32_t expert[TOKENS][ROUTES], int32_t peer[TOKENS][ROUTES], int32_t row[TOKENS][ROUTES], int32_t me) {
  int32_t next[RANKS * EXPERTS];
  memset(next, 0, sizeof next);
  for (int32_t t = 0; t < TOKENS; t++) {
    for (int32_t k = 0; k < ROUTES; k++) {
      int32_t e = expert[t][k];
      peer[t][k] = e / EXPERTS;
      row[t][k] = (e % EXPERTS * RANKS + me) * TOKENS + next[e];
      next[e]++;
    }
  }
}
