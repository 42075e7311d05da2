"""Exchanges of all ranks that share a window. Each stands in a task of a `pld.at`, or in the host driver outside of loops
over ranks, and every rank of the domain makes the same calls in the same order; `docs/collectives.md` has the contract.

What they share: `mode` is the algorithm, which never changes what the call means, only in which order floats combine;
`cores` how many blocks share the work of a call in the host driver; `signal` a window that names the channel: calls on
one channel pair in their order, those on different channels are independent. A call is over on a rank when its part is
done: then its inputs may be changed and its results read."""

from __future__ import annotations

from typing import Any, Literal, Optional

from pld._native import constant, ffi, lib
from pld.ops import Combine
from pld.tracing import builder
from pld.values import ScalarLike, Tensor, Window, scalar

Mode = Literal["auto", "mesh", "direct", "ring", "two_phase", "hierarchical"]


def _no_tensor() -> Any:
    return ffi.new("pld_tensor_t *")[0]


def _options(mode: Mode, cores: int, signal: Optional[Window]) -> Any:
    struct = ffi.new("pld_collective_options_t *")
    lib.pld_collective_options_init(struct, ffi.sizeof("pld_collective_options_t"))
    struct.mode = constant("pld_collective_mode", "PLD_COLLECTIVE_", mode)
    struct.cores = cores
    if signal is not None:
        struct.signal = signal._checked()
    return struct


def barrier(window: Optional[Window] = None, *, cores: int = 0, signal: Optional[Window] = None) -> None:
    """Nobody goes on before all ranks have come: those of the domain of `window`, else of the signal, else of the
    world. What a rank wrote before, all see behind it."""
    domain = _no_tensor() if window is None else window._checked()
    builder().call(lib.pld_barrier, domain, _options("auto", cores, signal))


def allreduce(
    data: Window, op: Combine = "sum", *, mode: Mode = "auto", cores: int = 0, signal: Optional[Window] = None
) -> None:
    """The window `data` of every rank becomes the combination of those of all ranks, element by element: of type
    `f32`, `f16`, `bf16`, `i64`, `i32` or `i8`."""
    how = constant("pld_combine", "PLD_COMBINE_", op)
    builder().call(lib.pld_allreduce, data._checked(), how, _options(mode, cores, signal))


def reduce_scatter(
    data: Window, op: Combine = "sum", *, mode: Mode = "auto", cores: int = 0, signal: Optional[Window] = None
) -> None:
    """Row `r` of the window `data` of each rank `r` becomes the combination of the rows `r` of all ranks; other rows
    stay as they are. The first extent of `data` is the number of ranks. Types as with `allreduce`."""
    how = constant("pld_combine", "PLD_COMBINE_", op)
    builder().call(lib.pld_reduce_scatter, data._checked(), how, _options(mode, cores, signal))


def broadcast(
    data: Window, root: ScalarLike, *, mode: Mode = "auto", cores: int = 0, signal: Optional[Window] = None
) -> None:
    """The window `data` of every rank becomes that of rank `root` of the domain, which is the same on all."""
    builder().call(lib.pld_broadcast, data._checked(), scalar(root), _options(mode, cores, signal))


def allgather(
    dst: Window, src: Tensor, *, mode: Mode = "auto", cores: int = 0, signal: Optional[Window] = None
) -> None:
    """Row `r` of the window `dst` of every rank becomes `src` of rank `r`. The first extent of `dst` is the number of
    ranks, and `src`, which need not be a window in a task, has the elements of one row."""
    operands = (dst._checked(), src._checked())
    builder().call(lib.pld_allgather, *operands, _options(mode, cores, signal))


def all_to_all(
    dst: Window, src: Tensor, *, mode: Mode = "auto", cores: int = 0, signal: Optional[Window] = None
) -> None:
    """Row `r` of the window `dst` of every rank `q` becomes row `q` of `src` of rank `r`. Both have as many rows as
    there are ranks; `src` need not be a window in a task."""
    operands = (dst._checked(), src._checked())
    builder().call(lib.pld_all_to_all, *operands, _options(mode, cores, signal))


class Rows:
    """One side of an `all_to_all_v`; see `rows`."""

    def __init__(self, rows: Tensor, counts: Tensor, offsets: Optional[Tensor]) -> None:
        self.rows, self.counts, self.offsets = rows, counts, offsets

    def _struct(self) -> Any:
        offsets = _no_tensor() if self.offsets is None else self.offsets._checked()
        return ffi.new("pld_rows_t *", (self.rows._checked(), self.counts._checked(), offsets))[0]


def rows(data: Tensor, counts: Tensor, offsets: Optional[Tensor] = None) -> Rows:
    """One side of an `all_to_all_v`: rows, which are the parts of `data` along its first dimension; for each rank how
    many there are, an `i32` or `i64`; and where they begin. Without `offsets` the rows are divided evenly."""
    return Rows(data, counts, offsets)


def all_to_all_v(
    recv: Rows, send: Rows, *, mode: Mode = "auto", cores: int = 0, signal: Optional[Window] = None
) -> None:
    """Each rank `r` sends `send.counts[q]` rows to each rank `q`, which finds them in the window of its `recv`, and
    their number in `recv.counts[r]`. Either both sides have offsets, or none. A count that is negative, or more than
    what the receiver has room for, ends the launch on every rank with `pld.OutOfBounds` naming both numbers."""
    builder().call(lib.pld_all_to_all_v, recv._struct(), send._struct(), _options(mode, cores, signal))
