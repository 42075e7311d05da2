// What an engine computes around the exchange of a mixture of experts: the same for libpld and for peers/mpi.c.
#ifndef ENGINE_H
#define ENGINE_H

#include <string.h>

enum { ROUTES = 8, EXPERTS = 16, ELEMENTS = 4096 };

typedef signed char Row[ELEMENTS];      // of a token
typedef unsigned short Made[ELEMENTS];  // of an expert; bf16
typedef float Sum[ELEMENTS];

static inline float from_bf16(unsigned short bits) {
  unsigned wide = (unsigned)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}

// Of a number that bf16 can hold.
static inline unsigned short to_bf16(float value) {
  unsigned wide;
  memcpy(&wide, &value, sizeof wide);
  return (unsigned short)(wide >> 16);
}

// The work of an expert on a row: so little that the exchange counts.
static inline void expert_row(int expert, const Row *row, float scale, Made *made) {
  float factor = scale * (float)(1 + expert % 2);
  for (int i = 0; i < ELEMENTS; i++) (*made)[i] = to_bf16((float)(*row)[i] * factor);
}

// The sum of a token's rows; rows[k] is that of route k.
static inline void sum_rows(const Made *const rows[ROUTES], const float weights[ROUTES], Sum *restrict sum) {
  const Made *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3], *e = rows[4], *f = rows[5], *g = rows[6], *h = rows[7];
  for (int i = 0; i < ELEMENTS; i++)
    (*sum)[i] = weights[0] * from_bf16((*a)[i]) + weights[1] * from_bf16((*b)[i]) + weights[2] * from_bf16((*c)[i]) +
                weights[3] * from_bf16((*d)[i]) + weights[4] * from_bf16((*e)[i]) + weights[5] * from_bf16((*f)[i]) +
                weights[6] * from_bf16((*g)[i]) + weights[7] * from_bf16((*h)[i]);
}

#endif
