"""What tasks do: memory, other ranks, signals, scalars and tiles. Each function is the call of the C interface of the
same name; `include/pld.h` has the whole contract."""

from __future__ import annotations

from typing import Any, Literal, Optional, Sequence

from pld._native import constant, ffi, lib
from pld.dtypes import DType, dtype_of
from pld.errors import TraceError
from pld.tracing import builder, variable_name
from pld.values import (
    Array,
    Extent,
    Offsets,
    Scalar,
    ScalarLike,
    Tensor,
    Tile,
    Var,
    Window,
    arithmetic,
    extent,
    extents,
    scalar,
    scalars,
)

Combine = Literal["sum", "prod", "max", "min"]
"""How elements of ranks combine. `f16` and `bf16` combine in `f32` and are rounded once; integers wrap; of floats the
maximum and the minimum are NaN if an operand is."""
Comparison = Literal["==", "!=", "<", "<=", ">", ">="]

_COMPARISONS = {"==": "EQ", "!=": "NE", "<": "LT", "<=": "LE", ">": "GT", ">=": "GE"}


def comparison(enum: str, prefix: str, sign: str) -> int:
    """The value of an enum of comparisons that a sign stands for."""
    values = ffi.typeof(enum).relements
    known = {sign: values[prefix + word] for sign, word in _COMPARISONS.items() if prefix + word in values}
    if sign not in known:
        raise ValueError(f"{sign!r} is none of {', '.join(map(repr, known))}")
    return int(known[sign])


def name_of(given: Optional[str]) -> Any:
    """The name that the user gives, else that of the variable that is assigned to, as the library takes it."""
    name = given or variable_name()
    return ffi.NULL if name is None else name.encode()


# Scalars.


def let(name: str, value: ScalarLike) -> Scalar:
    """The value under a name, which the program's text and all messages show. What is assigned to a variable of Python
    has that name by itself."""
    return Scalar(builder().call(lib.pld_let, name.encode(), scalar(value)))


def cast(value: Any, dtype: DType) -> Any:
    """A scalar as `i32`, `i64`, `f32` or `bool`, or a tile in another element type. Integers wrap; floats round to
    nearest even; floats to integers truncate toward zero and saturate, NaN becomes 0."""
    if isinstance(value, Tile):
        return Tile.named(builder().call(lib.pld_tile_cast, value.of_this_program(), dtype_of(dtype).code))
    return Scalar.named(builder().call(lib.pld_cast, scalar(value), dtype_of(dtype).code))


def min(a: Any, b: Any) -> Any:
    """The smaller one, of scalars or, per element, of tiles; NaN if one is NaN."""
    return arithmetic("min", a, b)


def max(a: Any, b: Any) -> Any:
    """The larger one, of scalars or, per element, of tiles; NaN if one is NaN."""
    return arithmetic("max", a, b)


def sum(*values: ScalarLike) -> Scalar:
    """The sum of scalars, from the first to the last; 0 if there are none."""
    return Scalar.named(builder().call(lib.pld_sum_n, *scalars(values)))


def clamp(value: ScalarLike, low: ScalarLike, high: ScalarLike) -> Scalar:
    """`value` where it lies between `low` and `high`, else the nearer one; `high` if `low` is greater."""
    return Scalar.named(builder().call(lib.pld_clamp, scalar(value), scalar(low), scalar(high)))


def select(condition: ScalarLike, then: ScalarLike, otherwise: ScalarLike) -> Scalar:
    """`then` where `condition` holds, else `otherwise`. Both are evaluated."""
    return Scalar.named(builder().call(lib.pld_select, scalar(condition), scalar(then), scalar(otherwise)))


def var(dtype: DType, init: ScalarLike, name: Optional[str] = None) -> Var:
    """A mutable scalar of type `i32`, `i64`, `f32` or `bool`, which begins as `init`."""
    return Var(builder().call(lib.pld_var, name_of(name), dtype_of(dtype).code, scalar(init)))


def array(dtype: DType, length: Extent, fill: ScalarLike = 0, name: Optional[str] = None) -> Array:
    """A local array of scalars of type `i32`, `i64`, `f32` or `bool`, which all begin as `fill`. The length is known
    when the program is compiled."""
    return Array(builder().call(lib.pld_array, name_of(name), dtype_of(dtype).code, extent(length), scalar(fill)))


def require(a: ScalarLike, sign: Comparison, b: ScalarLike, peer: Optional[ScalarLike] = None) -> None:
    """Requires that the comparison holds, `pld.require(n, "<=", room)`: otherwise the launch ends on every rank with
    `pld.OutOfBounds` naming both values, rank and line, also in an unchecked executable. `peer` is the rank that it is
    about. Inside a task; orders nothing."""
    about = ffi.new("pld_scalar_t *")[0] if peer is None else scalar(peer)
    builder().call(lib.pld_require, scalar(a), comparison("pld_cmp", "PLD_CMP_", sign), scalar(b), about)


# Tensors and tiles.


def slice(tensor: Tensor, offsets: Offsets, shape: Sequence[Extent]) -> Any:
    """The part of `tensor` that begins at `offsets` and has this shape, in elements, as a tensor of its own over the
    same memory; a part of a window is a window. In an entry, inside or outside its tasks."""
    handle = builder().call(lib.pld_slice, tensor.of_this_program(), *scalars(offsets), *extents(shape))
    return type(tensor).named(handle)


def flatten(tensor: Tensor) -> Any:
    """All elements of `tensor` in one dimension, over the same memory. It is packed: a parameter, or a part without
    gaps. In an entry, inside or outside its tasks."""
    return type(tensor).named(builder().call(lib.pld_flatten, tensor.of_this_program()))


def read(tensor: Tensor, offsets: Offsets) -> Scalar:
    """One element of this rank's `tensor`, also written `tensor[i, j]`, widened: `f16` and `bf16` to `f32`; `i8`, `u8`,
    `i16`, `u16` to `i32`; `u32` and `u64` to `i64`. Inside a task. Not ordered with other ranks: only `wait` makes what
    they wrote visible."""
    return Scalar.named(builder().call(lib.pld_read, tensor.of_this_program(), *scalars(offsets)))


def write(tensor: Tensor, offsets: Offsets, value: ScalarLike) -> None:
    """Changes one element of this rank's `tensor`, also written `tensor[i, j] = value`. Integers wrap into the element
    type, floats round to nearest even; between integer and float `cast` comes first. Inside a task."""
    builder().call(lib.pld_write, tensor.of_this_program(), *scalars(offsets), scalar(value))


def load(tensor: Tensor, offsets: Offsets, shape: Sequence[Extent]) -> Tile:
    """The part of this rank's `tensor` that begins at `offsets` and has this shape, as a tile. Inside a task."""
    return Tile.named(builder().call(lib.pld_load, tensor.of_this_program(), *scalars(offsets), *extents(shape)))


def store(tile: Tile, tensor: Tensor, offsets: Offsets) -> None:
    """Writes a tile into `tensor` of this rank (also a window), beginning at `offsets`. The element types are the same.
    Inside a task."""
    builder().call(lib.pld_store, tile.of_this_program(), tensor.of_this_program(), *scalars(offsets))


def full(dtype: DType, shape: Sequence[Extent], value: ScalarLike) -> Tile:
    """A tile of one value."""
    return Tile.named(builder().call(lib.pld_tile_full, dtype_of(dtype).code, *extents(shape), scalar(value)))


def _reduced(function: Any, tile: Tile) -> Tile:
    return Tile.named(builder().call(function, tile.of_this_program()))


def row_sum(tile: Tile) -> Tile:
    """The sum of each row: `[r, c]` becomes `[r, 1]`. `f16` and `bf16` add up in `f32`."""
    return _reduced(lib.pld_tile_row_sum, tile)


def row_max(tile: Tile) -> Tile:
    """The maximum of each row: `[r, c]` becomes `[r, 1]`."""
    return _reduced(lib.pld_tile_row_max, tile)


def col_sum(tile: Tile) -> Tile:
    """The sum of each column: `[r, c]` becomes `[1, c]`. `f16` and `bf16` add up in `f32`."""
    return _reduced(lib.pld_tile_col_sum, tile)


def col_max(tile: Tile) -> Tile:
    """The maximum of each column: `[r, c]` becomes `[1, c]`."""
    return _reduced(lib.pld_tile_col_max, tile)


# Other ranks.


def rank(window: Window) -> Scalar:
    """This rank's number in the window's domain, an `i32`, in entries only. For a window of the whole world: the rank."""
    return Scalar.named(builder().call(lib.pld_rank, window.of_this_program()))


def nranks(window: Window) -> Scalar:
    """The number of ranks of the window's domain, an `i32`."""
    return Scalar.named(builder().call(lib.pld_nranks, window.of_this_program()))


def _transfer(
    dst_offsets: Optional[Offsets],
    src_offsets: Optional[Offsets],
    shape: Optional[Sequence[Extent]],
    **others: Any,
) -> Any:
    given = [x for x in (dst_offsets, src_offsets, shape) if x is not None]
    if len(given) not in (0, 3):
        raise TraceError("dst_offsets, src_offsets and shape go together: all three for a part, none for the whole")
    transfer = ffi.new("pld_transfer_t *", {"struct_size": ffi.sizeof("pld_transfer_t"), **others})
    if dst_offsets is not None and src_offsets is not None and shape is not None:
        for name, values in (("dst", dst_offsets), ("src", src_offsets)):
            setattr(transfer, name, [scalar(value) for value in values])
            setattr(transfer, "n" + name, len(values))
        transfer.shape = [extent(value) for value in shape]
        transfer.ndims = len(shape)
    return transfer


def put(
    dst: Window,
    peer: ScalarLike,
    src: Tensor,
    *,
    dst_offsets: Optional[Offsets] = None,
    src_offsets: Optional[Offsets] = None,
    shape: Optional[Sequence[Extent]] = None,
    atomic: Literal["none", "add"] = "none",
    chunk_rows: int = 0,
    chunk_cols: int = 0,
    pipeline: bool = False,
) -> None:
    """Moves data of this rank's tensor `src` into the window `dst` of rank `peer`, which may be this rank: all of both,
    or the part that both offsets and the shape say, in elements.

    Inside a task. Returns at once in the running program's order: `src` may be reused, but the data is visible to the
    peer only once a later `notify` of this task is awaited there. A peer or region that is outside ends the launch with
    `pld.OutOfBounds`; nothing is written then. `atomic="add"` adds per element. `chunk_rows`, `chunk_cols` and
    `pipeline` say how it is staged on targets that need it; they never change the result."""
    how = constant("pld_atomic", "PLD_ATOMIC_", atomic)
    staging = {"chunk_rows": chunk_rows, "chunk_cols": chunk_cols, "pipeline": pipeline}
    transfer = _transfer(dst_offsets, src_offsets, shape, atomic=how, **staging)
    builder().call(lib.pld_put, dst.of_this_program(), scalar(peer), src.of_this_program(), transfer)


def get(
    dst: Tensor,
    peer: ScalarLike,
    src: Window,
    *,
    dst_offsets: Optional[Offsets] = None,
    src_offsets: Optional[Offsets] = None,
    shape: Optional[Sequence[Extent]] = None,
    chunk_rows: int = 0,
    chunk_cols: int = 0,
    pipeline: bool = False,
) -> None:
    """Moves data of rank `peer`'s window `src` into this rank's tensor `dst`; what part and how as with `put`. Inside a
    task. The data is there when the next operation of the task begins. What the peer wrote must have been published to
    this rank by a notify that it awaited."""
    staging = {"chunk_rows": chunk_rows, "chunk_cols": chunk_cols, "pipeline": pipeline}
    transfer = _transfer(dst_offsets, src_offsets, shape, **staging)
    builder().call(lib.pld_get, dst.of_this_program(), scalar(peer), src.of_this_program(), transfer)


def get_reduce(
    dst: Tensor,
    first: ScalarLike,
    end: ScalarLike,
    src: Window,
    op: Combine = "sum",
    *,
    dst_offsets: Optional[Offsets] = None,
    src_offsets: Optional[Offsets] = None,
    shape: Optional[Sequence[Extent]] = None,
) -> None:
    """The region of `dst` becomes the combination of the same region of the window `src` of the ranks `first`,
    `first + 1`, ... `end - 1` of its domain, in this order, counted on from rank 0 behind the last. `dst` may be that
    region of `src` itself. Inside a task; otherwise as `get`."""
    how = constant("pld_combine", "PLD_COMBINE_", op)
    transfer = _transfer(dst_offsets, src_offsets, shape)
    operands = (dst.of_this_program(), scalar(first), scalar(end), src.of_this_program())
    builder().call(lib.pld_get_reduce, *operands, how, transfer)


def remote_load(window: Window, peer: ScalarLike, offsets: Offsets, shape: Sequence[Extent]) -> Tile:
    """The part of rank `peer`'s `window` that begins at `offsets` and has this shape, as a tile; otherwise as `get`."""
    handle = builder().call(
        lib.pld_remote_load, window.of_this_program(), scalar(peer), *scalars(offsets), *extents(shape)
    )
    return Tile.named(handle)


def remote_store(
    tile: Tile, window: Window, peer: ScalarLike, offsets: Offsets, atomic: Literal["none", "add"] = "none"
) -> None:
    """Writes a tile into rank `peer`'s `window`, beginning at `offsets`; otherwise as `put`. On an NPU a notify in
    another task does not publish it: keep the notify in the task that stores, or use `put`."""
    how = constant("pld_atomic", "PLD_ATOMIC_", atomic)
    operands = (tile.of_this_program(), window.of_this_program(), scalar(peer))
    builder().call(lib.pld_remote_store, *operands, *scalars(offsets), how)


def notify(
    window: Window, peer: ScalarLike, offsets: Offsets, value: ScalarLike = 1, op: Literal["add", "set"] = "add"
) -> None:
    """Changes the cell at `offsets` of rank `peer`'s `i32` window: adds `value`, or sets it. Inside a task. Everything
    the task wrote before, to its own memory or a peer's, is visible to that rank once its `wait` on the cell succeeds;
    nothing else orders ranks. Does not block."""
    how = constant("pld_notify_op", "PLD_NOTIFY_", op)
    builder().call(lib.pld_notify, window.of_this_program(), scalar(peer), *scalars(offsets), scalar(value), how)


def wait(window: Window, offsets: Offsets, expected: ScalarLike, cmp: Literal[">=", "=="] = ">=") -> None:
    """Blocks the task until this rank's cell at `offsets` of the `i32` window compares with `expected`; see `notify`.
    Inside a task. A wait that is not satisfied within the world's time-out ends the launch with `pld.Timeout` on every
    rank."""
    how = comparison("pld_wait_cmp", "PLD_WAIT_", cmp)
    builder().call(lib.pld_wait, window.of_this_program(), *scalars(offsets), scalar(expected), how)


def defer_wait(window: Window, offsets: Offsets, expected: ScalarLike) -> None:
    """Lets the task be over only when this rank's cell at `offsets` of the `i32` window is `expected` or more; see
    `notify`. Does not block: the task's code goes on and ends, the core is free, and the tasks that depend on this one
    begin when all its conditions hold.

    Inside a task that does nothing else: a `pld.at` without predicate or `allow_early_resolve`; scalar code, and at
    most 64 of these conditions, on window parameters themselves. Counters only grow, from 0 up."""
    builder().call(lib.pld_defer_wait, window.of_this_program(), *scalars(offsets), scalar(expected))


