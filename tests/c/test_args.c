/* Arguments: every form that is right, and everything that can be wrong with them, found before anything runs. */
#include "pld_test.h"

enum { COLUMNS = 8, RANKS = 2 };

/* DLPack's struct, as its version 1.0 has it. */
struct DLManagedTensor {
  struct {
    void *data;
    struct {
      int32_t device_type, device_id;
    } device;
    int32_t ndim;
    struct {
      uint8_t code, bits;
      uint16_t lanes;
    } dtype;
    int64_t *shape;
    int64_t *strides;
    uint64_t byte_offset;
  } dl_tensor;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensor *);
};

/* The input, with room in front of it for a tensor that begins before its data. */
static struct {
  char before[16];
  float in[RANKS][1][COLUMNS];
} input;
static float (*const in)[1][COLUMNS] = input.in;
static float out[RANKS][1][COLUMNS];
static pld_executable_t *x;
static pld_arg_t args[3];

static void reset(void) {
  int r, c;
  for (r = 0; r < RANKS; r++)
    for (c = 0; c < COLUMNS; c++) in[r][0][c] = (float)(10 * r + c + 1);
  memset(out, 0xff, sizeof out);
  args[0] = pld_arg_tensor(in, PLD_DTYPE_F32, PLD_DIMS(RANKS, 1, COLUMNS));
  args[1] = pld_arg_tensor(out, PLD_DTYPE_F32, PLD_DIMS(RANKS, 1, COLUMNS));
  args[2] = pld_arg_float(1);
}

static void check_out(float factor) {
  int r, c;
  for (r = 0; r < RANKS; r++)
    for (c = 0; c < COLUMNS; c++) CHECK(out[r][0][c] == in[(r + RANKS - 1) % RANKS][0][c] * factor);
}

/* The launch is refused with these words, and the outputs are as before. */
static void refused(pld_status_t status, const char *part) {
  unsigned char before[sizeof out];
  memcpy(before, out, sizeof out);
  CHECK_STATUS(status, pld_launch(x, args, 3));
  CHECK_ERROR(part);
  CHECK(memcmp(before, out, sizeof out) == 0);
  reset();
}

static void right_forms(void) {
  pld_tensor_arg_t in_parts[RANKS], out_parts[RANKS];
  int r;
  reset();
  CHECK_OK(pld_launch(x, args, 3));
  check_out(1);

  /* Explicit strides of the only layout there is. */
  reset();
  args[0].tensor.strides[0] = COLUMNS;
  args[0].tensor.strides[1] = COLUMNS;
  args[0].tensor.strides[2] = 1;
  CHECK_OK(pld_launch(x, args, 3));
  check_out(1);

  /* One tensor a rank; an integer for a float parameter is refused, a float is not. */
  reset();
  for (r = 0; r < RANKS; r++) {
    in_parts[r] = pld_tensor_of(in[r], PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS));
    out_parts[r] = pld_tensor_of(out[r], PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS));
  }
  args[0] = pld_arg_parts(in_parts, RANKS);
  args[1] = pld_arg_parts(out_parts, RANKS);
  args[2] = pld_arg_float(3);
  CHECK_OK(pld_launch(x, args, 3));
  check_out(3);
}

static void dlpack(void) {
  int64_t shape[3] = {RANKS, 1, COLUMNS}, strides[3] = {COLUMNS, COLUMNS, 1}, gaps[3] = {2 * COLUMNS, COLUMNS, 1};
  struct DLManagedTensor t;
  memset(&t, 0, sizeof t);
  t.dl_tensor.data = &input;
  t.dl_tensor.byte_offset = sizeof input.before;
  t.dl_tensor.device.device_type = 1;
  t.dl_tensor.ndim = 3;
  t.dl_tensor.dtype.code = 2;
  t.dl_tensor.dtype.bits = 32;
  t.dl_tensor.dtype.lanes = 1;
  t.dl_tensor.shape = shape;
  reset();
  args[0] = pld_arg_dlpack(&t);
  CHECK_OK(pld_launch(x, args, 3));
  check_out(1);

  reset();
  t.dl_tensor.strides = strides;
  args[0] = pld_arg_dlpack(&t);
  CHECK_OK(pld_launch(x, args, 3));
  check_out(1);

  t.dl_tensor.strides = gaps;
  args[0] = pld_arg_dlpack(&t);
  refused(PLD_ERR_INVALID_ARGUMENT, "ins");
  t.dl_tensor.strides = NULL;

  t.dl_tensor.device.device_type = 2;
  args[0] = pld_arg_dlpack(&t);
  refused(PLD_ERR_UNSUPPORTED, "argument 0: a DLPack tensor of device type 2");
  t.dl_tensor.device.device_type = 1;

  t.dl_tensor.dtype.lanes = 4;
  args[0] = pld_arg_dlpack(&t);
  refused(PLD_ERR_UNSUPPORTED, "4 lanes");
  t.dl_tensor.dtype.lanes = 1;

  t.dl_tensor.dtype.code = 5;
  t.dl_tensor.dtype.bits = 64;
  args[0] = pld_arg_dlpack(&t);
  refused(PLD_ERR_UNSUPPORTED, "code 5, 64 bits");
  t.dl_tensor.dtype.code = 0;
  args[0] = pld_arg_dlpack(&t);
  refused(PLD_ERR_INVALID_ARGUMENT, "i64");
  t.dl_tensor.dtype.code = 2;
  t.dl_tensor.dtype.bits = 32;

  t.dl_tensor.ndim = -1;
  args[0] = pld_arg_dlpack(&t);
  refused(PLD_ERR_INVALID_ARGUMENT, "-1 dimensions");
  t.dl_tensor.ndim = 3;
  t.dl_tensor.shape = NULL;
  args[0] = pld_arg_dlpack(&t);
  refused(PLD_ERR_INVALID_ARGUMENT, "without a shape");
}

static void wrong(void) {
  pld_tensor_arg_t parts[RANKS];
  reset();
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_launch(x, args, 2));
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_launch(x, args, 0));
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_launch(x, NULL, 3));
  CHECK_ERROR("args is NULL, but nargs is 3");
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_launch(x, NULL, SIZE_MAX));
  CHECK_STATUS(PLD_ERR_INVALID_ARGUMENT, pld_launch(x, args, SIZE_MAX));

  args[1].kind = 0;
  refused(PLD_ERR_INVALID_ARGUMENT, "argument 1: kind 0 is unknown");
  memset(&args[1], 0x5a, sizeof args[1]);
  refused(PLD_ERR_INVALID_ARGUMENT, "argument 1: kind");
  args[0].tensor.dtype = 77;
  refused(PLD_ERR_INVALID_ARGUMENT, "argument 0: dtype 77 is unknown");
  args[0].tensor.dtype = PLD_DTYPE_I32;
  refused(PLD_ERR_INVALID_ARGUMENT, "ins");
  args[0].tensor.ndims = 2;
  refused(PLD_ERR_INVALID_ARGUMENT, "ins");
  args[0].tensor.ndims = 9;
  refused(PLD_ERR_INVALID_ARGUMENT, "argument 0: 9 dimensions");
  args[0].tensor.shape[2] = COLUMNS - 1;
  refused(PLD_ERR_INVALID_ARGUMENT, "ins");
  args[0].tensor.shape[0] = RANKS + 1;
  refused(PLD_ERR_INVALID_ARGUMENT, "ins");
  args[0].tensor.shape[0] = -1;
  refused(PLD_ERR_INVALID_ARGUMENT, "ins");
  args[0].tensor.strides[0] = 2 * COLUMNS;
  args[0].tensor.strides[1] = COLUMNS;
  args[0].tensor.strides[2] = 1;
  refused(PLD_ERR_INVALID_ARGUMENT, "ins");
  args[0].tensor.data = NULL;
  refused(PLD_ERR_INVALID_ARGUMENT, "ins");
  args[0].tensor.data = (char *)in + 1;
  refused(PLD_ERR_INVALID_ARGUMENT, "ins");
  args[1].tensor.data = in;
  refused(PLD_ERR_INVALID_ARGUMENT, "outs");
  args[1].tensor.data = &in[0][0][1];
  refused(PLD_ERR_INVALID_ARGUMENT, "outs");
  args[0] = pld_arg_float(1);
  refused(PLD_ERR_INVALID_ARGUMENT, "ins");
  args[2] = args[0];
  refused(PLD_ERR_INVALID_ARGUMENT, "scale");
  args[2] = pld_arg_int(2);
  refused(PLD_ERR_INVALID_ARGUMENT, "scale");

  args[0] = pld_arg_parts(NULL, RANKS);
  refused(PLD_ERR_INVALID_ARGUMENT, "argument 0: parts is NULL");
  parts[0] = parts[1] = pld_tensor_of(in[0], PLD_DTYPE_F32, PLD_DIMS(1, COLUMNS));
  args[0] = pld_arg_parts(parts, RANKS - 1);
  refused(PLD_ERR_INVALID_ARGUMENT, "ins");
  args[1] = pld_arg_parts(parts, RANKS);
  refused(PLD_ERR_INVALID_ARGUMENT, "outs");

  /* After all that, the world is as good as before. */
  CHECK_OK(pld_launch(x, args, 3));
  check_out(1);
}

int main(void) {
  pld_program_t *p = test_shift_finished(COLUMNS);
  pld_world_t *world = test_world(RANKS, 20000000);
  test_deadline(60);
  CHECK_OK(pld_compile(p, world, NULL, &x));
  right_forms();
  dlpack();
  wrong();
  pld_executable_destroy(x);
  pld_world_destroy(world);
  pld_program_destroy(p);
  return 0;
}
