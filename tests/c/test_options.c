/* Options structs of other versions (C71), through both functions that take some. */
#include "pld_test.h"

struct longer_world {
  pld_world_options_t options;
  unsigned char tail[32];
};

static pld_status_t create(struct longer_world *o, uint32_t size) {
  pld_world_t *world = NULL;
  pld_status_t status;
  o->options.struct_size = size;
  status = pld_world_create(&o->options, &world);
  CHECK((status == PLD_OK) == (world != NULL));
  if (status == PLD_OK) CHECK(pld_world_nranks(world) == o->options.nranks);
  pld_world_destroy(world);
  return status;
}

static void world_options(void) {
  const uint32_t size = (uint32_t)sizeof(pld_world_options_t);
  static const uint32_t garbage[] = {0, 1, 3, 7, 13, 5000, 0x5a5a5a5a, UINT32_MAX};
  struct longer_world o;
  size_t i;
  memset(&o, 0xee, sizeof o);
  CHECK_OK(pld_world_options_init(&o.options, sizeof o.options));
  CHECK(o.options.struct_size == size && o.options.timeout_us == 0 && o.options.bootstrap == NULL);
  CHECK(o.tail[0] == 0xee);

  /* An older header had less: up to nranks and rank, say. */
  memset(&o, 0, sizeof o);
  o.options.nranks = 2;
  o.options.timeout_us = 12345;
  CHECK_OK(create(&o, 16));
  CHECK_OK(create(&o, size));

  /* What an older struct does not have is not read. */
  o.options.wait = 99;
  CHECK_OK(create(&o, 16));
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, create(&o, size));
  CHECK_ERROR("wait policy 99");
  o.options.wait = 0;

  /* A newer header has more: fine while it is zero. */
  CHECK_OK(create(&o, size + 32));
  o.tail[9] = 1;
  CHECK_OK(create(&o, size + 8));
  CHECK_STATUS(PLD_ERR_VERSION, create(&o, size + 16));
  CHECK_STATUS(PLD_ERR_VERSION, create(&o, size + 32));

  for (i = 0; i < COUNT(garbage); i++) CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, create(&o, garbage[i]));
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_world_options_init(&o.options, 0));
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_world_options_init(&o.options, 3));
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_world_options_init(&o.options, SIZE_MAX));
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_world_options_init(NULL, sizeof o.options));
}

static void compile_options(void) {
  struct {
    pld_compile_options_t options;
    uint32_t tail[4];
  } o;
  pld_program_t *p = test_shift_finished(8);
  pld_world_t *world = test_world(2, 5000000);
  pld_executable_t *x = NULL;
  memset(&o, 0, sizeof o);
  CHECK_OK(pld_compile(p, world, NULL, &x));
  pld_executable_destroy(x);
  CHECK_OK(pld_compile_options_init(&o.options, sizeof o.options));
  CHECK_OK(pld_compile(p, world, &o.options, &x));
  pld_executable_destroy(x);
  o.options.struct_size = (uint32_t)sizeof o;
  CHECK_OK(pld_compile(p, world, &o.options, &x));
  pld_executable_destroy(x);
  o.tail[3] = 1;
  x = NULL;
  CHECK_STATUS(PLD_ERR_VERSION, pld_compile(p, world, &o.options, &x));
  CHECK_ERROR("byte 68");
  /* Before there were callbacks. */
  o.options.struct_size = 12;
  o.options.ncallbacks = 1;
  CHECK_OK(pld_compile(p, world, &o.options, &x));
  pld_executable_destroy(x);
  x = NULL;
  o.options.ncallbacks = 0;
  o.options.struct_size = 4;
  CHECK_OK(pld_compile(p, world, &o.options, &x));
  pld_executable_destroy(x);
  x = NULL;
  o.options.struct_size = 0;
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_compile(p, world, &o.options, &x));
  o.options.struct_size = 6;
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_compile(p, world, &o.options, &x));
  CHECK(x == NULL);
  pld_world_destroy(world);
  pld_program_destroy(p);
}

int main(void) {
  test_deadline(60);
  world_options();
  compile_options();
  return 0;
}
