/** \file
 * libpld 0.1.0: exchanges between ranks over symmetric window memory.
 *
 * Generated from src/capi; do not edit. Needs C99 or C++11.
 *
 * A program is built call by call (or parsed from text), finished, compiled for a world of ranks, and launched any
 * number of times:
 *
 *     pld_program_t *p = pld_program_create("shift");
 *     ...                                                  entries, tasks, host driver
 *     pld_program_finish(p, on_diagnostic, NULL);          every mistake at once, with file and line
 *     pld_check(p, NULL, on_diagnostic, NULL, NULL);       in a test: what can go wrong in any order of the ranks
 *     pld_world_create(&options, &world);                  ranks are threads; or pld_world_join: this process is a rank
 *     pld_compile(p, world, NULL, &executable);
 *     pld_launch(executable, args, nargs);
 *
 * Errors. Functions that can fail return a pld_status_t, 0 for success. pld_last_error has this thread's full message.
 * Builder calls need no check: they remember every mistake with its place, return a handle that later calls ignore, and
 * pld_program_finish reports them together. Outputs are last (out_...), and written only on success.
 *
 * Ownership. Who creates, destroys; destroying NULL does nothing, and objects keep what they need alive, so any order
 * is right. Handles of a program (pld_tensor_t, ...) are small values that live as long as it. Strings and lists that
 * are passed in are NUL-terminated UTF-8 or counted, and are copied or used during the call only.
 *
 * Threads. An object may be used by several threads at once where a function takes it as const or says so; otherwise
 * by one thread at a time. Builder calls are for one thread at a time. They are local (concern this process only) and
 * do not block. Collective functions are called by all ranks in the same order.
 *
 * Options. Each struct begins with its size: pld_..._options_init sets it, and zero means the default in every other
 * field. Structs of older headers are accepted. Enums are uint32_t; an unknown value is an error.
 *
 * Units. Offsets, extents and strides count elements, unless a name says bytes; times are in microseconds.
 *
 * The library does not unwind, exit, print, or install signal handlers. Callbacks must not throw or jump out.
 */

#ifndef PLD_H
#define PLD_H

#include <stddef.h>
#include <stdint.h>

/** The header's major version. */
#define PLD_VERSION_MAJOR 0
/** The header's minor version. */
#define PLD_VERSION_MINOR 1
/** The header's patch version. */
#define PLD_VERSION_PATCH 0
/** The header's version: `major * 10000 + minor * 100 + patch`; that of the library is `pld_version()`. */
#define PLD_VERSION (PLD_VERSION_MAJOR * 10000 + PLD_VERSION_MINOR * 100 + PLD_VERSION_PATCH)

#if defined(__GNUC__) || defined(__clang__)
#define PLD_API __attribute__((visibility("default")))
#else
#define PLD_API
#endif

/** A tensor of another library, as <dlpack/dlpack.h> declares it. */
struct DLManagedTensor;


/**
 * Most dimensions of a tensor, window, tile or transfer.
 */
#define PLD_MAX_RANK 8

/**
 * Values of `pld_arg_kind_t`.
 */
typedef enum pld_arg_kind {
  /**
   * None: `pld_check` makes one up; a launch takes no such argument.
   */
  PLD_ARG_GENERATED = 0,
  /**
   * A tensor: `tensor`. In a world of threads the whole one, with its leading rank axis; in a world of processes this
   * rank's part of it, without.
   */
  PLD_ARG_TENSOR = 1,
  /**
   * One tensor a rank, without the leading rank axis: `parts`. Worlds of threads only.
   */
  PLD_ARG_PARTS = 2,
  /**
   * An integer, for a parameter of type `i32` or `i64`: `integer`.
   */
  PLD_ARG_INT = 3,
  /**
   * A number for a parameter of type `f32`: `real`.
   */
  PLD_ARG_FLOAT = 4,
  /**
   * For a parameter of type `bool`: `integer`, other than 0 for true.
   */
  PLD_ARG_BOOL = 5,
  /**
   * Memory that lives with the ranks: `resident`, of the executable's world.
   */
  PLD_ARG_RESIDENT = 6,
} pld_arg_kind;

/**
 * Values of `pld_atomic_t`.
 */
typedef enum pld_atomic {
  /**
   * Overwrites.
   */
  PLD_ATOMIC_NONE = 0,
  /**
   * Adds per element, each addition atomic: `f32`, `f16`, `bf16`, `i32`, `i16` and `i8`.
   */
  PLD_ATOMIC_ADD = 1,
} pld_atomic;

/**
 * Values of `pld_cmp_t`.
 */
typedef enum pld_cmp {
  /**
   * Equal.
   */
  PLD_CMP_EQ = 1,
  /**
   * Not equal.
   */
  PLD_CMP_NE = 2,
  /**
   * Less.
   */
  PLD_CMP_LT = 3,
  /**
   * Less or equal.
   */
  PLD_CMP_LE = 4,
  /**
   * Greater.
   */
  PLD_CMP_GT = 5,
  /**
   * Greater or equal.
   */
  PLD_CMP_GE = 6,
} pld_cmp;

/**
 * Values of `pld_collective_mode_t`. The algorithm never changes what a collective means, only in which order floats
 * combine, and so round; `docs/collectives.md` says what each one costs.
 */
typedef enum pld_collective_mode {
  /**
   * The library chooses by size, ranks, cores and transport, from measurements.
   */
  PLD_COLLECTIVE_AUTO = 0,
  /**
   * Every rank stages what it gives, and takes from all: one synchronisation.
   */
  PLD_COLLECTIVE_MESH = 1,
  /**
   * Straight between the windows, without staging: two synchronisations. Not for `pld_allreduce`.
   */
  PLD_COLLECTIVE_DIRECT = 2,
  /**
   * Partial results travel from neighbour to neighbour. For `pld_allreduce`.
   */
  PLD_COLLECTIVE_RING = 3,
  /**
   * Each rank combines its share of the elements, and hands it to all. For `pld_allreduce`.
   */
  PLD_COLLECTIVE_TWO_PHASE = 4,
  /**
   * In two levels, inside hosts and between them: what goes to another host goes there once. Where ranks run on one
   * host, or not equally many side by side on each, what `PLD_COLLECTIVE_AUTO` takes. Not for `pld_all_to_all` and
   * `pld_all_to_all_v`.
   */
  PLD_COLLECTIVE_HIERARCHICAL = 5,
} pld_collective_mode;

/**
 * Values of `pld_combine_t`. `f16` and `bf16` combine in `f32` and are rounded once, at the end; integers wrap. Of
 * floats, the maximum and the minimum are NaN if an operand is.
 */
typedef enum pld_combine {
  /**
   * The sum.
   */
  PLD_COMBINE_SUM = 1,
  /**
   * The product.
   */
  PLD_COMBINE_PROD = 2,
  /**
   * The largest one.
   */
  PLD_COMBINE_MAX = 3,
  /**
   * The smallest one.
   */
  PLD_COMBINE_MIN = 4,
} pld_combine;

/**
 * Values of `pld_direction_t`.
 */
typedef enum pld_direction {
  /**
   * Read only.
   */
  PLD_IN = 1,
  /**
   * Written.
   */
  PLD_OUT = 2,
  /**
   * Read and written.
   */
  PLD_INOUT = 3,
} pld_direction;

/**
 * Values of `pld_dtype_t`. Elements are widened when they are read as scalars: `f16` and `bf16` to `f32`; `i8`, `u8`,
 * `i16` and `u16` to `i32`; `u32` and `u64` to `i64`.
 */
typedef enum pld_dtype {
  /**
   * IEEE binary32.
   */
  PLD_DTYPE_F32 = 1,
  /**
   * IEEE binary16.
   */
  PLD_DTYPE_F16 = 2,
  /**
   * bfloat16.
   */
  PLD_DTYPE_BF16 = 3,
  /**
   * Signed 8 bit.
   */
  PLD_DTYPE_I8 = 4,
  /**
   * Unsigned 8 bit.
   */
  PLD_DTYPE_U8 = 5,
  /**
   * Signed 16 bit.
   */
  PLD_DTYPE_I16 = 6,
  /**
   * Unsigned 16 bit.
   */
  PLD_DTYPE_U16 = 7,
  /**
   * Signed 32 bit; the type of signals.
   */
  PLD_DTYPE_I32 = 8,
  /**
   * Unsigned 32 bit.
   */
  PLD_DTYPE_U32 = 9,
  /**
   * Signed 64 bit.
   */
  PLD_DTYPE_I64 = 10,
  /**
   * Unsigned 64 bit.
   */
  PLD_DTYPE_U64 = 11,
  /**
   * One byte, 0 or 1.
   */
  PLD_DTYPE_BOOL = 12,
  /**
   * OCP 8-bit float E4M3, finite; moved and cast only.
   */
  PLD_DTYPE_F8E4M3 = 13,
  /**
   * OCP 8-bit float E5M2; moved and cast only.
   */
  PLD_DTYPE_F8E5M2 = 14,
} pld_dtype;

/**
 * Values of `pld_explore_t`.
 */
typedef enum pld_explore {
  /**
   * Every schedule while that is few; otherwise half of them as in `PLD_EXPLORE_RANDOM`, half as in `PLD_EXPLORE_PCT`.
   */
  PLD_EXPLORE_AUTO = 0,
  /**
   * Each step is one of those that are possible, with equal chances.
   */
  PLD_EXPLORE_RANDOM = 1,
  /**
   * Tasks have random priorities, which change at few random points.
   */
  PLD_EXPLORE_PCT = 2,
  /**
   * Every schedule, leaving out those that differ only in the order of independent steps.
   */
  PLD_EXPLORE_EXHAUSTIVE = 3,
} pld_explore;

/**
 * Values of `pld_fill_t`.
 */
typedef enum pld_fill {
  /**
   * Element `i` of rank `r` in launch `n` is `(r + 1) * 100003 + i + (n - 1) * 1000003`, wrapped to the type; for
   * floats the remainder of that by 1021, 31 or 7 (of 32, 16 and 8 bits), so that sums of some elements are exact.
   */
  PLD_FILL_IOTA = 0,
  /**
   * By `seed`; floats are small integers, as above.
   */
  PLD_FILL_RANDOM = 1,
} pld_fill;

/**
 * Values of `pld_graph_format_t`.
 */
typedef enum pld_graph_format {
  /**
   * A line for each task, with the tasks that it waits for and why.
   */
  PLD_GRAPH_TEXT = 1,
  /**
   * The input of Graphviz' `dot`. Dashed edges go from one turn of a loop to the next.
   */
  PLD_GRAPH_DOT = 2,
} pld_graph_format;

/**
 * Values of `pld_log_level_t`.
 */
typedef enum pld_log_level {
  /**
   * All messages.
   */
  PLD_LOG_DEFAULT = 0,
  /**
   * Something failed; a status says so too.
   */
  PLD_LOG_ERROR = 1,
  /**
   * Something was made or ended.
   */
  PLD_LOG_INFO = 2,
} pld_log_level;

/**
 * Values of `pld_memory_model_t`.
 */
typedef enum pld_memory_model {
  /**
   * The end of a task waits until all that the task wrote at other ranks has landed.
   */
  PLD_MEMORY_HOST = 1,
  /**
   * The end of a task does not wait for its remote stores; only a notify of the same task does.
   */
  PLD_MEMORY_NPU = 2,
} pld_memory_model;

/**
 * Values of `pld_notify_op_t`.
 */
typedef enum pld_notify_op {
  /**
   * Adds, atomically. The usual choice: order does not matter.
   */
  PLD_NOTIFY_ADD = 1,
  /**
   * Replaces the cell.
   */
  PLD_NOTIFY_SET = 2,
} pld_notify_op;

/**
 * Values of `pld_operand_kind_t`.
 */
typedef enum pld_operand_kind {
  /**
   * A tensor or a window view.
   */
  PLD_OPERAND_TENSOR = 1,
  /**
   * A scalar.
   */
  PLD_OPERAND_SCALAR = 2,
} pld_operand_kind;

/**
 * Values of `pld_severity_t`.
 */
typedef enum pld_severity {
  /**
   * Legal, but likely not what is meant.
   */
  PLD_SEVERITY_WARNING = 1,
  /**
   * The program is refused.
   */
  PLD_SEVERITY_ERROR = 2,
} pld_severity;

/**
 * Values of `pld_status_t`, grouped by what the caller can do about them.
 */
typedef enum pld_status {
  /**
   * Success.
   */
  PLD_OK = 0,
  /**
   * An argument is NULL, out of range, or of the wrong kind: the call is wrong.
   */
  PLD_ERR_INVALID_ARGUMENT = 1,
  /**
   * The call is not allowed in the object's present state.
   */
  PLD_ERR_INVALID_STATE = 2,
  /**
   * The object is in use by another thread.
   */
  PLD_ERR_BUSY = 3,
  /**
   * An options struct comes from a newer version and asks for something unknown.
   */
  PLD_ERR_VERSION = 4,
  /**
   * The call is made in a forked child.
   */
  PLD_ERR_FORKED = 5,
  /**
   * The text is not a program: the diagnostics say where.
   */
  PLD_ERR_PARSE = 20,
  /**
   * The program breaks a rule: the diagnostics say which.
   */
  PLD_ERR_VERIFY = 21,
  /**
   * The target or transport cannot do what is asked.
   */
  PLD_ERR_UNSUPPORTED = 22,
  /**
   * `pld_check` has found an error in the program: the diagnostics say which.
   */
  PLD_ERR_CHECK = 23,
  /**
   * Memory is exhausted.
   */
  PLD_ERR_NO_MEMORY = 40,
  /**
   * A window does not fit: the message has needed and available bytes.
   */
  PLD_ERR_NO_SPACE = 41,
  /**
   * A system call failed.
   */
  PLD_ERR_IO = 42,
  /**
   * What the transport needs is not on this machine: a library, a compiler, a card.
   */
  PLD_ERR_UNAVAILABLE = 43,
  /**
   * A function of a card's runtime failed: the message has its name and its error.
   */
  PLD_ERR_DEVICE = 44,
  /**
   * A wait, a rendezvous or a launch did not end in time.
   */
  PLD_ERR_TIMEOUT = 60,
  /**
   * A rank died or left.
   */
  PLD_ERR_PEER_LOST = 61,
  /**
   * Somebody called `pld_world_abort`.
   */
  PLD_ERR_ABORTED = 62,
  /**
   * The ranks disagree about world, program or sizes, or call different collectives.
   */
  PLD_ERR_MISMATCH = 63,
  /**
   * An offset or a peer of a running program is outside, and nothing was written there; or what it requires does not
   * hold.
   */
  PLD_ERR_OUT_OF_BOUNDS = 80,
  /**
   * A running program divided by zero, or made a loop step that is not positive.
   */
  PLD_ERR_ARITHMETIC = 81,
  /**
   * A function of the engine that the program calls returned an error.
   */
  PLD_ERR_CALLBACK = 82,
  /**
   * A bug of the library. The object of the call may only be destroyed.
   */
  PLD_ERR_INTERNAL = 99,
} pld_status;

/**
 * Values of `pld_transport_t`.
 */
typedef enum pld_transport {
  /**
   * `PLD_TRANSPORT_THREAD` for `pld_world_create`, `PLD_TRANSPORT_AUTO` for `pld_world_join`.
   */
  PLD_TRANSPORT_DEFAULT = 0,
  /**
   * Ranks are threads of this process.
   */
  PLD_TRANSPORT_THREAD = 1,
  /**
   * Ranks are processes of one host, one process a rank.
   */
  PLD_TRANSPORT_SHM = 2,
  /**
   * Ranks are Ascend NPUs of one host: one process a card with `pld_world_join`, or one process that drives several
   * with `pld_world_create`. Tensors are memory of the cards.
   */
  PLD_TRANSPORT_HCCL = 3,
  /**
   * Ranks are processes that all reach each other over OpenUCX, also within a host: to try out on one machine what
   * several hosts do.
   */
  PLD_TRANSPORT_UCX = 4,
  /**
   * Ranks are processes of any hosts: those of one host map each other's memory, and others reach each other over
   * OpenUCX. Where all run on one host, as `PLD_TRANSPORT_SHM`.
   */
  PLD_TRANSPORT_AUTO = 5,
} pld_transport;

/**
 * Values of `pld_wait_cmp_t`. Comparison is signed.
 */
typedef enum pld_wait_cmp {
  /**
   * Until the cell equals the expected value.
   */
  PLD_WAIT_EQ = 1,
  /**
   * Until the cell is greater or equal. The usual choice, with counters that only grow.
   */
  PLD_WAIT_GE = 2,
} pld_wait_cmp;

/**
 * Values of `pld_wait_policy_t`.
 */
typedef enum pld_wait_policy {
  /**
   * Spins a little, yields, then sleeps; with more ranks than cores yields at once.
   */
  PLD_WAIT_POLICY_AUTO = 0,
  /**
   * Spins: the fastest, if every rank has a core of its own.
   */
  PLD_WAIT_POLICY_SPIN = 1,
  /**
   * Gives the core to others between looks.
   */
  PLD_WAIT_POLICY_YIELD = 2,
  /**
   * Sleeps at once: uses no CPU.
   */
  PLD_WAIT_POLICY_SLEEP = 3,
} pld_wait_policy;

/**
 * A program compiled for a world. It keeps the world's memory alive. Any number of threads may use it, but a world is
 * used by one call at a time: a launch, reset or compile of another thread meanwhile gets `PLD_ERR_BUSY`.
 */
typedef struct pld_executable_t pld_executable_t;

/**
 * A program and, until it is finished, its builder.
 *
 * One thread at a time may build it. A finished program may be used by any number of threads at once, until it is
 * destroyed.
 */
typedef struct pld_program_t pld_program_t;

/**
 * Memory that lives with the ranks and that launches use as it is, without staging: weights, caches. Either the tensor
 * of one rank, or stacked: one shard for each rank of this process. Any number of threads may use it at once, until one
 * destroys it. It ends with its world; then it may only be destroyed.
 */
typedef struct pld_resident_t pld_resident_t;

/**
 * A launch under way. Any number of threads may use it at once, until one destroys it.
 */
typedef struct pld_run_t pld_run_t;

/**
 * A world. Any number of threads may use it at once, until one destroys it.
 */
typedef struct pld_world_t pld_world_t;

/**
 * What a function that can fail returns: `PLD_OK` or one of the other `PLD_ERR_` values. The values never change.
 */
typedef int32_t pld_status_t;

/**
 * Gets a piece of text: `size` bytes, not NUL-terminated. Returns 0 to go on; anything else ends the writing.
 */
typedef int32_t (*pld_write_fn)(const char *text, size_t size, void *user_data);

/**
 * An element type: a value of `enum pld_dtype`.
 */
typedef uint32_t pld_dtype_t;

/**
 * How bad a finding is: a value of `enum pld_severity`.
 */
typedef uint32_t pld_severity_t;

/**
 * One finding about a program. The strings are never NULL, and live until the callback returns.
 */
typedef struct pld_diagnostic_t {
  /**
   * Error or warning.
   */
  pld_severity_t severity;
  /**
   * Line in the source, from 1; 0 if unknown.
   */
  uint32_t line;
  /**
   * Column, from 1; 0 if unknown (always, for programs built from C).
   */
  uint32_t column;
  /**
   * Stable code of the rule, such as `PLD-V012`.
   */
  const char *code;
  /**
   * Source file; empty if unknown.
   */
  const char *file;
  /**
   * What is wrong, in one line with the numbers.
   */
  const char *message;
  /**
   * The operation as program text, or the line of the text; may be empty.
   */
  const char *snippet;
  /**
   * What would make it right; may be empty.
   */
  const char *hint;
  /**
   * All of it, laid out over several lines as a person wants to read it.
   */
  const char *text;
  /**
   * The schedule that shows it, for `replay` of `pld_check_options_t`; empty unless `pld_check` has found it.
   */
  const char *schedule;
} pld_diagnostic_t;

/**
 * Gets every finding about a program, in source order. It must not use the program, nor throw or jump out.
 */
typedef void (*pld_diagnostic_fn)(const struct pld_diagnostic_t *diagnostic, void *user_data);

/**
 * How a task graph is written: a value of `enum pld_graph_format`.
 */
typedef uint32_t pld_graph_format_t;

/**
 * An extent of a tensor, window, tile or transfer, in elements: 0 or more; `PLD_WORLD`; or what `pld_dim`,
 * `pld_dim_const` or `pld_dim_of` returned (negative numbers that mean something in their program only).
 */
typedef int64_t pld_dim_t;

/**
 * A scalar: a value of a program, or with `PLD_INT` an integer that stands in the call itself. Zeros are neither.
 */
typedef struct pld_scalar_t {
  /**
   * The value; 0 for an integer.
   */
  uint32_t id;
  /**
   * 1 for an integer, else 0.
   */
  uint32_t is_int;
  /**
   * The integer.
   */
  int64_t imm;
} pld_scalar_t;

/**
 * An entry.
 */
typedef struct pld_entry_t {
  /**
   * 0 is no entry.
   */
  uint32_t id;
} pld_entry_t;

/**
 * A tensor: a parameter, a window view, or a slice of either. Row-major.
 */
typedef struct pld_tensor_t {
  /**
   * 0 is no tensor.
   */
  uint32_t id;
} pld_tensor_t;

/**
 * What is done with a tensor parameter: a value of `enum pld_direction`.
 */
typedef uint32_t pld_direction_t;

/**
 * A task, for others to depend on.
 */
typedef struct pld_task_t {
  /**
   * 0 is no task.
   */
  uint32_t id;
} pld_task_t;

/**
 * A comparison: a value of `enum pld_cmp`.
 */
typedef uint32_t pld_cmp_t;

/**
 * A mutable scalar.
 */
typedef struct pld_var_t {
  /**
   * 0 is no variable.
   */
  uint32_t id;
} pld_var_t;

/**
 * A small local array of scalars.
 */
typedef struct pld_array_t {
  /**
   * 0 is no array.
   */
  uint32_t id;
} pld_array_t;

/**
 * A tile: a register of a task, whose shape is known when the program is compiled. Every call that returns a tile
 * makes a new one; `pld_tile_assign` overwrites one.
 */
typedef struct pld_tile_t {
  /**
   * 0 is no tile.
   */
  uint32_t id;
} pld_tile_t;

/**
 * How a remote write combines with what is there: a value of `enum pld_atomic`.
 */
typedef uint32_t pld_atomic_t;

/**
 * What a put or get moves, and how. Made by `pld_region` or `pld_whole` (or for one call by `PLD_REGION`), then
 * changed where it should be.
 */
typedef struct pld_transfer_t {
  /**
   * `sizeof(pld_transfer_t)`.
   */
  uint32_t struct_size;
  /**
   * Whether remote elements are overwritten or added to; put only.
   */
  pld_atomic_t atomic;
  /**
   * Other than 0: two chunks in flight; needs both chunk sizes.
   */
  uint32_t pipeline;
  /**
   * Number of offsets in the destination.
   */
  uint32_t ndst;
  /**
   * Number of offsets in the source.
   */
  uint32_t nsrc;
  /**
   * Number of extents. With all three 0, whole tensors are moved.
   */
  uint32_t ndims;
  /**
   * Rows of a chunk on targets that stage transfers on chip; 0 for all. Never changes the result.
   */
  int64_t chunk_rows;
  /**
   * Columns of a chunk; 0 for all.
   */
  int64_t chunk_cols;
  /**
   * Where the region begins in the destination, in elements.
   */
  struct pld_scalar_t dst[PLD_MAX_RANK];
  /**
   * Where the region begins in the source, in elements.
   */
  struct pld_scalar_t src[PLD_MAX_RANK];
  /**
   * Its extents, in elements; `pld_dim_of` gives one that is computed when the program runs. A region with an
   * extent of 0 moves nothing.
   */
  pld_dim_t shape[PLD_MAX_RANK];
} pld_transfer_t;

/**
 * How the elements of ranks combine: a value of `enum pld_combine`.
 */
typedef uint32_t pld_combine_t;

/**
 * How a notify changes its cell: a value of `enum pld_notify_op`.
 */
typedef uint32_t pld_notify_op_t;

/**
 * How a wait compares: a value of `enum pld_wait_cmp`.
 */
typedef uint32_t pld_wait_cmp_t;

/**
 * One side of a `pld_all_to_all_v`: rows, and for each rank how many there are for it and where they begin. Made by
 * `pld_rows` or `pld_rows_at`.
 */
typedef struct pld_rows_t {
  /**
   * The rows: the parts of a tensor along its first dimension.
   */
  struct pld_tensor_t rows;
  /**
   * An `i32` or `i64` for each rank: the number of its rows.
   */
  struct pld_tensor_t counts;
  /**
   * An `i32` or `i64` for each rank: the first of its rows. Zero: the rows are divided evenly among the ranks.
   */
  struct pld_tensor_t offsets;
} pld_rows_t;

/**
 * A comm domain: ranks that share windows, and number each other 0, 1, and so on.
 */
typedef struct pld_domain_t {
  /**
   * 0 is no domain.
   */
  uint32_t id;
} pld_domain_t;

/**
 * A window buffer: symmetric memory of the same size on every rank.
 */
typedef struct pld_buffer_t {
  /**
   * 0 is no buffer.
   */
  uint32_t id;
} pld_buffer_t;

/**
 * What an operand of a dispatch is: a value of `enum pld_operand_kind`.
 */
typedef uint32_t pld_operand_kind_t;

/**
 * A parameter of the host driver: an argument of a launch. Name and shape live until the callback returns.
 */
typedef struct pld_param_t {
  /**
   * Its name.
   */
  const char *name;
  /**
   * A tensor or a scalar.
   */
  pld_operand_kind_t kind;
  /**
   * The type of its elements, or of the scalar.
   */
  pld_dtype_t dtype;
  /**
   * What is done with it.
   */
  pld_direction_t direction;
  /**
   * 1 if every rank has a part of the tensor, along its first dimension; else 0.
   */
  uint32_t sliced;
  /**
   * Number of dimensions of the whole tensor.
   */
  uint32_t ndims;
  /**
   * Its extents, outermost first, in elements; -1 for one that is not known before a launch, or without the number of
   * ranks.
   */
  const int64_t *shape;
} pld_param_t;

/**
 * Gets every parameter of a host driver, in order. It must not throw or jump out.
 */
typedef void (*pld_param_fn)(const struct pld_param_t *param, void *user_data);

/**
 * A tensor as a function of the engine sees it: memory of the rank that the call is about.
 */
typedef struct pld_task_tensor_t {
  /**
   * Its first element. Only what the argument's direction says may be done with it.
   */
  void *data;
  /**
   * Element type.
   */
  pld_dtype_t dtype;
  /**
   * Number of dimensions.
   */
  uint32_t ndims;
  /**
   * Extents, outermost first, in elements.
   */
  const int64_t *shape;
  /**
   * Distances between neighbours in each dimension, in elements: a slice has gaps.
   */
  const int64_t *strides;
} pld_task_tensor_t;

/**
 * What a call of a function of the engine is about. It lives until the function returns.
 */
typedef struct pld_task_context_t {
  /**
   * The library's `sizeof(pld_task_context_t)`: a newer one may have more fields.
   */
  uint32_t struct_size;
  /**
   * The rank; for a host task the first rank of the process.
   */
  uint32_t rank;
  /**
   * Number of ranks of the world.
   */
  uint32_t nranks;
  /**
   * Which of the rank's cores makes the call, from 0.
   */
  uint32_t core;
  /**
   * The block, from 0.
   */
  int64_t block;
  /**
   * Number of blocks.
   */
  int64_t blocks;
  /**
   * The launch of the executable, from 1.
   */
  uint64_t launch;
  /**
   * Name of the function in the program.
   */
  const char *name;
  /**
   * The tensors among the arguments, in order: see `pld_context_tensor`.
   */
  const struct pld_task_tensor_t *tensors;
  /**
   * Number of tensors.
   */
  size_t ntensors;
  /**
   * The values among the arguments, in order: see `pld_context_int` and `pld_context_float`.
   */
  const int64_t *scalars;
  /**
   * Number of values.
   */
  size_t nscalars;
  /**
   * Where ranks are cards (`PLD_TRANSPORT_HCCL`), the `aclrtStream` on which an extern task queues its work, and then
   * returns: its tensors are memory of the card, and what it comes after may still run there. NULL on CPUs and for
   * host tasks, which come when all has ended.
   */
  void *stream;
} pld_task_context_t;

/**
 * A function of the engine. Returns 0 if all went well; anything else ends the launch on every rank.
 *
 * It may be called by several threads at once: the ranks of one process, the cores of a rank, the blocks of a grid. It
 * must not throw or jump out, nor wait for another task or rank. No lock is held meanwhile. Of the library it may call
 * what is callable from any thread and neither blocks nor is collective, such as `pld_world_abort`.
 */
typedef int32_t (*pld_callback_fn)(const struct pld_task_context_t *context, void *user_data);

/**
 * When a rank had its part of a launch, in nanoseconds of `CLOCK_MONOTONIC`, which all processes of a host share.
 */
typedef struct pld_launch_time_t {
  /**
   * When it came to the launch.
   */
  int64_t begin_ns;
  /**
   * When its part was over; without host tasks, which come after all ranks.
   */
  int64_t end_ns;
} pld_launch_time_t;

/**
 * What an argument is: a value of `enum pld_arg_kind`.
 */
typedef uint32_t pld_arg_kind_t;

/**
 * A tensor in the engine's memory. Made by `pld_tensor_of` or `pld_tensor_of_dlpack`.
 */
typedef struct pld_tensor_arg_t {
  /**
   * Its first element, aligned to the element's size. Written only if the parameter is not `PLD_IN`.
   */
  void *data;
  /**
   * Element type.
   */
  pld_dtype_t dtype;
  /**
   * Number of dimensions.
   */
  uint32_t ndims;
  /**
   * Its extents, outermost first, in elements.
   */
  int64_t shape[PLD_MAX_RANK];
  /**
   * Distances between neighbours in each dimension, in elements; all 0 for row-major without gaps, which is also the
   * only layout that is accepted.
   */
  int64_t strides[PLD_MAX_RANK];
  /**
   * If not NULL, this DLPack tensor in CPU memory instead of all the above. It stays the caller's.
   */
  const struct DLManagedTensor *dlpack;
} pld_tensor_arg_t;

/**
 * An argument of a launch. Made by `pld_arg_tensor`, `pld_arg_dlpack`, `pld_arg_parts`, `pld_arg_resident`,
 * `pld_arg_int`, `pld_arg_float` or `pld_arg_bool`; `pld_arg_generated` makes one for
 * `pld_check`.
 */
typedef struct pld_arg_t {
  /**
   * What it is, and so which of the following counts.
   */
  pld_arg_kind_t kind;
  /**
   * Number of `parts`: that of the ranks.
   */
  uint32_t nparts;
  /**
   * The tensor.
   */
  struct pld_tensor_arg_t tensor;
  /**
   * One tensor a rank.
   */
  const pld_tensor_arg_t *parts;
  /**
   * The integer or bool.
   */
  int64_t integer;
  /**
   * The number.
   */
  double real;
  /**
   * The resident.
   */
  pld_resident_t *resident;
} pld_arg_t;

/**
 * An argument of a function of the engine, made by `pld_in`, `pld_out`, `pld_inout` or `pld_value`.
 */
typedef struct pld_callback_arg_t {
  /**
   * What is done with the tensor; 0 for a value.
   */
  pld_direction_t direction;
  /**
   * The tensor.
   */
  struct pld_tensor_t tensor;
  /**
   * The value.
   */
  struct pld_scalar_t scalar;
} pld_callback_arg_t;

/**
 * A function for a name of a program: see `pld_compile_options_t`.
 */
typedef struct pld_callback_t {
  /**
   * The name of extern or host tasks.
   */
  const char *name;
  /**
   * The function.
   */
  pld_callback_fn function;
  /**
   * Passed to it.
   */
  void *user_data;
} pld_callback_t;

/**
 * When remote writes land: a value of `enum pld_memory_model`.
 */
typedef uint32_t pld_memory_model_t;

/**
 * How schedules are chosen: a value of `enum pld_explore`.
 */
typedef uint32_t pld_explore_t;

/**
 * How tensors are filled that are not given: a value of `enum pld_fill`.
 */
typedef uint32_t pld_fill_t;

/**
 * Options of `pld_check`. `pld_check_options_init` sets the size; 0 is the default everywhere else.
 */
typedef struct pld_check_options_t {
  /**
   * `sizeof(pld_check_options_t)`.
   */
  uint32_t struct_size;
  /**
   * Number of ranks; default 2.
   */
  uint32_t nranks;
  /**
   * Launches in a row, up to 1000; default 1.
   */
  uint32_t launches;
  /**
   * Other than 0: as a persistent executable. Windows keep their contents from launch to launch, and a rank may begin
   * one while others are still in the one before.
   */
  uint32_t persistent;
  /**
   * When remote writes land; default `PLD_MEMORY_HOST`.
   */
  pld_memory_model_t memory;
  /**
   * How schedules are chosen.
   */
  pld_explore_t explore;
  /**
   * Most schedules that are run; default 1000.
   */
  uint64_t schedules;
  /**
   * No further schedule is begun after that many microseconds; default no limit.
   */
  uint64_t time_limit_us;
  /**
   * What the random choices follow from, those of generated inputs too.
   */
  uint64_t seed;
  /**
   * The only schedule to run, instead of exploring: the `schedule` of a finding. Other options must be as they were.
   */
  const char *replay;
  /**
   * Arguments as for `pld_launch` in a world of threads: one set for all launches, or as many sets as launches, one
   * behind the other. They are copied, never written. What is not given is made up: a tensor by `fill`, an integer is
   * the number of the launch, from 1, an `f32` 1, a `bool` true. Not given are all if `nargs` is 0, those of kind
   * `PLD_ARG_GENERATED`, and the elements of a tensor whose `data` is NULL.
   */
  const pld_arg_t *args;
  /**
   * Number of `args`.
   */
  size_t nargs;
  /**
   * How tensors are filled that are not given. A dynamic dimension that no given tensor binds is 4.
   */
  pld_fill_t fill;
  /**
   * Functions for extern and host tasks, as in `pld_compile_options_t`; but none is needed.
   */
  const pld_callback_t *callbacks;
  /**
   * Number of `callbacks`.
   */
  size_t ncallbacks;
} pld_check_options_t;

/**
 * What was explored, and how much was found. The caller sets `struct_size`.
 */
typedef struct pld_check_report_t {
  /**
   * `sizeof(pld_check_report_t)`.
   */
  uint32_t struct_size;
  /**
   * 1 if every schedule was run, up to the order of independent steps; 0 if some were left out.
   */
  uint32_t complete;
  /**
   * Schedules that were run.
   */
  uint64_t schedules;
  /**
   * Steps of all of them: pieces of a task between two signals.
   */
  uint64_t steps;
  /**
   * Findings that are errors.
   */
  uint32_t errors;
  /**
   * Findings that are warnings.
   */
  uint32_t warnings;
} pld_check_report_t;

/**
 * The algorithm of a collective: a value of `enum pld_collective_mode`.
 */
typedef uint32_t pld_collective_mode_t;

/**
 * What a collective is told besides its operands. Made by `pld_collective_defaults`, then changed where it should be.
 */
typedef struct pld_collective_options_t {
  /**
   * `sizeof(pld_collective_options_t)`.
   */
  uint32_t struct_size;
  /**
   * The algorithm; a barrier has no choice.
   */
  pld_collective_mode_t mode;
  /**
   * How many blocks share the work, which run on as many cores as the rank has; 0 is 1. In the host driver only: in
   * a task the work is the task's.
   */
  uint32_t cores;
  /**
   * A window that names the channel. Calls on one channel pair in their order; those on different channels are
   * independent. Its cells stay as they are. Zero: the channel is that of the data.
   */
  struct pld_tensor_t signal;
} pld_collective_options_t;

/**
 * Options of `pld_compile`. `pld_compile_options_init` sets the size; 0 is the default everywhere else.
 */
typedef struct pld_compile_options_t {
  /**
   * `sizeof(pld_compile_options_t)`.
   */
  uint32_t struct_size;
  /**
   * Other than 0: windows keep their contents from launch to launch, and launches need no barrier. By default every
   * launch sees zeroed windows.
   */
  uint32_t persistent;
  /**
   * Other than 0: offsets, peers and divisors are not checked when the program runs; a mistake in them is then
   * undefined behaviour. Nor do ranks compare which collectives they call: if they differ, they wait until the time-out.
   */
  uint32_t unchecked;
  /**
   * Functions for extern and host tasks, by name, in place of those that the program was built with: a program that
   * was parsed has none.
   */
  const pld_callback_t *callbacks;
  /**
   * Number of `callbacks`.
   */
  size_t ncallbacks;
  /**
   * The name of the pool that its windows lie in, or NULL for windows of its own. Executables of one pool share
   * persistent windows by name: the same name is the same memory, of the same size. The pool lives as long as the
   * world.
   */
  const char *pool;
  /**
   * Bytes of windows that the pool can take, each window rounded up to 64; what the first program that names the pool
   * says holds. Default as many as that program has.
   */
  uint64_t pool_bytes;
  /**
   * Other than 0: note when each rank begins and ends its part of a launch, for `pld_executable_time`. Costs a launch
   * two looks at the clock a rank.
   */
  uint32_t timed;
} pld_compile_options_t;

/**
 * How ranks reach each other's memory: a value of `enum pld_transport`.
 */
typedef uint32_t pld_transport_t;

/**
 * Options of `pld_program_expand`: the world that the program is written out for. `pld_expand_options_init` sets the
 * size; 0 is the default everywhere else.
 */
typedef struct pld_expand_options_t {
  /**
   * `sizeof(pld_expand_options_t)`.
   */
  uint32_t struct_size;
  /**
   * Number of ranks; default 2.
   */
  uint32_t nranks;
  /**
   * The transport.
   */
  pld_transport_t transport;
  /**
   * Other than 0: there are more ranks than CPUs.
   */
  uint32_t crowded;
  /**
   * Other than 0: as an unchecked executable.
   */
  uint32_t unchecked;
  /**
   * How many ranks run on each host, side by side; 0: all run on one.
   */
  uint32_t ranks_per_host;
} pld_expand_options_t;

/**
 * An operand of a dispatch, made by `pld_of_tensor` or `pld_of_scalar`.
 */
typedef struct pld_operand_t {
  /**
   * Which of the two it is.
   */
  pld_operand_kind_t kind;
  /**
   * The tensor.
   */
  struct pld_tensor_t tensor;
  /**
   * The scalar.
   */
  struct pld_scalar_t scalar;
} pld_operand_t;

/**
 * One element of a tensor, compared with a number when the task could begin: unless it holds, the task is over without
 * having run. Made by `pld_predicate`.
 */
typedef struct pld_predicate_t {
  /**
   * A tensor of integers or bools.
   */
  struct pld_tensor_t tensor;
  /**
   * How the element is compared.
   */
  pld_cmp_t cmp;
  /**
   * The element.
   */
  const pld_scalar_t *offsets;
  /**
   * Number of offsets.
   */
  size_t noffsets;
  /**
   * What it is compared with.
   */
  int64_t value;
} pld_predicate_t;

/**
 * What a task is told besides its body. Made by `pld_task_defaults` or `pld_deps`, or for one call by `PLD_DEPS`.
 */
typedef struct pld_task_options_t {
  /**
   * `sizeof(pld_task_options_t)`.
   */
  uint32_t struct_size;
  /**
   * Other than 0: targets that stage tasks ahead may stage those that wait for this one. Never changes a result.
   */
  uint32_t allow_early_resolve;
  /**
   * Tasks that come first, whatever they touch: see `pld_at_begin`.
   */
  const pld_task_t *deps;
  /**
   * Number of `deps`.
   */
  size_t ndeps;
  /**
   * Tensors, or slices, whose accesses by this task order nothing.
   */
  const pld_tensor_t *no_dep;
  /**
   * Number of `no_dep`.
   */
  size_t n_no_dep;
  /**
   * If not NULL, the task runs only if this holds.
   */
  const pld_predicate_t *predicate;
} pld_task_options_t;

/**
 * How ranks wait for each other: a value of `enum pld_wait_policy`.
 */
typedef uint32_t pld_wait_policy_t;

/**
 * How important a message is: a value of `enum pld_log_level`.
 */
typedef uint32_t pld_log_level_t;

/**
 * The engine's own all-gather, called by every rank of `pld_world_join` the same number of times in the same order:
 * `all` receives every rank's `size` bytes, in rank order, `mine` being this rank's. Returns 0 for success. It must end
 * by itself.
 */
typedef int32_t (*pld_exchange_fn)(const void *mine, void *all, size_t size, void *user_data);

/**
 * Gets a message, NUL-terminated, that lives until the callback returns. Called by any thread that uses the world, also
 * by several at once.
 */
typedef void (*pld_log_fn)(pld_log_level_t level, const char *message, void *user_data);

/**
 * Options of a world. `pld_world_options_init` sets the size; 0 is the default everywhere else.
 */
typedef struct pld_world_options_t {
  /**
   * `sizeof(pld_world_options_t)`.
   */
  uint32_t struct_size;
  /**
   * The transport; default by the function that is called: one for CPUs.
   */
  pld_transport_t transport;
  /**
   * Number of ranks. `pld_world_create` needs it; 0 in `pld_world_join` takes it and the rank from the environment.
   */
  uint32_t nranks;
  /**
   * This process's rank, if `nranks` is not 0. Join only.
   */
  uint32_t rank;
  /**
   * How ranks wait.
   */
  pld_wait_policy_t wait;
  /**
   * Messages up to this level are given to `log`.
   */
  pld_log_level_t log_level;
  /**
   * How long joining, compiling, a wait or a launch may take before it ends with `PLD_ERR_TIMEOUT`, in
   * microseconds; default 30 seconds. Cards have at least 2 minutes to come up.
   */
  uint64_t timeout_us;
  /**
   * How ranks of `pld_world_join` find each other: `env:` (default) by the variables of the launcher; `file:PATH`, a
   * path that is the same on all ranks and new for each job, for ranks of one host; or `tcp:HOST:PORT`, where rank 0
   * listens, with a secret that all ranks know: `PLD_SECRET`, or a file that `PLD_SECRET_FILE` names. `HOST` is a name
   * or an address of rank 0's host; IPv6 stands in brackets.
   */
  const char *bootstrap;
  /**
   * Or by this exchange, instead of `bootstrap`; then `nranks` and `rank` must be set, as for `tcp:`.
   */
  pld_exchange_fn exchange;
  /**
   * Passed to `exchange`.
   */
  void *exchange_user_data;
  /**
   * Gets messages; default none.
   */
  pld_log_fn log;
  /**
   * Passed to `log`.
   */
  void *log_user_data;
  /**
   * Cores of each rank that this process drives, 1 to 64; default 1. The first is the launching thread; others are
   * threads that share the rank's tasks.
   */
  uint32_t cores_per_rank;
  /**
   * Most submitted runs that have not ended; `pld_submit` waits while there are as many. Default 64.
   */
  uint32_t max_runs;
  /**
   * Other than 0 shakes the timing: ranks are held up at random places, drawn with this seed. 0 for the seed that the
   * environment's `PLD_CHAOS` names, else for none.
   */
  uint64_t chaos_seed;
  /**
   * A file that gets a trace of what the ranks do, when a launch has failed and when the world is destroyed:
   * `docs/tracing.md`. NULL for the file that the environment's `PLD_TRACE` names, else for no trace. The same for all
   * ranks; worlds that live side by side need files of their own.
   */
  const char *trace;
  /**
   * `PLD_TRANSPORT_HCCL`: the ACL device of each rank that this process drives. NULL for devices with the numbers of the
   * ranks.
   */
  const int32_t *devices;
  /**
   * Number of `devices`.
   */
  uint32_t ndevices;
  /**
   * `PLD_TRANSPORT_HCCL`, join only: an `HcclComm` of the engine with the same ranks, which it destroys after the world.
   * NULL to make one.
   */
  void *comm;
  /**
   * How long, in microseconds, a process that is not of this host may be silent until its rank counts as lost
   * (`PLD_ERR_PEER_LOST`); default 5 seconds. Join only.
   */
  uint64_t peer_timeout_us;
} pld_world_options_t;

/**
 * As an extent: the number of ranks of the world.
 */
#define PLD_WORLD -1

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/** \name Status codes and the last error's text
    \{ */

/**
 * The name of a status, such as `PLD_ERR_TIMEOUT`; `"PLD_ERR_UNKNOWN"` for a value that is none. Never NULL, static.
 * Local; callable from any thread.
 */
PLD_API
const char *pld_status_name(pld_status_t status);

/**
 * What a status means, in a few words. Never NULL, static. The numbers are in `pld_last_error`. Local; callable from
 * any thread.
 */
PLD_API
const char *pld_status_message(pld_status_t status);

/**
 * Copies the message of the calling thread's last error into `buffer`, cut to `size` bytes with a terminating NUL
 * (at a whole UTF-8 character), and returns the message's full length without the NUL. A successful call leaves the
 * last message as it is. With `size` 0 nothing is written and `buffer` may be NULL. Local; callable from any thread.
 */
PLD_API
size_t pld_last_error(char *buffer,
                      size_t size);

/** \} */

/** \name The library's version
    \{ */

/**
 * The version of the library that runs: `major * 10000 + minor * 100 + patch`; the header's is `PLD_VERSION`. Local;
 * callable from any thread.
 */
PLD_API
uint32_t pld_version(void);

/**
 * The same as text, such as `0.1.0`. Never NULL, static. Local; callable from any thread.
 */
PLD_API const char *pld_version_string(void);

/** \} */

/** \name What the library is and what it finds on this machine
    \{ */

/**
 * Writes, for people, what to send along with a question: the library's version, the CPUs and the instructions that it
 * uses, each transport and why it cannot be used here, and every environment variable with its value, where that comes
 * from, and what it means. Reads the environment. Local; callable from any thread.
 *
 * Errors: `PLD_ERR_INVALID_ARGUMENT`, `PLD_ERR_IO` if `write` returned other than 0.
 */
PLD_API
pld_status_t pld_info(pld_write_fn write,
                      void *user_data);

/** \} */

/** \name Element types
    \{ */

/**
 * The size of one element in bytes; 0 for an unknown type. Local; callable from any thread.
 */
PLD_API size_t pld_dtype_size(pld_dtype_t raw);

/** \} */

/** \name Programs: created and built call by call, or parsed; finished, printed, destroyed
    \{ */

/**
 * Begins a program with this name (letters, digits and `_`, as every name). NULL if the name is NULL or memory is
 * exhausted; see `pld_last_error`. The caller owns the program and frees it with `pld_program_destroy`. Local;
 * callable from any thread.
 */
PLD_API
struct pld_program_t *pld_program_create(const char *name);

/**
 * Ends the building: closes the program and checks every rule that does not need a world. `callback` (may be NULL)
 * gets all findings, mistakes of building first, warnings too; calls nothing after this function has returned.
 *
 * Afterwards the program cannot be changed. It can be compiled if this call succeeded; otherwise only destroyed.
 * Local; nobody else may use the program meanwhile.
 *
 * Errors: `PLD_ERR_VERIFY` if there is a finding that is an error, `PLD_ERR_INVALID_STATE` if the program was
 * finished before.
 */
PLD_API
pld_status_t pld_program_finish(struct pld_program_t *p,
                                pld_diagnostic_fn callback,
                                void *user_data);

/**
 * Makes a finished program of text: `size` bytes of UTF-8. `file` (may be NULL) is the name that findings show.
 * `callback` (may be NULL) gets all findings, each with line, column and the line of text. On success `*out_program`
 * is a program as after `pld_program_finish`; the caller owns it. Local; callable from any thread.
 *
 * Errors: `PLD_ERR_PARSE` if the text is not a program, `PLD_ERR_VERIFY` if it breaks a rule.
 */
PLD_API
pld_status_t pld_program_parse(const char *text,
                               size_t size,
                               const char *file,
                               pld_diagnostic_fn callback,
                               void *user_data,
                               struct pld_program_t **out_program);

/**
 * Writes the finished program as text, which `pld_program_parse` reads back. `write` is called any number of times.
 * Local; any number of threads may print a finished program.
 *
 * Errors: `PLD_ERR_INVALID_STATE` if the program is not finished, `PLD_ERR_IO` if `write` returned other than 0.
 */
PLD_API
pld_status_t pld_program_print(const struct pld_program_t *p,
                               pld_write_fn write,
                               void *user_data);

/**
 * Writes the task graph of every entry of the finished program: which task waits for which, by `deps` or because both
 * touch something, as far as that is known before the program runs (offsets that only a launch knows count as
 * touching). `nranks` is the number of ranks, or 0 if it is open. Local; any number of threads may do it at once.
 *
 * Errors: `PLD_ERR_INVALID_STATE` if the program is not finished, `PLD_ERR_INVALID_ARGUMENT`, `PLD_ERR_IO` if `write`
 * returned other than 0.
 */
PLD_API
pld_status_t pld_program_graph(const struct pld_program_t *p,
                               uint32_t nranks,
                               pld_graph_format_t format,
                               pld_write_fn write,
                               void *user_data);

/**
 * Sets all options to their defaults. `size` is `sizeof(pld_expand_options_t)` in the caller's header. Local; callable
 * from any thread. Errors: `PLD_ERR_INVALID_ARGUMENT`.
 */
PLD_API
pld_status_t pld_expand_options_init(pld_expand_options_t *options,
                                     size_t size);

/**
 * Makes a finished program in which the collectives of this one are written out in puts, gets, notifies and waits, as
 * `pld_compile` does for a world of this kind: to be printed, or checked. `options` may be NULL. `*out_program` is a
 * program as after `pld_program_finish`; the caller owns it. Local; any number of threads may expand a finished
 * program.
 *
 * Errors: `PLD_ERR_VERIFY` if the program breaks a rule for this number of ranks, which `pld_last_error` tells;
 * `PLD_ERR_UNSUPPORTED` if no such program can be made; `PLD_ERR_INVALID_STATE` if the program is not finished;
 * `PLD_ERR_INVALID_ARGUMENT`, `PLD_ERR_VERSION`, `PLD_ERR_NO_MEMORY`.
 */
PLD_API
pld_status_t pld_program_expand(const struct pld_program_t *p,
                                const pld_expand_options_t *options,
                                struct pld_program_t **out_program);

/**
 * Frees a program, finished or not; NULL is ignored. What was compiled from it stays as it is. Local; nobody else
 * may use the program any more.
 */
PLD_API
void pld_program_destroy(struct pld_program_t *p);

/**
 * Says where in the user's source the following builder calls stand, and returns `p`. The header's macros put it
 * around the program of every builder call; `PLD_NO_LOCATIONS` leaves them out. `file` is copied; NULL for unknown.
 */
PLD_API
struct pld_program_t *pld_loc(struct pld_program_t *p,
                              const char *file,
                              uint32_t line);

/** \} */

/** \name Dimensions: the sizes that shapes are made of
    \{ */

/**
 * A dimension with this name that is bound at launch, from the shapes of the arguments. Not for tiles, local arrays
 * and windows, whose sizes must be known when the program is compiled. Once a name and program.
 */
PLD_API
pld_dim_t pld_dim(struct pld_program_t *p,
                  const char *name);

/**
 * A constant with a name, such as `D = 4096`.
 */
PLD_API pld_dim_t pld_dim_const(struct pld_program_t *p, const char *name, pld_dim_t value);

/**
 * A scalar as an extent. One made of numbers, the world size and dimensions by `pld_add`, `pld_sub`, `pld_mul`,
 * `pld_div`, `pld_mod`, `pld_min` and `pld_max` may stand in every shape; any other in that of a transfer, where it
 * is evaluated when the transfer runs.
 */
PLD_API
pld_dim_t pld_dim_of(struct pld_program_t *p,
                     struct pld_scalar_t value);

/**
 * An extent as a scalar, of type `i64`.
 */
PLD_API struct pld_scalar_t pld_dim_value(struct pld_program_t *p, pld_dim_t dim);

/**
 * The number of ranks of the world, as a scalar of type `i64`; the same as `pld_dim_value(p, PLD_WORLD)`. Where windows
 * are shared by some of the ranks only, `pld_nranks` counts those.
 */
PLD_API
struct pld_scalar_t pld_world_size(struct pld_program_t *p);

/** \} */

/** \name Entries: the code that the host driver dispatches once a rank
    \{ */

/**
 * Begins an entry: parameters first, then tasks. `pld_entry_end` ends it. Entries stand side by side, before the host
 * driver.
 */
PLD_API
struct pld_entry_t pld_entry_begin(struct pld_program_t *p,
                                   const char *name);

/**
 * Ends the entry.
 */
PLD_API void pld_entry_end(struct pld_program_t *p);

/**
 * A tensor parameter of the open entry: memory of this rank only.
 */
PLD_API
struct pld_tensor_t pld_param_tensor(struct pld_program_t *p,
                                     const char *name,
                                     pld_dtype_t dtype,
                                     const pld_dim_t *dims,
                                     size_t ndims,
                                     pld_direction_t direction);

/**
 * A window parameter of the open entry: memory that every rank has and the others can reach. To its own rank a window
 * is a tensor like any other.
 */
PLD_API
struct pld_tensor_t pld_param_window(struct pld_program_t *p,
                                     const char *name,
                                     pld_dtype_t dtype,
                                     const pld_dim_t *dims,
                                     size_t ndims);

/**
 * A scalar parameter of the open entry, of type `i32`, `i64`, `f32` or `bool`.
 */
PLD_API struct pld_scalar_t pld_param_scalar(struct pld_program_t *p, const char *name, pld_dtype_t dtype);

/** \} */

/** \name Tasks: the InCore scopes of an entry, and what orders them
    \{ */

/**
 * Sets all options to their defaults. `size` is `sizeof(pld_task_options_t)` in the caller's header. Local; callable
 * from any thread. Errors: `PLD_ERR_INVALID_ARGUMENT`.
 */
PLD_API
pld_status_t pld_task_options_init(pld_task_options_t *options,
                                   size_t size);

/**
 * Begins a task of the open entry: the only place of loads, stores, transfers, signals and tile arithmetic. The name
 * appears in reports. `options` may be NULL. `pld_task_end` ends it.
 *
 * Tasks of an entry run in any order that keeps this: a task waits for the tasks before it that wrote what it touches
 * or touched what it writes, and for its `deps`. (A put, remote store or notify writes its target, whoever the peer is;
 * additions commute.) A task that stands before in the same or an enclosing block counts with its latest instance, one
 * inside an earlier loop or if with all its instances so far, of which there may be none.
 */
PLD_API
void pld_at_begin(struct pld_program_t *p,
                  const char *name,
                  const pld_task_options_t *options);

/**
 * Begins a task that is a grid of `blocks` blocks, and returns which of them runs: 0 to `blocks - 1`. The blocks run in
 * any order, also at the same time; the task is over when all are. Otherwise as `pld_at_begin`.
 */
PLD_API
struct pld_scalar_t pld_spmd_begin(struct pld_program_t *p,
                                   const char *name,
                                   struct pld_scalar_t blocks,
                                   const pld_task_options_t *options);

/**
 * The block of the open grid, as `pld_spmd_begin` returned it.
 */
PLD_API struct pld_scalar_t pld_block_index(struct pld_program_t *p);

/**
 * Ends the task.
 */
PLD_API struct pld_task_t pld_task_end(struct pld_program_t *p);

/**
 * A task that does nothing: it is over when its `deps` are, and stands for all of them. `PLD_TASKS` writes the list.
 */
PLD_API
struct pld_task_t pld_join(struct pld_program_t *p,
                           const char *name,
                           const pld_task_t *deps,
                           size_t ndeps);

/**
 * Gives a task's id a name, which the program's text shows where others depend on it.
 */
PLD_API void pld_task_name(struct pld_program_t *p, struct pld_task_t task, const char *name);

/**
 * Begins a part of the entry in which tasks wait for their `deps` only, and no other task waits for what they touch.
 * Not inside another one. `pld_manual_end` ends it.
 */
PLD_API
void pld_manual_begin(struct pld_program_t *p);

/**
 * Ends the manual part.
 */
PLD_API void pld_manual_end(struct pld_program_t *p);

/**
 * Nobody's accesses to this parameter, or to slices of it, order any tasks.
 */
PLD_API void pld_manual_dep(struct pld_program_t *p, struct pld_tensor_t tensor);

/** \} */

/** \name Scalars: values of type i32, i64, f32 or bool, each assigned once
    \{ */

/**
 * `a + b`. Integers wrap; `i32` with `i64` gives `i64`; an integer of `PLD_INT` takes the other operand's type.
 */
PLD_API
struct pld_scalar_t pld_add(struct pld_program_t *p,
                            struct pld_scalar_t a,
                            struct pld_scalar_t b);

/**
 * `a - b`, with the types of `pld_add`.
 */
PLD_API struct pld_scalar_t pld_sub(struct pld_program_t *p, struct pld_scalar_t a, struct pld_scalar_t b);

/**
 * `a * b`, with the types of `pld_add`.
 */
PLD_API struct pld_scalar_t pld_mul(struct pld_program_t *p, struct pld_scalar_t a, struct pld_scalar_t b);

/**
 * `a / b`, with the types of `pld_add`. Integers truncate toward zero; division by zero ends the launch with
 * `PLD_ERR_ARITHMETIC`.
 */
PLD_API struct pld_scalar_t pld_div(struct pld_program_t *p, struct pld_scalar_t a, struct pld_scalar_t b);

/**
 * The remainder of `a / b`, integers only, with the sign of `a`; by zero ends the launch with `PLD_ERR_ARITHMETIC`.
 */
PLD_API
struct pld_scalar_t pld_mod(struct pld_program_t *p,
                            struct pld_scalar_t a,
                            struct pld_scalar_t b);

/**
 * The smaller one; NaN if one is NaN.
 */
PLD_API struct pld_scalar_t pld_min(struct pld_program_t *p, struct pld_scalar_t a, struct pld_scalar_t b);

/**
 * The larger one; NaN if one is NaN.
 */
PLD_API struct pld_scalar_t pld_max(struct pld_program_t *p, struct pld_scalar_t a, struct pld_scalar_t b);

/**
 * Whether both `bool`s hold. Both are evaluated.
 */
PLD_API struct pld_scalar_t pld_and(struct pld_program_t *p, struct pld_scalar_t a, struct pld_scalar_t b);

/**
 * Whether one of two `bool`s holds. Both are evaluated.
 */
PLD_API struct pld_scalar_t pld_or(struct pld_program_t *p, struct pld_scalar_t a, struct pld_scalar_t b);

/**
 * Whether `a` is equal to `b`: a `bool`.
 */
PLD_API struct pld_scalar_t pld_eq(struct pld_program_t *p, struct pld_scalar_t a, struct pld_scalar_t b);

/**
 * Whether `a` differs from `b`: a `bool`.
 */
PLD_API struct pld_scalar_t pld_ne(struct pld_program_t *p, struct pld_scalar_t a, struct pld_scalar_t b);

/**
 * Whether `a` is less than `b`: a `bool`.
 */
PLD_API struct pld_scalar_t pld_lt(struct pld_program_t *p, struct pld_scalar_t a, struct pld_scalar_t b);

/**
 * Whether `a` is less than or equal to `b`: a `bool`.
 */
PLD_API struct pld_scalar_t pld_le(struct pld_program_t *p, struct pld_scalar_t a, struct pld_scalar_t b);

/**
 * Whether `a` is greater than `b`: a `bool`.
 */
PLD_API struct pld_scalar_t pld_gt(struct pld_program_t *p, struct pld_scalar_t a, struct pld_scalar_t b);

/**
 * Whether `a` is greater than or equal to `b`: a `bool`.
 */
PLD_API struct pld_scalar_t pld_ge(struct pld_program_t *p, struct pld_scalar_t a, struct pld_scalar_t b);

/**
 * `-a`; integers wrap.
 */
PLD_API struct pld_scalar_t pld_neg(struct pld_program_t *p, struct pld_scalar_t a);

/**
 * The opposite of a `bool`.
 */
PLD_API struct pld_scalar_t pld_not(struct pld_program_t *p, struct pld_scalar_t a);

/**
 * The sum of `count` values, from the first to the last; 0 if there are none. The macro `pld_sum(p, a, b, ...)`
 * counts for you.
 */
PLD_API
struct pld_scalar_t pld_sum_n(struct pld_program_t *p,
                              const pld_scalar_t *values,
                              size_t count);

/**
 * `x` where it lies between `low` and `high`, else the nearer one; `high` if `low` is greater.
 */
PLD_API
struct pld_scalar_t pld_clamp(struct pld_program_t *p,
                              struct pld_scalar_t x,
                              struct pld_scalar_t low,
                              struct pld_scalar_t high);

/**
 * `then` where the `bool` `condition` holds, else `otherwise`. Both are evaluated.
 */
PLD_API
struct pld_scalar_t pld_select(struct pld_program_t *p,
                               struct pld_scalar_t condition,
                               struct pld_scalar_t then,
                               struct pld_scalar_t otherwise);

/**
 * `a` as `i32`, `i64`, `f32` or `bool`. Integers wrap; floats truncate toward zero and saturate, NaN becomes 0.
 */
PLD_API
struct pld_scalar_t pld_cast(struct pld_program_t *p,
                             struct pld_scalar_t a,
                             pld_dtype_t dtype);

/**
 * A number of type `f32`.
 */
PLD_API struct pld_scalar_t pld_float(struct pld_program_t *p, float value);

/**
 * True (other than 0) or false (0), of type `bool`.
 */
PLD_API struct pld_scalar_t pld_bool(struct pld_program_t *p, int32_t value);

/**
 * The value under a name, which the program's text and all messages show.
 */
PLD_API struct pld_scalar_t pld_let(struct pld_program_t *p, const char *name, struct pld_scalar_t value);

/** \} */

/** \name Loops, ifs, requirements, mutable scalars and local arrays
    \{ */

/**
 * Begins a loop over the integers from `first` up to, but without, `end`, and returns the index, an `i64` that is
 * valid inside. `pld_for_end` ends it.
 */
PLD_API
struct pld_scalar_t pld_for_begin(struct pld_program_t *p,
                                  struct pld_scalar_t first,
                                  struct pld_scalar_t end);

/**
 * As `pld_for_begin`, in steps. A step that is not positive ends the launch with `PLD_ERR_ARITHMETIC`.
 */
PLD_API
struct pld_scalar_t pld_for_step_begin(struct pld_program_t *p,
                                       struct pld_scalar_t first,
                                       struct pld_scalar_t end,
                                       struct pld_scalar_t step);

/**
 * Ends the innermost loop.
 */
PLD_API void pld_for_end(struct pld_program_t *p);

/**
 * Begins a part that runs where the `bool` `condition` holds. `pld_else` may follow; `pld_if_end` ends it.
 */
PLD_API void pld_if_begin(struct pld_program_t *p, struct pld_scalar_t condition);

/**
 * Begins the part that runs where the condition of the open `if` does not hold.
 */
PLD_API void pld_else(struct pld_program_t *p);

/**
 * Ends the innermost `if`.
 */
PLD_API void pld_if_end(struct pld_program_t *p);

/**
 * Requires that the comparison holds: otherwise the launch ends on every rank with `PLD_ERR_OUT_OF_BOUNDS` naming both
 * values, rank and line, also in an unchecked executable. `peer` is the rank that it is about, which is named too;
 * zero (`pld_no_scalar()`) if there is none. Inside a task; local, does not block, and orders nothing.
 */
PLD_API
void pld_require(struct pld_program_t *p,
                 struct pld_scalar_t a,
                 pld_cmp_t cmp,
                 struct pld_scalar_t b,
                 struct pld_scalar_t peer);

/**
 * A mutable scalar of type `i32`, `i64`, `f32` or `bool`, which begins as `init`. `name` may be NULL.
 */
PLD_API
struct pld_var_t pld_var(struct pld_program_t *p,
                         const char *name,
                         pld_dtype_t dtype,
                         struct pld_scalar_t init);

/**
 * The present value.
 */
PLD_API struct pld_scalar_t pld_var_get(struct pld_program_t *p, struct pld_var_t var);

/**
 * Changes the value.
 */
PLD_API void pld_var_set(struct pld_program_t *p, struct pld_var_t var, struct pld_scalar_t value);

/**
 * A local array of `length` scalars of type `i32`, `i64`, `f32` or `bool`, which all begin as `fill`. The length is
 * known when the program is compiled. `name` may be NULL.
 */
PLD_API
struct pld_array_t pld_array(struct pld_program_t *p,
                             const char *name,
                             pld_dtype_t dtype,
                             pld_dim_t length,
                             struct pld_scalar_t fill);

/**
 * An element. An index that is outside ends the launch with `PLD_ERR_OUT_OF_BOUNDS`.
 */
PLD_API
struct pld_scalar_t pld_array_get(struct pld_program_t *p,
                                  struct pld_array_t array,
                                  struct pld_scalar_t index);

/**
 * Changes an element. An index that is outside ends the launch with `PLD_ERR_OUT_OF_BOUNDS`.
 */
PLD_API
void pld_array_set(struct pld_program_t *p,
                   struct pld_array_t array,
                   struct pld_scalar_t index,
                   struct pld_scalar_t value);

/** \} */

/** \name Tensors: memory with a shape
    \{ */

/**
 * The part of `tensor` that begins at `offsets` and has this shape, in elements, as a tensor of its own over the same
 * memory; a part of a window is a window. In an entry, inside or outside its tasks. Offsets that are outside when the
 * program runs end the launch with `PLD_ERR_OUT_OF_BOUNDS`.
 */
PLD_API
struct pld_tensor_t pld_slice(struct pld_program_t *p,
                              struct pld_tensor_t tensor,
                              const pld_scalar_t *offsets,
                              size_t noffsets,
                              const pld_dim_t *shape,
                              size_t ndims);

/**
 * All elements of `tensor` in one dimension, over the same memory. It is packed: a parameter, or a part without gaps.
 * In an entry, inside or outside its tasks.
 */
PLD_API
struct pld_tensor_t pld_flatten(struct pld_program_t *p,
                                struct pld_tensor_t tensor);

/**
 * Gives a slice or a view a name, which the program's text and all messages show.
 */
PLD_API void pld_tensor_name(struct pld_program_t *p, struct pld_tensor_t tensor, const char *name);

/**
 * One element of this rank's `tensor` as a scalar, widened as `enum pld_dtype` says. Inside a task. Not ordered with
 * other ranks: only `pld_wait` makes what they wrote visible. An element that is outside ends the launch with
 * `PLD_ERR_OUT_OF_BOUNDS`.
 */
PLD_API
struct pld_scalar_t pld_read(struct pld_program_t *p,
                             struct pld_tensor_t tensor,
                             const pld_scalar_t *offsets,
                             size_t noffsets);

/**
 * Changes one element of this rank's `tensor`. Integers wrap into the element type, floats round to nearest even;
 * between integer and float `pld_cast` comes first. Inside a task; ordering and errors as with `pld_read`.
 */
PLD_API
void pld_write(struct pld_program_t *p,
               struct pld_tensor_t tensor,
               const pld_scalar_t *offsets,
               size_t noffsets,
               struct pld_scalar_t value);

/** \} */

/** \name Tiles: on-chip registers with a static shape
    \{ */

/**
 * The part of `tensor` that begins at `offsets` and has this shape, as a tile. Tensor, offsets and shape have as many
 * dimensions; offsets and shape are in elements. Inside a task. Offsets that are outside when the program runs end the
 * launch with `PLD_ERR_OUT_OF_BOUNDS`.
 */
PLD_API
struct pld_tile_t pld_load(struct pld_program_t *p,
                           struct pld_tensor_t tensor,
                           const pld_scalar_t *offsets,
                           size_t noffsets,
                           const pld_dim_t *shape,
                           size_t ndims);

/**
 * Writes a tile into `tensor` of this rank (also a window), beginning at `offsets`, in elements. The element types are
 * the same. Inside a task. Offsets that are outside end the launch as with `pld_load`; nothing is written then.
 */
PLD_API
void pld_store(struct pld_program_t *p,
               struct pld_tile_t tile,
               struct pld_tensor_t tensor,
               const pld_scalar_t *offsets,
               size_t noffsets);

/**
 * A tile of one value.
 */
PLD_API
struct pld_tile_t pld_tile_full(struct pld_program_t *p,
                                pld_dtype_t dtype,
                                const pld_dim_t *shape,
                                size_t ndims,
                                struct pld_scalar_t value);

/**
 * The tile in another element type. Floats round to nearest even; floats to integers truncate and saturate.
 */
PLD_API struct pld_tile_t pld_tile_cast(struct pld_program_t *p, struct pld_tile_t tile, pld_dtype_t dtype);

/**
 * A new tile with the same elements.
 */
PLD_API struct pld_tile_t pld_tile_copy(struct pld_program_t *p, struct pld_tile_t tile);

/**
 * Overwrites `tile` by `value`, of the same shape and element type: `pld_tile_assign(p, acc, pld_tile_add(p, acc, x))`
 * adds to `acc` in place.
 */
PLD_API
void pld_tile_assign(struct pld_program_t *p,
                     struct pld_tile_t tile,
                     struct pld_tile_t value);

/**
 * Gives a tile a name, which the program's text and all messages show.
 */
PLD_API void pld_tile_name(struct pld_program_t *p, struct pld_tile_t tile, const char *name);

/**
 * The sum of two tiles of the same shape and element type, elementwise. Integers wrap; `f16` and `bf16` compute in
 * `f32` and round. Not for `bool` and the 8-bit floats.
 */
PLD_API
struct pld_tile_t pld_tile_add(struct pld_program_t *p,
                               struct pld_tile_t a,
                               struct pld_tile_t b);

/**
 * The sum of a tile and a scalar, for every element; otherwise as `pld_tile_add`.
 */
PLD_API struct pld_tile_t pld_tile_adds(struct pld_program_t *p, struct pld_tile_t a, struct pld_scalar_t b);

/**
 * `a - b`, as `pld_tile_add`.
 */
PLD_API struct pld_tile_t pld_tile_sub(struct pld_program_t *p, struct pld_tile_t a, struct pld_tile_t b);

/**
 * `a - b` with a scalar, as `pld_tile_adds`.
 */
PLD_API struct pld_tile_t pld_tile_subs(struct pld_program_t *p, struct pld_tile_t a, struct pld_scalar_t b);

/**
 * `a * b`, as `pld_tile_add`.
 */
PLD_API struct pld_tile_t pld_tile_mul(struct pld_program_t *p, struct pld_tile_t a, struct pld_tile_t b);

/**
 * `a * b` with a scalar, as `pld_tile_adds`.
 */
PLD_API struct pld_tile_t pld_tile_muls(struct pld_program_t *p, struct pld_tile_t a, struct pld_scalar_t b);

/**
 * `a / b`, as `pld_tile_add`. Integers truncate; division of integers by zero ends the launch with
 * `PLD_ERR_ARITHMETIC`.
 */
PLD_API struct pld_tile_t pld_tile_div(struct pld_program_t *p, struct pld_tile_t a, struct pld_tile_t b);

/**
 * `a / b` with a scalar, as `pld_tile_div`.
 */
PLD_API struct pld_tile_t pld_tile_divs(struct pld_program_t *p, struct pld_tile_t a, struct pld_scalar_t b);

/**
 * The larger of `a` and `b`, as `pld_tile_add`; NaN if one is NaN.
 */
PLD_API struct pld_tile_t pld_tile_max(struct pld_program_t *p, struct pld_tile_t a, struct pld_tile_t b);

/**
 * The larger of `a` and a scalar, as `pld_tile_max`.
 */
PLD_API struct pld_tile_t pld_tile_maxs(struct pld_program_t *p, struct pld_tile_t a, struct pld_scalar_t b);

/**
 * The smaller of `a` and `b`, as `pld_tile_add`; NaN if one is NaN.
 */
PLD_API struct pld_tile_t pld_tile_min(struct pld_program_t *p, struct pld_tile_t a, struct pld_tile_t b);

/**
 * The smaller of `a` and a scalar, as `pld_tile_min`.
 */
PLD_API struct pld_tile_t pld_tile_mins(struct pld_program_t *p, struct pld_tile_t a, struct pld_scalar_t b);

/**
 * The sum of each row: `[r, c]` becomes `[r, 1]`. `f16` and `bf16` add up in `f32`.
 */
PLD_API struct pld_tile_t pld_tile_row_sum(struct pld_program_t *p, struct pld_tile_t tile);

/**
 * The maximum of each row: `[r, c]` becomes `[r, 1]`.
 */
PLD_API struct pld_tile_t pld_tile_row_max(struct pld_program_t *p, struct pld_tile_t tile);

/**
 * The sum of each column: `[r, c]` becomes `[1, c]`. `f16` and `bf16` add up in `f32`.
 */
PLD_API struct pld_tile_t pld_tile_col_sum(struct pld_program_t *p, struct pld_tile_t tile);

/**
 * The maximum of each column: `[r, c]` becomes `[1, c]`.
 */
PLD_API struct pld_tile_t pld_tile_col_max(struct pld_program_t *p, struct pld_tile_t tile);

/** \} */

/** \name Moving data between ranks
    \{ */

/**
 * Moves data of this rank's tensor `src` into the window `dst` of rank `peer`; `peer` may be this rank. `t` says which
 * part; NULL for all of both. Element types and number of dimensions are the same.
 *
 * Inside a task. Returns at once in the running program's order: `src` may be reused, but the data is visible to the
 * peer only once a later `pld_notify` of this task is awaited there. A peer or region that is outside ends the launch
 * with `PLD_ERR_OUT_OF_BOUNDS`; nothing is written then.
 */
PLD_API
void pld_put(struct pld_program_t *p,
             struct pld_tensor_t dst,
             struct pld_scalar_t peer,
             struct pld_tensor_t src,
             const struct pld_transfer_t *t);

/**
 * Moves data of rank `peer`'s window `src` into this rank's tensor `dst`; `t` as with `pld_put`, without atomic.
 * Inside a task. The data is there when the next operation of the task begins. What the peer wrote must have been
 * published to this rank by a notify that it awaited. Errors as with `pld_put`.
 */
PLD_API
void pld_get(struct pld_program_t *p,
             struct pld_tensor_t dst,
             struct pld_scalar_t peer,
             struct pld_tensor_t src,
             const struct pld_transfer_t *t);

/**
 * The region of `dst` becomes the combination of the same region of the window `src` of the ranks `first`, `first +
 * 1`, ... `end - 1` of its domain, in this order, counted on from rank 0 behind the last: `first` is a rank, and there
 * are at least one and at most all. `t` as with `pld_get`, without chunks. `dst` may be that region of `src` itself,
 * whose own part is read before it is written. Types are those of `pld_allreduce`; of `f32`, `f16` and `bf16`, `dst`
 * may be another than `src`: they combine in `f32`, and are rounded once. Inside a task; otherwise as `pld_get`.
 */
PLD_API
void pld_get_reduce(struct pld_program_t *p,
                    struct pld_tensor_t dst,
                    struct pld_scalar_t first,
                    struct pld_scalar_t end,
                    struct pld_tensor_t src,
                    pld_combine_t op,
                    const struct pld_transfer_t *t);

/**
 * The part of rank `peer`'s `window` that begins at `offsets` and has this shape, as a tile; otherwise as `pld_get`.
 */
PLD_API
struct pld_tile_t pld_remote_load(struct pld_program_t *p,
                                  struct pld_tensor_t window,
                                  struct pld_scalar_t peer,
                                  const pld_scalar_t *offsets,
                                  size_t noffsets,
                                  const pld_dim_t *shape,
                                  size_t ndims);

/**
 * Writes a tile into rank `peer`'s `window`, beginning at `offsets`; otherwise as `pld_put`. On an NPU a notify in
 * another task does not publish it: keep the notify in the task that stores, or use `pld_put`.
 */
PLD_API
void pld_remote_store(struct pld_program_t *p,
                      struct pld_tile_t src,
                      struct pld_tensor_t window,
                      struct pld_scalar_t peer,
                      const pld_scalar_t *offsets,
                      size_t noffsets,
                      pld_atomic_t atomic);

/** \} */

/** \name Signals: cells of i32 windows that order ranks
    \{ */

/**
 * This rank's number in the window's domain, an `i32`, in entries only. For a window of the whole world: the rank.
 */
PLD_API
struct pld_scalar_t pld_rank(struct pld_program_t *p,
                             struct pld_tensor_t window);

/**
 * The number of ranks of the window's domain, an `i32`.
 */
PLD_API struct pld_scalar_t pld_nranks(struct pld_program_t *p, struct pld_tensor_t window);

/**
 * Changes the cell at `offsets` of rank `peer`'s `i32` window. Inside a task. Everything the task wrote before, to
 * its own memory or a peer's, is visible to that rank once its `pld_wait` on the cell succeeds; nothing else orders
 * ranks. Does not block. A peer or cell that is outside ends the launch with `PLD_ERR_OUT_OF_BOUNDS`.
 */
PLD_API
void pld_notify(struct pld_program_t *p,
                struct pld_tensor_t window,
                struct pld_scalar_t peer,
                const pld_scalar_t *offsets,
                size_t noffsets,
                struct pld_scalar_t value,
                pld_notify_op_t op);

/**
 * Blocks the task until this rank's cell at `offsets` of the `i32` window compares with `expected`; see `pld_notify`.
 * Inside a task. A wait that is not satisfied within the world's time-out ends the launch with `PLD_ERR_TIMEOUT` on
 * every rank.
 */
PLD_API
void pld_wait(struct pld_program_t *p,
              struct pld_tensor_t window,
              const pld_scalar_t *offsets,
              size_t noffsets,
              struct pld_scalar_t expected,
              pld_wait_cmp_t cmp);

/**
 * Lets the task be over only when this rank's cell at `offsets` of the `i32` window is `expected` or more; see
 * `pld_notify`. Does not block: the task's code goes on and ends, the core is free, and the tasks that depend on this
 * one begin when all its conditions hold. What the notifiers published is visible to them.
 *
 * Inside a task that does nothing else: begun by `pld_at_begin`, without predicate or `allow_early_resolve`; scalar
 * code, and at most 64 of these conditions, on window parameters themselves. Counters only grow, from 0 up.
 */
PLD_API
void pld_defer_wait(struct pld_program_t *p,
                    struct pld_tensor_t window,
                    const pld_scalar_t *offsets,
                    size_t noffsets,
                    struct pld_scalar_t expected);

/** \} */

/** \name Collectives: exchanges that every rank of a domain takes part in
    \{ */

/**
 * Sets all options to their defaults. `size` is `sizeof(pld_collective_options_t)` in the caller's header. Local;
 * callable from any thread. Errors: `PLD_ERR_INVALID_ARGUMENT`.
 */
PLD_API
pld_status_t pld_collective_options_init(pld_collective_options_t *options,
                                         size_t size);

/**
 * Nobody goes on before all ranks of the domain of `window` have come; a zero `window` stands for that of the signal,
 * or without one for all ranks of the world. What a rank wrote before, all see behind it. `options` may be NULL.
 *
 * What follows holds for every collective. It stands in a task of an `at`, or in the host driver outside of loops over ranks,
 * where the library makes a task of it on every rank of the domain. When it runs, every rank of the domain makes the
 * same calls in the same order: of the same collective, on as many elements of the same type. Ranks that differ end
 * the launch with `PLD_ERR_MISMATCH` naming both calls, or in an unchecked executable with `PLD_ERR_TIMEOUT`.
 *
 * A call is over on a rank when its part is done: then its inputs may be changed and its results read, however slow
 * the others are. It needs no signals, and leaves none behind: the next call may follow at once, also in a loop or an
 * `if` that all ranks take. Tensors are packed, of any number of dimensions and elements, also none, and lie apart.
 * Results are the same bits on every rank and in every run.
 */
PLD_API
void pld_barrier(struct pld_program_t *p,
                 struct pld_tensor_t window,
                 const pld_collective_options_t *options);

/**
 * The window `data` of every rank becomes the combination of those of all ranks, element by element: of type `f32`,
 * `f16`, `bf16`, `i64`, `i32` or `i8`. Otherwise as every collective: see `pld_barrier`.
 */
PLD_API
void pld_allreduce(struct pld_program_t *p,
                   struct pld_tensor_t data,
                   pld_combine_t op,
                   const pld_collective_options_t *options);

/**
 * Row `r` of the window `data` of each rank `r` becomes the combination of the rows `r` of all ranks; other rows stay
 * as they are. The first extent of `data` is the number of ranks. Types as with `pld_allreduce`; otherwise as every
 * collective: see `pld_barrier`.
 */
PLD_API
void pld_reduce_scatter(struct pld_program_t *p,
                        struct pld_tensor_t data,
                        pld_combine_t op,
                        const pld_collective_options_t *options);

/**
 * The window `data` of every rank becomes that of rank `root` of the domain, which is the same on all. Of any type;
 * otherwise as every collective: see `pld_barrier`.
 */
PLD_API
void pld_broadcast(struct pld_program_t *p,
                   struct pld_tensor_t data,
                   struct pld_scalar_t root,
                   const pld_collective_options_t *options);

/**
 * Row `r` of the window `dst` of every rank becomes `src` of rank `r`. The first extent of `dst` is the number of
 * ranks, and `src`, which need not be a window in a task, has the elements of one row. Of any type; otherwise as every
 * collective: see `pld_barrier`.
 */
PLD_API
void pld_allgather(struct pld_program_t *p,
                   struct pld_tensor_t dst,
                   struct pld_tensor_t src,
                   const pld_collective_options_t *options);

/**
 * Row `r` of the window `dst` of every rank `q` becomes row `q` of `src` of rank `r`. Both have as many rows as there
 * are ranks, and rows of as many elements; `src` need not be a window in a task. Of any type; otherwise as every
 * collective: see `pld_barrier`.
 */
PLD_API
void pld_all_to_all(struct pld_program_t *p,
                    struct pld_tensor_t dst,
                    struct pld_tensor_t src,
                    const pld_collective_options_t *options);

/**
 * Each rank `r` sends `send.counts[q]` rows of `send.rows` to each rank `q`, which finds them in its window
 * `recv.rows`, and their number in `recv.counts[r]`. Only these rows move, and others stay as they are. Rows are of
 * any type, and as long on both sides. Either both sides say where the rows of each rank begin, or none: then each has
 * an even share.
 *
 * A count that is negative, or more than what the receiver has room for, ends the launch on every rank with
 * `PLD_ERR_OUT_OF_BOUNDS` naming both numbers. Otherwise as every collective: see `pld_barrier`.
 */
PLD_API
void pld_all_to_all_v(struct pld_program_t *p,
                      struct pld_rows_t recv,
                      struct pld_rows_t send,
                      const pld_collective_options_t *options);

/** \} */

/** \name Comm domains: sets of ranks that share windows
    \{ */

/**
 * Names the ranks of a comm domain, one by one. A rank's number in the domain, as peers and `pld_rank` use it, is its
 * place in the list. Ranks are made of numbers, the world size and constants; the list may be NULL if `nranks` is 0.
 *
 * Every rank of the world makes the same call, member or not: the host driver is one program for all of them.
 * `pld_program_finish`, or `pld_compile` once the size of the world is known, refuses an empty domain, a rank that is
 * named twice or does not exist, a dispatch of one of the domain's windows to another rank, and a member without one.
 */
PLD_API
struct pld_domain_t pld_domain_create(struct pld_program_t *p,
                                      const char *name,
                                      const pld_scalar_t *ranks,
                                      size_t nranks);

/**
 * Names the ranks of a comm domain: from `first` up to, but without, `end`, numbered from 0. As `pld_domain_create`
 * otherwise.
 */
PLD_API
struct pld_domain_t pld_domain_range(struct pld_program_t *p,
                                     const char *name,
                                     struct pld_scalar_t first,
                                     struct pld_scalar_t end);

/** \} */

/** \name The host driver: allocates windows and dispatches entries, once a launch
    \{ */

/**
 * A tensor parameter of the host driver: an argument of a launch. If its first extent is `PLD_WORLD` and it is sliced
 * by `pld_slice_rank`, every rank has a part of it; otherwise every rank sees all of it. Parameters come first, after
 * the entries.
 */
PLD_API
struct pld_tensor_t pld_host_tensor(struct pld_program_t *p,
                                    const char *name,
                                    pld_dtype_t dtype,
                                    const pld_dim_t *dims,
                                    size_t ndims,
                                    pld_direction_t direction);

/**
 * A scalar parameter of the host driver, of type `i32`, `i64`, `f32` or `bool`: an argument of a launch.
 */
PLD_API struct pld_scalar_t pld_host_scalar(struct pld_program_t *p, const char *name, pld_dtype_t dtype);

/**
 * Reserves a window buffer of this shape and element type on every rank. It begins zeroed. The ranks that number each
 * other in it, its domain, are those to which its views are dispatched.
 */
PLD_API
struct pld_buffer_t pld_alloc_window(struct pld_program_t *p,
                                     const char *name,
                                     pld_dtype_t dtype,
                                     const pld_dim_t *dims,
                                     size_t ndims);

/**
 * Reserves a window buffer of this many bytes on every rank, for several views of different shapes. It begins zeroed.
 * `bytes` is made of numbers, the world size and constants.
 */
PLD_API
struct pld_buffer_t pld_alloc_window_bytes(struct pld_program_t *p,
                                           const char *name,
                                           struct pld_scalar_t bytes);

/**
 * Reserves a window buffer of this shape and element type for the ranks of a domain. As `pld_alloc_window` otherwise.
 */
PLD_API
struct pld_buffer_t pld_alloc_window_in(struct pld_program_t *p,
                                        struct pld_domain_t domain,
                                        const char *name,
                                        pld_dtype_t dtype,
                                        const pld_dim_t *dims,
                                        size_t ndims);

/**
 * Reserves a window buffer of this many bytes for the ranks of a domain. As `pld_alloc_window_bytes` otherwise.
 */
PLD_API
struct pld_buffer_t pld_alloc_window_bytes_in(struct pld_program_t *p,
                                              struct pld_domain_t domain,
                                              const char *name,
                                              struct pld_scalar_t bytes);

/**
 * A view of a window buffer, which can be passed to window parameters. It takes the name of the parameter unless
 * `pld_tensor_name` gives it one.
 */
PLD_API
struct pld_tensor_t pld_window(struct pld_program_t *p,
                               struct pld_buffer_t buffer,
                               pld_dtype_t dtype,
                               const pld_dim_t *dims,
                               size_t ndims);

/**
 * Begins a loop over ranks, from `first` up to, but without, `end`, and returns the rank, an `i32` that is valid
 * inside. `pld_ranks_end` ends it.
 */
PLD_API
struct pld_scalar_t pld_ranks_begin(struct pld_program_t *p,
                                    struct pld_scalar_t first,
                                    struct pld_scalar_t end);

/**
 * Ends the loop over ranks.
 */
PLD_API void pld_ranks_end(struct pld_program_t *p);

/**
 * Rank `rank`'s part of a host tensor, without the leading axis.
 */
PLD_API
struct pld_tensor_t pld_slice_rank(struct pld_program_t *p,
                                   struct pld_tensor_t host_tensor,
                                   struct pld_scalar_t rank);

/**
 * Runs an entry on rank `device`, with one operand for each of its parameters. The dispatches of one rank run in
 * order; nothing orders those of different ranks.
 */
PLD_API
void pld_dispatch(struct pld_program_t *p,
                  struct pld_entry_t entry,
                  struct pld_scalar_t device,
                  const pld_operand_t *args,
                  size_t nargs);

/** \} */

/** \name The parameters of a host driver, for those who have a program that others wrote
    \{ */

/**
 * Tells what a launch of the finished program is given. `nranks` is the number of ranks, or 0 if it is open. Local; any
 * number of threads may do it at once.
 *
 * Errors: `PLD_ERR_INVALID_STATE` if the program is not finished, `PLD_ERR_INVALID_ARGUMENT`.
 */
PLD_API
pld_status_t pld_program_params(const struct pld_program_t *p,
                                uint32_t nranks,
                                pld_param_fn callback,
                                void *user_data);

/** \} */

/** \name The engine's own functions as tasks of a program
    \{ */

/**
 * A task of the open entry that is the engine's own function: once for each of `blocks` blocks (`PLD_INT(1)` for one).
 * It waits for other tasks, and they for it, by its `options` and by what `args` say is done with the tensors. A window
 * among them is this rank's memory. `PLD_CALLBACK_ARGS` writes the list.
 *
 * `name` names the function, in text too: the same name in a program is the same function with arguments of the same
 * kinds. `function` may be NULL if it is given to `pld_compile`.
 */
PLD_API
struct pld_task_t pld_extern_task(struct pld_program_t *p,
                                  const char *name,
                                  pld_callback_fn function,
                                  void *user_data,
                                  const pld_callback_arg_t *args,
                                  size_t nargs,
                                  struct pld_scalar_t blocks,
                                  const pld_task_options_t *options);

/**
 * The engine's own function on the host, once a launch and process: after all dispatches of the host driver, when the
 * ranks of this process have done their part. Tensors are those of the host driver, whole. Otherwise as
 * `pld_extern_task`.
 */
PLD_API
void pld_host_task(struct pld_program_t *p,
                   const char *name,
                   pld_callback_fn function,
                   void *user_data,
                   const pld_callback_arg_t *args,
                   size_t nargs);

/** \} */

/** \name Worlds: the ranks that launch together
    \{ */

/**
 * Sets all options to their defaults. `size` is `sizeof(pld_world_options_t)` in the caller's header. Local; callable
 * from any thread. Errors: `PLD_ERR_INVALID_ARGUMENT`.
 */
PLD_API
pld_status_t pld_world_options_init(pld_world_options_t *options,
                                    size_t size);

/**
 * Makes a world whose ranks are threads of this process, `options->nranks` of them: one launch runs all ranks, and
 * takes tensors with the leading rank axis. The environment is read here and never again. The caller owns the world and
 * destroys it with `pld_world_destroy`. Local; callable from any thread.
 *
 * Errors: `PLD_ERR_INVALID_ARGUMENT`, `PLD_ERR_VERSION`, `PLD_ERR_NO_SPACE`, `PLD_ERR_IO`.
 */
PLD_API
pld_status_t pld_world_create(const pld_world_options_t *options,
                              struct pld_world_t **out_world);

/**
 * Makes this process one rank of a world of processes. Collective: all ranks call it, and it blocks until they have
 * met. The environment is read here and never again. A launch takes this rank's own slice of each tensor. The caller
 * owns the world and destroys it with `pld_world_destroy`. Callable from any thread.
 *
 * Errors, the same on every rank that can still be reached: `PLD_ERR_INVALID_ARGUMENT`, `PLD_ERR_VERSION`,
 * `PLD_ERR_UNAVAILABLE` if ranks would need OpenUCX and a host has none, `PLD_ERR_TIMEOUT` if ranks are missing, `PLD_ERR_MISMATCH`, `PLD_ERR_PEER_LOST`, `PLD_ERR_NO_SPACE`, `PLD_ERR_IO`.
 */
PLD_API
pld_status_t pld_world_join(const pld_world_options_t *options,
                            struct pld_world_t **out_world);

/**
 * Leaves the world and frees it; NULL is ignored. Local: a rank that leaves after its part of every launch disturbs
 * nobody; others that still need it get `PLD_ERR_PEER_LOST`. Never blocks for long. Executables and runs that are
 * still there may only be destroyed afterwards. Nobody else may use the world any more.
 */
PLD_API
void pld_world_destroy(struct pld_world_t *w);

/**
 * Ends what all ranks are doing, and all they will do: every call on the world returns `PLD_ERR_ABORTED` with `code` in
 * its message, on every rank. Local, does not block; callable from any thread at any time.
 */
PLD_API
pld_status_t pld_world_abort(pld_world_t *w,
                             int32_t code);

/**
 * The number of ranks; 0 for NULL. Local; callable from any thread.
 */
PLD_API uint32_t pld_world_nranks(const struct pld_world_t *w);

/**
 * This process's rank; -1 if it drives all ranks, or for NULL. Local; callable from any thread.
 */
PLD_API int32_t pld_world_rank(const struct pld_world_t *w);

/**
 * `PLD_OK`, or the error that ended the world, with its report as this thread's last error: `PLD_ERR_PEER_LOST`,
 * `PLD_ERR_ABORTED` or `PLD_ERR_INTERNAL`. A world that has ended stays so: destroy it and make another. Other errors
 * end a launch only. Local, does not block; callable from any thread.
 */
PLD_API
pld_status_t pld_world_status(const struct pld_world_t *w);

/** \} */

/** \name Residents: tensors that live with the ranks
    \{ */

/**
 * Makes a zeroed tensor of one rank, which must be one that this process drives. `dims` are numbers. As argument of a
 * launch (`pld_arg_resident`) it stands where all that this process passes is one tensor: for a parameter that is not
 * sliced by rank, and in a world of processes for any. The caller owns it and destroys it with `pld_resident_destroy`.
 * Local; callable from any thread.
 *
 * Errors: `PLD_ERR_INVALID_ARGUMENT`, `PLD_ERR_INVALID_STATE` if the world was left, `PLD_ERR_NO_MEMORY`.
 */
PLD_API
pld_status_t pld_resident_create(pld_world_t *w,
                                 uint32_t rank,
                                 pld_dtype_t dtype,
                                 const pld_dim_t *dims,
                                 size_t ndims,
                                 struct pld_resident_t **out_resident);

/**
 * Makes a zeroed tensor of this shape for each rank that this process drives. As argument of a launch it stands for a
 * parameter that is sliced by rank: shard `r` goes to rank `r`. Otherwise as `pld_resident_create`.
 */
PLD_API
pld_status_t pld_resident_create_stacked(pld_world_t *w,
                                         pld_dtype_t dtype,
                                         const pld_dim_t *dims,
                                         size_t ndims,
                                         struct pld_resident_t **out_resident);

/**
 * Fills `rank`'s part, which has `size` bytes. Local; returns when it is done, so that the memory at `src` may be used
 * for other things. On cards it waits for launches that `pld_launch_on` has queued. Callable from any thread.
 *
 * Errors: `PLD_ERR_BUSY` while a launch, or a run that has not ended, uses it, or another thread copies;
 * `PLD_ERR_INVALID_ARGUMENT`, `PLD_ERR_INVALID_STATE` if the world was left.
 */
PLD_API
pld_status_t pld_resident_copy_in(pld_resident_t *b,
                                  uint32_t rank,
                                  const void *src,
                                  size_t size);

/**
 * Copies `rank`'s part, which has `size` bytes, to `dst`. Otherwise as `pld_resident_copy_in`.
 */
PLD_API pld_status_t pld_resident_copy_out(pld_resident_t *b, uint32_t rank, void *dst, size_t size);

/**
 * Frees a resident; NULL is ignored. Local. Nobody else may use it any more; runs under way keep its memory until they
 * end.
 */
PLD_API
void pld_resident_destroy(struct pld_resident_t *b);

/** \} */

/** \name Executables: programs compiled for a world, and their launches
    \{ */

/**
 * Sets all options to their defaults. `size` is `sizeof(pld_compile_options_t)` in the caller's header. Local; callable
 * from any thread. Errors: `PLD_ERR_INVALID_ARGUMENT`.
 */
PLD_API
pld_status_t pld_compile_options_init(pld_compile_options_t *options,
                                      size_t size);

/**
 * Verifies the finished program for this number of ranks, turns it into machine code, and reserves its windows,
 * zeroed, on every rank. Collective: all ranks compile the same program with the same options, which is compared. Blocks
 * until all have. `options` may be NULL. The program may be destroyed afterwards. The caller owns the executable and
 * destroys it with `pld_executable_destroy`.
 *
 * Errors, the same on every rank: `PLD_ERR_INVALID_STATE` if the program is not finished, `PLD_ERR_INVALID_ARGUMENT` if
 * an extern or host task has no function or a callback belongs to none of them, `PLD_ERR_VERIFY`,
 * `PLD_ERR_UNSUPPORTED`, `PLD_ERR_MISMATCH` (also of a window with the pool's), `PLD_ERR_NO_SPACE` (also in the pool),
 * `PLD_ERR_TIMEOUT`, or what ended the world.
 */
PLD_API
pld_status_t pld_compile(const struct pld_program_t *p,
                         pld_world_t *w,
                         const pld_compile_options_t *options,
                         struct pld_executable_t **out_executable);

/**
 * Runs the program once and blocks until this process's ranks are done, after all runs that were submitted before. One
 * argument for each parameter of the host driver, in order; see `pld_arg_t`. Collective: every rank launches, submits
 * and resets in the same order. In a world of processes a rank's part runs on the calling thread.
 *
 * Errors of this process, found before anything runs: `PLD_ERR_INVALID_ARGUMENT` (number, type, shape, contiguity,
 * alignment or aliasing of the arguments), `PLD_ERR_BUSY` (also for a resident that is being copied),
 * `PLD_ERR_FORKED`. Errors that end the launch on every rank, the same everywhere: `PLD_ERR_TIMEOUT`,
 * `PLD_ERR_OUT_OF_BOUNDS`, `PLD_ERR_ARITHMETIC`, `PLD_ERR_MISMATCH`, `PLD_ERR_CALLBACK`; and those that end the world
 * too: `PLD_ERR_PEER_LOST`, `PLD_ERR_ABORTED`. The contents of outputs are then undefined.
 *
 * A rank that had done its part when another one failed gets the error from its next call, which does nothing else. The
 * call after a failure recovers first: in a world of processes all ranks meet, and must make the same call
 * (`PLD_ERR_MISMATCH` otherwise; `PLD_ERR_TIMEOUT` naming the ranks that do not come). Windows that the failed launch
 * used are zeroed, also persistent ones.
 */
PLD_API
pld_status_t pld_launch(pld_executable_t *x,
                        const pld_arg_t *args,
                        size_t nargs);

/**
 * As `pld_launch`, but does not wait for the end: it runs after everything that was submitted to the world before. The
 * arguments' memory must stay valid until the run is done; the `pld_arg_t` and lists themselves need not, and residents
 * may be destroyed. Blocks only while the world's `max_runs` runs have not ended. The caller owns the run and ends it
 * with `pld_run_destroy`.
 *
 * Each run has its own result. Behind a failed run the next one recovers and runs, in a world of threads; in a world of
 * processes all runs that are queued then end with the same error, for ranks may have submitted different numbers of
 * them, and those submitted later run.
 */
PLD_API
pld_status_t pld_submit(pld_executable_t *x,
                        const pld_arg_t *args,
                        size_t nargs,
                        struct pld_run_t **out_run);

/**
 * As `pld_launch`, but on the engine's stream: queues the launch behind what is on `native_stream` (an `aclrtStream` of
 * the rank's card; NULL for the default stream) and returns. What comes on the stream later comes after the launch, so the
 * engine orders it with other streams by its own events. The memory of the arguments is used until then. For a world
 * that `pld_world_join` made of cards (`PLD_TRANSPORT_HCCL`), and a persistent executable without host tasks.
 *
 * What is found before anything runs is returned, as by `pld_launch`. A launch that fails later ends like any other, on
 * every rank; the next call on the world returns its error, as does `pld_launch`. Blocks only while the world's
 * `max_runs` launches have not ended.
 *
 * Errors besides: `PLD_ERR_UNSUPPORTED` in any other world, `PLD_ERR_INVALID_STATE` if the executable is not persistent,
 * `PLD_ERR_DEVICE`.
 */
PLD_API
pld_status_t pld_launch_on(pld_executable_t *x,
                           const pld_arg_t *args,
                           size_t nargs,
                           void *native_stream);

/**
 * Zeroes the windows of a persistent executable, or the whole pool that they lie in, as after `pld_compile`. Collective,
 * blocks; between launches.
 * Errors: `PLD_ERR_INVALID_STATE` if the executable is not persistent, `PLD_ERR_BUSY`, or what ended the world.
 */
PLD_API
pld_status_t pld_executable_reset(pld_executable_t *x);

/**
 * When `rank`, which is one that this process drives, had its part of the last launch; zeros before the first. The
 * executable is compiled with `timed`, and nothing is launched meanwhile. Local, does not block.
 *
 * Errors: `PLD_ERR_INVALID_STATE` if it is not compiled so, `PLD_ERR_INVALID_ARGUMENT` if the rank is another process's.
 */
PLD_API
pld_status_t pld_executable_time(pld_executable_t *x,
                                 uint32_t rank,
                                 struct pld_launch_time_t *out_time);

/**
 * Frees an executable; NULL is ignored. Local. Nobody else may use it any more; runs of it may still be waited for and
 * destroyed.
 */
PLD_API
void pld_executable_destroy(struct pld_executable_t *x);

/** \} */

/** \name Runs: launches that were submitted
    \{ */

/**
 * Blocks until the run is done and returns how it ended: see `pld_launch`. With a `timeout_us` of 0 or more no longer
 * than that: then `PLD_ERR_TIMEOUT`, and the run goes on. May be called again, and by several threads.
 */
PLD_API
pld_status_t pld_run_wait(pld_run_t *run,
                          int64_t timeout_us);

/**
 * 1 if the run is done, however it ended; 0 if not, or for NULL. Does not block; callable from any thread.
 */
PLD_API int32_t pld_run_done(const struct pld_run_t *run);

/**
 * Waits until the run is done, and frees it; NULL is ignored. Nobody else may use it any more.
 */
PLD_API void pld_run_destroy(struct pld_run_t *run);

/** \} */

/** \name The checker: what can go wrong in a program, found by running it in many orders
    \{ */

/**
 * Sets all options to their defaults. `size` is `sizeof(pld_check_options_t)` in the caller's header. Local; callable
 * from any thread. Errors: `PLD_ERR_INVALID_ARGUMENT`.
 */
PLD_API
pld_status_t pld_check_options_init(pld_check_options_t *options,
                                    size_t size);

/**
 * Runs the finished program on private copies of its windows and tensors, in many orders of its ranks, tasks and remote
 * writes, and finds what can go wrong: races, signals that are lost, stale or overwritten, deadlocks; `docs/checking.md`
 * says what it can and cannot find. `options` may be NULL. `callback` (may be NULL) gets each finding once, in source
 * order, with a schedule that shows it. `*out_report` (may be NULL) says what was explored, whatever was found.
 *
 * Functions of extern and host tasks are called on copies, by this thread, one at a time: those that the program was
 * built with, and those of the options. One that is missing touches memory as it declares, but changes nothing.
 *
 * Local; blocks until the budget is used up, and needs no world. Any number of threads may check a program at once.
 *
 * Errors: `PLD_ERR_CHECK` if there is a finding that is an error; `PLD_ERR_VERIFY` if the program breaks a rule for this
 * number of ranks, which `callback` gets then, and nothing was run; `PLD_ERR_INVALID_STATE` if it is not finished;
 * `PLD_ERR_UNSUPPORTED` if a run takes too many steps; `PLD_ERR_INVALID_ARGUMENT`, `PLD_ERR_VERSION`,
 * `PLD_ERR_NO_MEMORY`.
 */
PLD_API
pld_status_t pld_check(const struct pld_program_t *p,
                       const pld_check_options_t *options,
                       pld_diagnostic_fn callback,
                       void *user_data,
                       pld_check_report_t *out_report);

/** \} */

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

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

/* Builder calls record where they stand, so that mistakes are reported with file and line. */
#ifndef PLD_NO_LOCATIONS
#define pld_dim(p, ...) pld_dim(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_dim_const(p, ...) pld_dim_const(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_dim_of(p, ...) pld_dim_of(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_dim_value(p, ...) pld_dim_value(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_world_size(p) pld_world_size(pld_loc(p, __FILE__, __LINE__))
#define pld_entry_begin(p, ...) pld_entry_begin(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_entry_end(p) pld_entry_end(pld_loc(p, __FILE__, __LINE__))
#define pld_param_tensor(p, ...) pld_param_tensor(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_param_window(p, ...) pld_param_window(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_param_scalar(p, ...) pld_param_scalar(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_at_begin(p, ...) pld_at_begin(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_spmd_begin(p, ...) pld_spmd_begin(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_block_index(p) pld_block_index(pld_loc(p, __FILE__, __LINE__))
#define pld_task_end(p) pld_task_end(pld_loc(p, __FILE__, __LINE__))
#define pld_join(p, ...) pld_join(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_task_name(p, ...) pld_task_name(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_manual_begin(p) pld_manual_begin(pld_loc(p, __FILE__, __LINE__))
#define pld_manual_end(p) pld_manual_end(pld_loc(p, __FILE__, __LINE__))
#define pld_manual_dep(p, ...) pld_manual_dep(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_add(p, ...) pld_add(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_sub(p, ...) pld_sub(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_mul(p, ...) pld_mul(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_div(p, ...) pld_div(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_mod(p, ...) pld_mod(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_min(p, ...) pld_min(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_max(p, ...) pld_max(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_and(p, ...) pld_and(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_or(p, ...) pld_or(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_eq(p, ...) pld_eq(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_ne(p, ...) pld_ne(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_lt(p, ...) pld_lt(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_le(p, ...) pld_le(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_gt(p, ...) pld_gt(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_ge(p, ...) pld_ge(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_neg(p, ...) pld_neg(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_not(p, ...) pld_not(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_sum_n(p, ...) pld_sum_n(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_clamp(p, ...) pld_clamp(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_select(p, ...) pld_select(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_cast(p, ...) pld_cast(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_float(p, ...) pld_float(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_bool(p, ...) pld_bool(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_let(p, ...) pld_let(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_for_begin(p, ...) pld_for_begin(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_for_step_begin(p, ...) pld_for_step_begin(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_for_end(p) pld_for_end(pld_loc(p, __FILE__, __LINE__))
#define pld_if_begin(p, ...) pld_if_begin(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_else(p) pld_else(pld_loc(p, __FILE__, __LINE__))
#define pld_if_end(p) pld_if_end(pld_loc(p, __FILE__, __LINE__))
#define pld_require(p, ...) pld_require(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_var(p, ...) pld_var(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_var_get(p, ...) pld_var_get(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_var_set(p, ...) pld_var_set(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_array(p, ...) pld_array(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_array_get(p, ...) pld_array_get(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_array_set(p, ...) pld_array_set(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_slice(p, ...) pld_slice(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_flatten(p, ...) pld_flatten(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_tensor_name(p, ...) pld_tensor_name(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_read(p, ...) pld_read(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_write(p, ...) pld_write(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_load(p, ...) pld_load(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_store(p, ...) pld_store(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_tile_full(p, ...) pld_tile_full(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_tile_cast(p, ...) pld_tile_cast(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_tile_copy(p, ...) pld_tile_copy(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_tile_assign(p, ...) pld_tile_assign(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_tile_name(p, ...) pld_tile_name(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_tile_add(p, ...) pld_tile_add(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_tile_adds(p, ...) pld_tile_adds(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_tile_sub(p, ...) pld_tile_sub(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_tile_subs(p, ...) pld_tile_subs(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_tile_mul(p, ...) pld_tile_mul(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_tile_muls(p, ...) pld_tile_muls(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_tile_div(p, ...) pld_tile_div(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_tile_divs(p, ...) pld_tile_divs(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_tile_max(p, ...) pld_tile_max(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_tile_maxs(p, ...) pld_tile_maxs(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_tile_min(p, ...) pld_tile_min(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_tile_mins(p, ...) pld_tile_mins(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_tile_row_sum(p, ...) pld_tile_row_sum(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_tile_row_max(p, ...) pld_tile_row_max(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_tile_col_sum(p, ...) pld_tile_col_sum(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_tile_col_max(p, ...) pld_tile_col_max(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_put(p, ...) pld_put(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_get(p, ...) pld_get(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_get_reduce(p, ...) pld_get_reduce(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_remote_load(p, ...) pld_remote_load(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_remote_store(p, ...) pld_remote_store(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_rank(p, ...) pld_rank(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_nranks(p, ...) pld_nranks(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_notify(p, ...) pld_notify(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_wait(p, ...) pld_wait(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_defer_wait(p, ...) pld_defer_wait(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_barrier(p, ...) pld_barrier(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_allreduce(p, ...) pld_allreduce(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_reduce_scatter(p, ...) pld_reduce_scatter(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_broadcast(p, ...) pld_broadcast(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_allgather(p, ...) pld_allgather(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_all_to_all(p, ...) pld_all_to_all(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_all_to_all_v(p, ...) pld_all_to_all_v(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_domain_create(p, ...) pld_domain_create(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_domain_range(p, ...) pld_domain_range(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_host_tensor(p, ...) pld_host_tensor(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_host_scalar(p, ...) pld_host_scalar(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_alloc_window(p, ...) pld_alloc_window(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_alloc_window_bytes(p, ...) pld_alloc_window_bytes(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_alloc_window_in(p, ...) pld_alloc_window_in(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_alloc_window_bytes_in(p, ...) pld_alloc_window_bytes_in(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_window(p, ...) pld_window(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_ranks_begin(p, ...) pld_ranks_begin(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_ranks_end(p) pld_ranks_end(pld_loc(p, __FILE__, __LINE__))
#define pld_slice_rank(p, ...) pld_slice_rank(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_dispatch(p, ...) pld_dispatch(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_extern_task(p, ...) pld_extern_task(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#define pld_host_task(p, ...) pld_host_task(pld_loc(p, __FILE__, __LINE__), __VA_ARGS__)
#endif

#endif  /* PLD_H */
