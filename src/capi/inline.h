/* Lists, integers, transfers and operands, written the same way in C and C++. A list is two arguments, the values and
   their number; it lives until the end of the enclosing block in C, of the full expression in C++. */

#ifdef __cplusplus
#include <initializer_list>
#define PLD_LIST_(type, ...) (std::initializer_list<type>{__VA_ARGS__}.begin())
#else
#define PLD_LIST_(type, ...) ((const type[]){__VA_ARGS__})
#endif

#define PLD_COUNT_(a01, a02, a03, a04, a05, a06, a07, a08, a09, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, \
                   a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, \
                   a39, a40, a41, a42, a43, a44, a45, a46, a47, a48, a49, a50, a51, a52, a53, a54, a55, a56, a57, \
                   a58, a59, a60, a61, a62, a63, a64, count, ...)                                                 \
  count

/** The number of its arguments, 1 to 64. */
#define PLD_COUNT(...)                                                                                               \
  PLD_COUNT_(__VA_ARGS__, 64, 63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48, 47, 46, 45, 44, 43, 42, \
             41, 40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16,  \
             15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)

/** Offsets (or other scalars), such as `PLD_AT(row, PLD_INT(0))`. */
#define PLD_AT(...) PLD_LIST_(pld_scalar_t, __VA_ARGS__), PLD_COUNT(__VA_ARGS__)

/** Extents, such as `PLD_DIMS(PLD_WORLD, 1, 256)`. */
#define PLD_DIMS(...) PLD_LIST_(pld_dim_t, __VA_ARGS__), PLD_COUNT(__VA_ARGS__)

/** Operands of a dispatch, such as `PLD_ARGS(pld_of_tensor(x), pld_of_scalar(r))`. */
#define PLD_ARGS(...) PLD_LIST_(pld_operand_t, __VA_ARGS__), PLD_COUNT(__VA_ARGS__)

/** Tasks, such as `PLD_TASKS(push, arrived)`. */
#define PLD_TASKS(...) PLD_LIST_(pld_task_t, __VA_ARGS__), PLD_COUNT(__VA_ARGS__)

/** Options of one task that has these deps: `PLD_DEPS(push)` is the `const pld_task_options_t *` of `pld_deps`. */
#define PLD_DEPS(...) PLD_LIST_(pld_task_options_t, pld_deps(PLD_TASKS(__VA_ARGS__)))

/** Tensors, such as the `no_dep` of a task's options. */
#define PLD_TENSORS(...) PLD_LIST_(pld_tensor_t, __VA_ARGS__), PLD_COUNT(__VA_ARGS__)

/** Arguments of an extern or host task, such as `PLD_CALLBACK_ARGS(pld_in(x), pld_out(y), pld_value(n))`. */
#define PLD_CALLBACK_ARGS(...) PLD_LIST_(pld_callback_arg_t, __VA_ARGS__), PLD_COUNT(__VA_ARGS__)

/** The part that one put or get moves: `PLD_REGION(PLD_AT(row, PLD_INT(0)), PLD_AT(t, PLD_INT(0)), PLD_DIMS(1, D))`
    is the `const pld_transfer_t *` of `pld_region`. */
#define PLD_REGION(...) PLD_LIST_(pld_transfer_t, pld_region(__VA_ARGS__))

/** The sum of 1 to 64 scalars. */
#define pld_sum(p, ...) pld_sum_n(p, PLD_AT(__VA_ARGS__))

/** An integer that stands in the call itself. It takes the numeric type that is needed. */
#define PLD_INT(value) pld_int((int64_t)(value))

/** See `PLD_INT`. */
static inline pld_scalar_t pld_int(int64_t value) {
  pld_scalar_t s = {0, 1, 0};
  s.imm = value;
  return s;
}

/** A tensor or window view as operand of a dispatch. */
static inline pld_operand_t pld_of_tensor(pld_tensor_t tensor) {
  pld_operand_t o = {PLD_OPERAND_TENSOR, {0}, {0, 0, 0}};
  o.tensor = tensor;
  return o;
}

/** A scalar as operand of a dispatch. */
static inline pld_operand_t pld_of_scalar(pld_scalar_t scalar) {
  pld_operand_t o = {PLD_OPERAND_SCALAR, {0}, {0, 0, 0}};
  o.scalar = scalar;
  return o;
}

/** No tensor, where one is not needed. */
static inline pld_tensor_t pld_no_tensor(void) {
  pld_tensor_t t = {0};
  return t;
}

/** No scalar, where one is not needed. */
static inline pld_scalar_t pld_no_scalar(void) {
  pld_scalar_t s = {0, 0, 0};
  return s;
}

/** Options of a task that are all defaults; set what should be otherwise. */
static inline pld_task_options_t pld_task_defaults(void) {
  pld_task_options_t o;
  o.struct_size = (uint32_t)sizeof o;
  o.allow_early_resolve = 0;
  o.deps = NULL;
  o.ndeps = 0;
  o.no_dep = NULL;
  o.n_no_dep = 0;
  o.predicate = NULL;
  return o;
}

/** Options of a task that comes after these; the list must live as long as the options are used. */
static inline pld_task_options_t pld_deps(const pld_task_t *deps, size_t ndeps) {
  pld_task_options_t o = pld_task_defaults();
  o.deps = deps;
  o.ndeps = ndeps;
  return o;
}

/** What must hold for a task to run: `pld_predicate(count, PLD_AT(PLD_INT(0)), PLD_CMP_NE, 0)`. The offsets must live
    as long as the predicate is used. */
static inline pld_predicate_t pld_predicate(pld_tensor_t tensor, const pld_scalar_t *offsets, size_t noffsets,
                                            pld_cmp_t cmp, int64_t value) {
  pld_predicate_t c;
  c.tensor = tensor;
  c.cmp = cmp;
  c.offsets = offsets;
  c.noffsets = noffsets;
  c.value = value;
  return c;
}

/** A tensor as argument of an extern or host task, with what is done to it. */
static inline pld_callback_arg_t pld_callback_tensor(pld_direction_t direction, pld_tensor_t tensor) {
  pld_callback_arg_t a = {0, {0}, {0, 0, 0}};
  a.direction = direction;
  a.tensor = tensor;
  return a;
}

/** A tensor that the function reads. */
static inline pld_callback_arg_t pld_in(pld_tensor_t tensor) { return pld_callback_tensor(PLD_IN, tensor); }

/** A tensor that the function writes. */
static inline pld_callback_arg_t pld_out(pld_tensor_t tensor) { return pld_callback_tensor(PLD_OUT, tensor); }

/** A tensor that the function reads and writes. */
static inline pld_callback_arg_t pld_inout(pld_tensor_t tensor) { return pld_callback_tensor(PLD_INOUT, tensor); }

/** A scalar as argument of an extern or host task. */
static inline pld_callback_arg_t pld_value(pld_scalar_t scalar) {
  pld_callback_arg_t a = {0, {0}, {0, 0, 0}};
  a.scalar = scalar;
  return a;
}

/** In a function of the engine: its tensor number `index`, counted without the values; NULL if there is none. */
static inline const pld_task_tensor_t *pld_context_tensor(const pld_task_context_t *context, size_t index) {
  return index < context->ntensors ? &context->tensors[index] : NULL;
}

/** In a function of the engine: its value number `index`, counted without the tensors, of type `i32`, `i64` or `bool`;
    0 if there is none. */
static inline int64_t pld_context_int(const pld_task_context_t *context, size_t index) {
  return index < context->nscalars ? context->scalars[index] : 0;
}

/** In a function of the engine: its value number `index`, counted without the tensors, of type `f32`; 0 if there is
    none. */
static inline double pld_context_float(const pld_task_context_t *context, size_t index) {
  const int64_t bits = pld_context_int(context, index);
  double value = 0;
  size_t i;
  for (i = 0; i < sizeof value; i++) ((unsigned char *)&value)[i] = ((const unsigned char *)&bits)[i];
  return value;
}

/** A transfer that moves all of its tensors; set `atomic`, `chunk_rows`, `chunk_cols` or `pipeline` where wanted. */
static inline pld_transfer_t pld_whole(void) {
  pld_transfer_t t;
  size_t i;
  t.struct_size = (uint32_t)sizeof t;
  t.atomic = PLD_ATOMIC_NONE;
  t.pipeline = 0;
  t.ndst = t.nsrc = t.ndims = 0;
  t.chunk_rows = t.chunk_cols = 0;
  for (i = 0; i < PLD_MAX_RANK; i++) {
    t.dst[i] = t.src[i] = pld_int(0);
    t.shape[i] = 0;
  }
  return t;
}

/** A transfer that moves a region: where it begins in the destination and in the source, and its extents. */
static inline pld_transfer_t pld_region(const pld_scalar_t *dst, size_t ndst, const pld_scalar_t *src, size_t nsrc,
                                        const pld_dim_t *shape, size_t ndims) {
  pld_transfer_t t = pld_whole();
  size_t i;
  t.ndst = (uint32_t)ndst;
  t.nsrc = (uint32_t)nsrc;
  t.ndims = (uint32_t)ndims;
  for (i = 0; i < ndst && i < PLD_MAX_RANK; i++) t.dst[i] = dst[i];
  for (i = 0; i < nsrc && i < PLD_MAX_RANK; i++) t.src[i] = src[i];
  for (i = 0; i < ndims && i < PLD_MAX_RANK; i++) t.shape[i] = shape[i];
  return t;
}

/** Options of a collective that are all defaults; set what should be otherwise. */
static inline pld_collective_options_t pld_collective_defaults(void) {
  pld_collective_options_t o;
  o.struct_size = (uint32_t)sizeof o;
  o.mode = PLD_COLLECTIVE_AUTO;
  o.cores = 0;
  o.signal = pld_no_tensor();
  return o;
}

/** One side of an all-to-all of rows, which are divided evenly among the ranks; see pld_all_to_all_v. */
static inline pld_rows_t pld_rows(pld_tensor_t rows, pld_tensor_t counts) {
  pld_rows_t side;
  side.rows = rows;
  side.counts = counts;
  side.offsets = pld_no_tensor();
  return side;
}

/** The same, where `offsets` say which rows are for each rank. */
static inline pld_rows_t pld_rows_at(pld_tensor_t rows, pld_tensor_t counts, pld_tensor_t offsets) {
  pld_rows_t side = pld_rows(rows, counts);
  side.offsets = offsets;
  return side;
}

/** A tensor in the engine's memory, row-major without gaps: `pld_tensor_of(x, PLD_DTYPE_F32, PLD_DIMS(1, 256))`. */
static inline pld_tensor_arg_t pld_tensor_of(void *data, pld_dtype_t dtype, const int64_t *shape, size_t ndims) {
  pld_tensor_arg_t t;
  size_t i;
  t.data = data;
  t.dtype = dtype;
  t.ndims = (uint32_t)ndims;
  for (i = 0; i < PLD_MAX_RANK; i++) {
    t.shape[i] = i < ndims ? shape[i] : 0;
    t.strides[i] = 0;
  }
  t.dlpack = NULL;
  return t;
}

/** A tensor of another library, in CPU memory. */
static inline pld_tensor_arg_t pld_tensor_of_dlpack(const struct DLManagedTensor *dlpack) {
  pld_tensor_arg_t t = pld_tensor_of(NULL, 0, NULL, 0);
  t.dlpack = dlpack;
  return t;
}

/** An argument of no kind, for the functions below. */
static inline pld_arg_t pld_arg_none_(pld_arg_kind_t kind) {
  pld_arg_t a;
  a.kind = kind;
  a.nparts = 0;
  a.tensor = pld_tensor_of(NULL, 0, NULL, 0);
  a.parts = NULL;
  a.integer = 0;
  a.real = 0;
  a.resident = NULL;
  return a;
}

/** An argument that pld_check makes up. */
static inline pld_arg_t pld_arg_generated(void) { return pld_arg_none_(PLD_ARG_GENERATED); }

/** A tensor as argument of a launch: `pld_arg_tensor(x, PLD_DTYPE_F32, PLD_DIMS(nranks, 1, 256))`. */
static inline pld_arg_t pld_arg_tensor(void *data, pld_dtype_t dtype, const int64_t *shape, size_t ndims) {
  pld_arg_t a = pld_arg_none_(PLD_ARG_TENSOR);
  a.tensor = pld_tensor_of(data, dtype, shape, ndims);
  return a;
}

/** A tensor of another library as argument of a launch. */
static inline pld_arg_t pld_arg_dlpack(const struct DLManagedTensor *dlpack) {
  pld_arg_t a = pld_arg_none_(PLD_ARG_TENSOR);
  a.tensor = pld_tensor_of_dlpack(dlpack);
  return a;
}

/** One tensor a rank as argument of a launch; the list must live as long as the argument is used. */
static inline pld_arg_t pld_arg_parts(const pld_tensor_arg_t *parts, size_t nparts) {
  pld_arg_t a = pld_arg_none_(PLD_ARG_PARTS);
  a.parts = parts;
  a.nparts = (uint32_t)nparts;
  return a;
}

/** Memory that lives with the ranks as argument of a launch; see pld_resident_create and pld_resident_create_stacked. */
static inline pld_arg_t pld_arg_resident(pld_resident_t *resident) {
  pld_arg_t a = pld_arg_none_(PLD_ARG_RESIDENT);
  a.resident = resident;
  return a;
}

/** An integer as argument of a launch. */
static inline pld_arg_t pld_arg_int(int64_t value) {
  pld_arg_t a = pld_arg_none_(PLD_ARG_INT);
  a.integer = value;
  return a;
}

/** A number as argument of a launch. */
static inline pld_arg_t pld_arg_float(double value) {
  pld_arg_t a = pld_arg_none_(PLD_ARG_FLOAT);
  a.real = value;
  return a;
}

/** A truth value as argument of a launch. */
static inline pld_arg_t pld_arg_bool(int value) {
  pld_arg_t a = pld_arg_none_(PLD_ARG_BOOL);
  a.integer = value != 0;
  return a;
}
