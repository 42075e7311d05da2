"""Entries and host drivers: Python functions that are traced into a program."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, Optional, Sequence, Union

from pld._native import ffi, lib
from pld.dtypes import DType, dtype_of
from pld.errors import TraceError
from pld.ops import name_of
from pld.program import Program
from pld.sizes import Size
from pld.tracing import Builder, Tracing, builder, user_frame
from pld.values import Buffer, Domain, Extent, Parameter, Scalar, ScalarLike, Tensor, Window, extents, scalar, scalars


class Traced:
    """A Python function with annotated parameters."""

    def __init__(self, function: Callable[..., None]) -> None:
        self.function = function
        self.name = function.__name__
        self.place = (function.__code__.co_filename, function.__code__.co_firstlineno)
        self.signature = inspect.signature(function)
        self.parameters: Dict[str, Parameter] = {}
        for name in self.signature.parameters:
            self.parameters[name] = self._parameter(name, function.__annotations__.get(name))

    def _parameter(self, name: str, annotation: Any) -> Parameter:
        if isinstance(annotation, str):
            # As with `from __future__ import annotations`: names are those where the function is defined.
            annotation = eval(annotation, self.function.__globals__, dict(user_frame().f_locals))
        if not isinstance(annotation, Parameter):
            raise TraceError(
                f"{self.place[0]}:{self.place[1]}: parameter {name} of {self.name} needs a type: "
                "pld.Tensor[[1, 256], pld.f32], pld.Out[pld.Tensor[...]], pld.Window[...] or pld.Scalar[pld.i32]"
            )
        return annotation


class Entry(Traced):
    """What one rank does: a graph of tasks. Called in a host driver, with a `device`, it is a dispatch: it runs on that
    rank, with one operand for each of its parameters. The dispatches of one rank run in order; nothing orders those of
    different ranks."""

    def build(self, traced: Builder) -> Any:
        """Builds the entry, and returns its handle."""
        traced.place = self.place
        handle = traced.call(lib.pld_entry_begin, self.name.encode())
        operands = [self._declare(traced, name, parameter) for name, parameter in self.parameters.items()]
        traced.place = None
        self.function(*operands)
        traced.close_all()
        traced.place = self.place
        traced.call(lib.pld_entry_end)
        traced.place = None
        return handle

    def _declare(self, traced: Builder, name: str, parameter: Parameter) -> Any:
        code = parameter.dtype.code
        if parameter.kind == "scalar":
            return Scalar(traced.call(lib.pld_param_scalar, name.encode(), code))
        shape = extents(parameter.shape)
        if parameter.kind == "window":
            return Window(traced.call(lib.pld_param_window, name.encode(), code, *shape))
        return Tensor(traced.call(lib.pld_param_tensor, name.encode(), code, *shape, parameter.direction_code))

    def __call__(self, *args: Union[Tensor, ScalarLike], device: ScalarLike, **named: Union[Tensor, ScalarLike]) -> None:
        traced = builder()
        if not traced.in_host:
            raise TraceError(f"entry {self.name} is called in a host driver only: what tasks share is a plain function")
        handle = traced.entries.get(self)
        if handle is None:  # the first trace: it only looks which entries there are
            traced.entries[self] = None
            return
        bound = self.signature.bind(*args, **named)
        operands = ffi.new("pld_operand_t[]", len(bound.arguments))
        for operand, value in zip(operands, bound.arguments.values()):
            if isinstance(value, Tensor):
                operand.kind, operand.tensor = lib.PLD_OPERAND_TENSOR, value.of_this_program()
            else:
                operand.kind, operand.scalar = lib.PLD_OPERAND_SCALAR, scalar(value)
        traced.call(lib.pld_dispatch, handle, scalar(device), operands, len(operands))


def entry(function: Callable[..., None]) -> Entry:
    """Makes an entry of a function: what one rank does. Its parameters are annotated with `pld.Tensor[shape, dtype]`,
    `pld.Out[pld.Tensor[...]]` or `pld.InOut[...]`, `pld.Window[shape, dtype]`, or `pld.Scalar[dtype]`. Its body is run
    once, with values that stand for those of the program, to record what it does. Other functions that it calls are
    plain Python."""
    return Entry(function)


class _Host(Traced):
    """A host driver."""

    def trace(self, name: str) -> Program:
        # Entries stand before the host driver in a program: a first trace finds out which it dispatches.
        first = Builder(name)
        try:
            self._run(first)
            entries = list(first.entries)
        finally:
            first.destroy()
        traced = Builder(name)
        try:
            with Tracing(traced):
                self._declare_sizes(traced, [*entries, self])
                traced.entries = {entry: entry.build(traced) for entry in entries}
            self._run(traced)
            findings = traced.finish()
        except BaseException:
            traced.destroy()
            raise
        return Program(traced.handle, traced.functions, findings.list)

    def _declare_sizes(self, traced: Builder, functions: Sequence[Traced]) -> None:
        """Names sizes in the order in which they were made, and not in that of their first use."""
        shapes = [parameter.shape for function in functions for parameter in function.parameters.values()]
        extents_ = [extent for shape in shapes for extent in shape if isinstance(extent, Size)]
        named = {id(size): size for extent in extents_ for size in extent.named()}
        traced.place = self.place
        for size in sorted(named.values(), key=lambda size: size.serial):
            traced.extent(size)
        traced.place = None

    def _run(self, traced: Builder) -> None:
        with Tracing(traced):
            traced.in_host = True
            traced.place = self.place
            operands = [self._declare(traced, name, parameter) for name, parameter in self.parameters.items()]
            traced.place = None
            self.function(*operands)
            traced.close_all()

    def _declare(self, traced: Builder, name: str, parameter: Parameter) -> Any:
        code = parameter.dtype.code
        if parameter.kind == "scalar":
            return Scalar(traced.call(lib.pld_host_scalar, name.encode(), code))
        if parameter.kind == "window":
            raise TraceError(f"{name} of {self.name} is a window: a host driver makes its own, with pld.alloc_window")
        shape = extents(parameter.shape)
        return Tensor(traced.call(lib.pld_host_tensor, name.encode(), code, *shape, parameter.direction_code))


def host(function: Callable[..., None]) -> Program:
    """Makes a program of a host driver: it allocates windows and dispatches an entry to each rank, once a launch.
    Parameters are the arguments of a launch, annotated as for `pld.entry`; a tensor that is sliced `x[r]` has a leading
    rank axis, `pld.WORLD`. The program has the function's name.

    The body is run at once, twice (the first time to find the entries), and then the program is verified: VerifyError
    has every mistake, each with the Python line."""
    driver = _Host(function)
    return driver.trace(driver.name)


# What a host driver allocates.


def domain(ranks: Sequence[ScalarLike], name: Optional[str] = None) -> Domain:
    """Names the ranks of a comm domain, one by one: a rank's number in it is its place in the list. Ranks are made of
    numbers, the world size and constants. Every rank of the world makes the same call, member or not. It has the name of
    the variable that it is assigned to."""
    return Domain(builder().call(lib.pld_domain_create, _named(name, "domain"), *scalars(ranks)))


def domain_range(first: ScalarLike, end: ScalarLike, name: Optional[str] = None) -> Domain:
    """Names the ranks of a comm domain: from `first` up to, but without, `end`, numbered from 0. As `domain`
    otherwise."""
    return Domain(builder().call(lib.pld_domain_range, _named(name, "domain"), scalar(first), scalar(end)))


def alloc_window(
    shape: Sequence[Extent], dtype: DType, *, domain: Optional[Domain] = None, name: Optional[str] = None
) -> Buffer:
    """Reserves a window buffer of this shape and element type on every rank; it begins zeroed. The ranks that number
    each other in it are those of `domain`, else those to which its views are dispatched. It has the name of the variable
    that it is assigned to."""
    rest = (_named(name, "window"), dtype_of(dtype).code, *extents(shape))
    if domain is None:
        return Buffer(builder().call(lib.pld_alloc_window, *rest))
    return Buffer(builder().call(lib.pld_alloc_window_in, domain.of_this_program(), *rest))


def alloc_window_bytes(size: ScalarLike, *, domain: Optional[Domain] = None, name: Optional[str] = None) -> Buffer:
    """Reserves a window buffer of this many bytes on every rank, for several views of different shapes. `size` is made
    of numbers, the world size and constants. Otherwise as `alloc_window`."""
    rest = (_named(name, "window"), scalar(size))
    if domain is None:
        return Buffer(builder().call(lib.pld_alloc_window_bytes, *rest))
    return Buffer(builder().call(lib.pld_alloc_window_bytes_in, domain.of_this_program(), *rest))


def window(buffer: Buffer, shape: Sequence[Extent], dtype: DType) -> Window:
    """A view of a window buffer, not larger than it, which can be passed to window parameters."""
    handle = builder().call(lib.pld_window, buffer.of_this_program(), dtype_of(dtype).code, *extents(shape))
    view: Window = Window.named(handle)
    return view


def _named(name: Optional[str], what: str) -> Any:
    found = name_of(name)
    if found == ffi.NULL:
        raise TraceError(f"this {what} needs a name: assign it to a variable, or pass name=")
    return found
