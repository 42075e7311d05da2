"""Values of a traced program: scalars, variables, arrays, tiles, tensors, windows, tasks."""

from __future__ import annotations

import numbers
from typing import Any, List, NoReturn, Optional, Sequence, Tuple, Union

from pld._native import constant, ffi, lib
from pld.dtypes import DType, dtype_of
from pld.errors import TraceError
from pld.sizes import Size
from pld.tracing import Builder, builder, integer, variable_name

ScalarLike = Union["Scalar", "Var", Size, int, float, bool]
"""What stands for a scalar: a value of the program, a size, or a number of Python."""
Extent = Union[int, Size, "Scalar"]
"""What stands for an extent. Values that are computed when the program runs stand in shapes of transfers only."""
Offsets = Sequence[ScalarLike]




class Value:
    """What a program names; it belongs to the program that was traced when it was made."""

    def __init__(self, handle: Any) -> None:
        self.builder: Builder = builder()
        self.handle = handle

    def of_this_program(self) -> Any:
        if self.builder is not builder():
            raise TraceError(f"this {type(self).__name__} belongs to another program: pass what is shared as an argument")
        return self.handle

    def __bool__(self) -> bool:
        raise TraceError(
            "a value of the program is not known while it is traced. Instead of `if x:` write `with pld.if_(x):`, of "
            "`a and b`, `a or b`, `not a` write `a & b`, `a | b`, `~a` with parentheses around comparisons, of "
            "`a < b < c` write `(a < b) & (b < c)`, of `a if x else b` write `pld.select(x, a, b)`"
        )

    def __iter__(self) -> NoReturn:
        raise TraceError(
            f"a {type(self).__name__} cannot be iterated over while the program is traced: write "
            "`for i in pld.range(n):` and index with i"
        )

    def __contains__(self, _: object) -> NoReturn:
        raise TraceError(f"`in` has no meaning for a {type(self).__name__} of the program")

    def __index__(self) -> int:
        raise TraceError(
            "a value of the program is not known while it is traced: for `range(n)` write `pld.range(n)`, for `int(x)` "
            "write `pld.cast(x, pld.i32)`"
        )

    def __float__(self) -> float:
        raise TraceError("a value of the program is not known while it is traced: write `pld.cast(x, pld.f32)`")


def arithmetic(op: str, a: Any, b: Any) -> Any:
    """`a op b`, of tiles or scalars, with the name of the variable that it is assigned to."""
    result = computed(op, a, b)
    return result if result is NotImplemented else result[0].named(result[1])


def computed(op: str, a: Any, b: Any) -> Any:
    """The type and the handle of `a op b`, without a name; or NotImplemented."""
    if isinstance(b, Tile) and not isinstance(a, Tile):
        if op not in ("add", "mul", "max", "min"):
            raise TraceError(f"the left side of `{op}` must be a tile too: pld.full(dtype, shape, value) makes one")
        a, b = b, a
    if isinstance(a, Tile):
        if op not in _TILE_OPS:
            raise TraceError(f"there is no `{op}` of tiles: they have + - * / and pld.max, pld.min")
        function, operand = (f"pld_tile_{op}", b.of_this_program()) if isinstance(b, Tile) else (f"pld_tile_{op}s", scalar(b))
        return Tile, builder().call(getattr(lib, function), a.of_this_program(), operand)
    try:
        operands = scalar(a), scalar(b)
    except TypeError:
        return NotImplemented
    return Scalar, builder().call(getattr(lib, f"pld_{op}"), *operands)


_TILE_OPS = ("add", "sub", "mul", "div", "max", "min")


class Numeric(Value):
    """What has arithmetic: `+ - * / % ` and, for scalars, comparisons and `& | ~` of bools.

    `/` and `//` are both the division of the language: integers truncate toward zero. `%` has the sign of the dividend.
    """

    def __add__(self, other: Any) -> Any:
        return arithmetic("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return arithmetic("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return arithmetic("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return arithmetic("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return arithmetic("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return arithmetic("mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return arithmetic("div", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return arithmetic("div", other, self)

    __floordiv__ = __truediv__
    __rfloordiv__ = __rtruediv__

    def __mod__(self, other: Any) -> Any:
        return arithmetic("mod", self, other)

    def __rmod__(self, other: Any) -> Any:
        return arithmetic("mod", other, self)


class Comparable(Numeric):
    """A scalar, or what holds one."""

    def __eq__(self, other: Any) -> Any:
        return arithmetic("eq", self, other)

    def __ne__(self, other: Any) -> Any:
        return arithmetic("ne", self, other)

    def __lt__(self, other: Any) -> Any:
        return arithmetic("lt", self, other)

    def __le__(self, other: Any) -> Any:
        return arithmetic("le", self, other)

    def __gt__(self, other: Any) -> Any:
        return arithmetic("gt", self, other)

    def __ge__(self, other: Any) -> Any:
        return arithmetic("ge", self, other)

    __hash__ = object.__hash__

    def __and__(self, other: Any) -> Any:
        return arithmetic("and", self, other)

    def __rand__(self, other: Any) -> Any:
        return arithmetic("and", other, self)

    def __or__(self, other: Any) -> Any:
        return arithmetic("or", self, other)

    def __ror__(self, other: Any) -> Any:
        return arithmetic("or", other, self)

    def __invert__(self) -> "Scalar":
        return Scalar.named(builder().call(lib.pld_not, scalar(self)))

    def __neg__(self) -> "Scalar":
        return Scalar.named(builder().call(lib.pld_neg, scalar(self)))


class Scalar(Comparable):
    """A scalar that never changes, of type `i32`, `i64`, `f32` or `bool`. As annotation of a parameter:
    `me: pld.Scalar[pld.i32]`."""

    def __init__(self, handle: Any) -> None:
        super().__init__(handle)
        self.loops = self.builder.loops

    def __class_getitem__(cls, dtype: Any) -> "Parameter":
        return Parameter("scalar", (), dtype_of(dtype))

    @classmethod
    def named(cls, handle: Any) -> "Scalar":
        """With the name of the variable that it is assigned to."""
        name = variable_name()
        return cls(handle if name is None else builder().call(lib.pld_let, name.encode(), handle))

    def __iadd__(self, other: Any) -> Any:
        return self._rebound("+=", arithmetic("add", self, other))

    def __isub__(self, other: Any) -> Any:
        return self._rebound("-=", arithmetic("sub", self, other))

    def __imul__(self, other: Any) -> Any:
        return self._rebound("*=", arithmetic("mul", self, other))

    def _rebound(self, sign: str, result: Any) -> Any:
        if self.builder.loops > self.loops:
            raise TraceError(
                f"`{sign}` in a loop would not add up: the body is traced once, and a scalar never changes. Begin "
                "with `x = pld.var(dtype, first)` before the loop; then `x += ...` changes it"
            )
        return result


class Var(Comparable):
    """A mutable scalar: reads as a scalar, and `v += x`, `v.set(x)` change it."""

    def get(self) -> Scalar:
        """The present value."""
        return Scalar.named(builder().call(lib.pld_var_get, self.of_this_program()))

    def set(self, value: ScalarLike) -> None:
        """Changes the value."""
        builder().call(lib.pld_var_set, self.of_this_program(), scalar(value))

    def _become(self, op: str, other: Any) -> Any:
        result = computed(op, self, other)
        if result is not NotImplemented:
            builder().call(lib.pld_var_set, self.handle, result[1])
            return self
        return NotImplemented

    def __iadd__(self, other: Any) -> Any:
        return self._become("add", other)

    def __isub__(self, other: Any) -> Any:
        return self._become("sub", other)

    def __imul__(self, other: Any) -> Any:
        return self._become("mul", other)


class Array(Value):
    """A small local array of scalars: `a[i]` reads, `a[i] = x` changes. An index that is outside ends the launch with
    `pld.OutOfBounds`."""

    def __getitem__(self, index: ScalarLike) -> Scalar:
        return Scalar.named(builder().call(lib.pld_array_get, self.of_this_program(), scalar(index)))

    def __setitem__(self, index: ScalarLike, value: ScalarLike) -> None:
        builder().call(lib.pld_array_set, self.of_this_program(), scalar(index), scalar(value))


class Tile(Numeric):
    """A register of a task, whose shape is known when the program is compiled. Operators make new tiles; `t += u`,
    `t -= u`, `t *= u` and `t.assign(u)` overwrite one."""

    @classmethod
    def named(cls, handle: Any) -> "Tile":
        """With the name of the variable that it is assigned to."""
        name = variable_name()
        if name is not None:
            builder().call(lib.pld_tile_name, handle, name.encode())
        return cls(handle)

    def assign(self, value: "Tile") -> None:
        """Overwrites this tile by one of the same shape and element type."""
        builder().call(lib.pld_tile_assign, self.of_this_program(), value.of_this_program())

    def copy(self) -> "Tile":
        """A new tile with the same elements."""
        return Tile.named(builder().call(lib.pld_tile_copy, self.of_this_program()))

    def _become(self, op: str, other: Any) -> "Tile":
        _, handle = computed(op, self, other)
        builder().call(lib.pld_tile_assign, self.handle, handle)
        return self

    def __iadd__(self, other: Any) -> "Tile":
        return self._become("add", other)

    def __isub__(self, other: Any) -> "Tile":
        return self._become("sub", other)

    def __imul__(self, other: Any) -> "Tile":
        return self._become("mul", other)

    def __itruediv__(self, other: Any) -> "Tile":
        return self._become("div", other)


class Tensor(Value):
    """A tensor: a parameter, or a slice of one. In tasks `x[i, j]` reads an element and `x[i, j] = v` writes one; in the
    host driver `x[r]` is rank `r`'s part. As annotation of a parameter: `x: pld.Tensor[[1, 256], pld.f32]`."""

    def __class_getitem__(cls, spec: Any) -> "Parameter":
        shape, dtype = _shape_and_dtype(cls.__name__, spec)
        return Parameter("window" if issubclass(cls, Window) else "tensor", shape, dtype)

    @classmethod
    def named(cls, handle: Any) -> Any:
        """With the name of the variable that it is assigned to."""
        name = variable_name()
        if name is not None:
            builder().call(lib.pld_tensor_name, handle, name.encode())
        return cls(handle)

    def __getitem__(self, index: Any) -> Any:
        offsets = _offsets_of(index)
        if self.builder.in_host:
            if len(offsets) != 1:
                raise TraceError("in the host driver a tensor is sliced by rank: x[r]")
            return Tensor(builder().call(lib.pld_slice_rank, self.of_this_program(), scalar(offsets[0])))
        return Scalar.named(builder().call(lib.pld_read, self.of_this_program(), *scalars(offsets)))

    def __setitem__(self, index: Any, value: ScalarLike) -> None:
        builder().call(lib.pld_write, self.of_this_program(), *scalars(_offsets_of(index)), scalar(value))


class Window(Tensor):
    """A window: symmetric memory that every rank has and the others can reach. To its own rank it is a tensor. As
    annotation of a parameter: `data: pld.Window[[1, 256], pld.f32]`."""


class Buffer(Value):
    """A window buffer: symmetric memory of the same size on every rank; see `alloc_window`."""


class Domain(Value):
    """A comm domain: ranks that share windows, and number each other 0, 1, and so on."""


class Task(Value):
    """A task, for others to depend on."""

    def __init__(self, name: Optional[str] = None, handle: Any = None) -> None:
        super().__init__(handle)
        self.name = name

    def end(self, handle: Any) -> None:
        """The task is over, and this is its id."""
        if self.name is not None:
            self.builder.call(lib.pld_task_name, handle, self.name.encode())
        self.handle = handle

    def of_this_program(self) -> Any:
        if self.handle is None:
            raise TraceError("this task is still open: only tasks behind it can depend on it")
        return super().of_this_program()

    @property
    def block(self) -> Scalar:
        """Inside the grid of a `pld.spmd`: which of its blocks runs."""
        return Scalar.named(builder().call(lib.pld_block_index))


class Parameter:
    """What an annotation says of a parameter."""

    def __init__(self, kind: str, shape: Tuple[Extent, ...], dtype: DType, direction: str = "in") -> None:
        self.kind = kind
        self.shape = shape
        self.dtype = dtype
        self.direction = direction

    @property
    def direction_code(self) -> int:
        return constant("pld_direction", "PLD_", self.direction)


class Direction:
    """What is done with a tensor: in an annotation `pld.Out[pld.Tensor[...]]`, in a list of arguments `pld.Out(y)`."""

    direction = ""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def __class_getitem__(cls, parameter: Any) -> Parameter:
        if not isinstance(parameter, Parameter) or parameter.kind != "tensor":
            raise TraceError(f"pld.{cls.__name__}[...] is for tensors: pld.{cls.__name__}[pld.Tensor[[1, 8], pld.f32]]")
        return Parameter(parameter.kind, parameter.shape, parameter.dtype, cls.direction)


class In(Direction):
    """Read only: the default of parameters."""

    direction = "in"


class Out(Direction):
    """Written."""

    direction = "out"


class InOut(Direction):
    """Read and written."""

    direction = "inout"


def _shape_and_dtype(name: str, spec: Any) -> Tuple[Tuple[Extent, ...], DType]:
    if not isinstance(spec, tuple) or len(spec) != 2 or not isinstance(spec[0], (list, tuple)):
        raise TraceError(f"pld.{name} takes a shape and an element type: pld.{name}[[1, 256], pld.f32]")
    return tuple(spec[0]), dtype_of(spec[1])


def _offsets_of(index: Any) -> Offsets:
    offsets = index if isinstance(index, tuple) else (index,)
    if any(isinstance(offset, slice) or offset is Ellipsis for offset in offsets):
        raise TraceError("a part of a tensor is pld.slice(x, offsets, shape); x[i, j] is one element")
    return offsets


def scalar(value: Any) -> Any:
    """A `pld_scalar_t` of whatever stands for a scalar."""
    if isinstance(value, Scalar):
        return value.of_this_program()
    if isinstance(value, Var):
        return builder().call(lib.pld_var_get, value.of_this_program())
    if isinstance(value, Size):
        return builder().size(value)
    if isinstance(value, bool):
        return builder().call(lib.pld_bool, int(value))
    if isinstance(value, numbers.Integral):
        return integer(int(value))
    if isinstance(value, numbers.Real):
        return builder().call(lib.pld_float, float(value))
    raise TypeError(f"a scalar is needed here, and not {value!r}")


def scalars(values: Offsets) -> Tuple[Any, int]:
    """A list of scalars, and its length."""
    if isinstance(values, (Value, Size, numbers.Number)):
        raise TypeError(f"a list is needed here, such as [{values}]" if isinstance(values, numbers.Number) else "a list is needed here: [i, j]")
    return ffi.new("pld_scalar_t[]", [scalar(value) for value in values]), len(values)


def extent(value: Extent) -> int:
    """A `pld_dim_t` of whatever stands for an extent."""
    if isinstance(value, (Scalar, Var)):
        return int(builder().call(lib.pld_dim_of, scalar(value)))
    if isinstance(value, Size):
        return builder().extent(value)
    return int(value)


def extents(shape: Sequence[Extent]) -> Tuple[Any, int]:
    """A list of extents, and its length."""
    return ffi.new("pld_dim_t[]", [extent(value) for value in shape]), len(shape)


def handles(kind: str, values: Sequence[Value]) -> Tuple[Any, int]:
    """A list of handles, and its length."""
    list_: List[Any] = [value.of_this_program() for value in values]
    return ffi.new(f"{kind}[]", list_), len(list_)
