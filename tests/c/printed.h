/* What a program prints. */
#ifndef PRINTED_H
#define PRINTED_H

#include "pld_test.h"

struct text {
  char bytes[65536];
  size_t size;
};

static inline int32_t append(const char *text, size_t size, void *user_data) {
  struct text *all = (struct text *)user_data;
  CHECK(all->size + size < sizeof all->bytes);
  memcpy(all->bytes + all->size, text, size);
  all->size += size;
  all->bytes[all->size] = '\0';
  return 0;
}

static inline struct text *printed(const pld_program_t *p) {
  struct text *t = (struct text *)calloc(1, sizeof *t);
  CHECK(t != NULL);
  CHECK_OK(pld_program_print(p, append, t));
  return t;
}

#endif
