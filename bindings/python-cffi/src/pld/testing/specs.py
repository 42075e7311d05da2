"""What a golden test gives to a program: tensors and scalars by name, with the rule that fills them."""

from __future__ import annotations

import operator
import zlib
from dataclasses import dataclass
from typing import Any, Callable, Dict, Literal, Sequence, SupportsIndex, Tuple, Union

import numpy as np

from pld.arguments import LaunchArgument, as_type
from pld.dtypes import DType
from pld.errors import InvalidArgument
from pld.parameters import HostParameter

Array = np.ndarray[Any, Any]
Tensors = Dict[str, Any]
"""Arrays and numbers by the names of the parameters."""
Init = Union[Literal["zeros", "iota", "random"], float, Array, Callable[[int], Any]]
"""What a tensor holds before a launch: `"zeros"`; `"iota"`, whose values depend on the place, the rank and the launch;
`"random"`, which follows from the seed, the name and the launch; a number for every element; an array; or a function of
the launch, from 1, that returns an array."""


@dataclass(frozen=True)
class TensorSpec:
    """A tensor of the host driver, whole: with the leading rank axis of one that is sliced by rank."""

    name: str
    """The parameter's name."""
    shape: Sequence[SupportsIndex]
    """Its extents for the number of ranks of the test: integers, or sizes of `pld.const`."""
    dtype: DType
    """The type of its elements."""
    init: Init = "zeros"
    """What it holds before each launch. Outputs begin as -1 or the largest unsigned number, so that what is not
    written shows, unless this says otherwise."""
    resident: Literal["", "stacked"] = ""
    """`"stacked"`: shard `r` lives with rank `r`, and launches use it where it is. It is copied in before a launch and
    out behind it."""

    @property
    def extents(self) -> Tuple[int, ...]:
        """The shape as integers."""
        return tuple(map(operator.index, self.shape))

    def initial(self, parameter: HostParameter, launch: int, seed: int) -> Array:
        """What it holds before a launch."""
        shape, dtype = self.extents, self.dtype.numpy
        if isinstance(self.init, np.ndarray) or callable(self.init):
            value = self.init if isinstance(self.init, np.ndarray) else np.asarray(self.init(launch))
            if value.shape != shape:
                raise InvalidArgument(f"init of {self.name} has shape {list(value.shape)}, and the spec {list(shape)}")
            return np.ascontiguousarray(value, dtype)
        if not isinstance(self.init, str):
            return np.full(shape, self.init, dtype)
        if self.init == "random":
            return _random(np.random.default_rng([seed, launch, zlib.crc32(self.name.encode())]), shape, self.dtype)
        if self.init == "iota":
            return _iota(shape, self.dtype, launch)
        if self.init != "zeros":
            raise InvalidArgument(f"init of {self.name} is {self.init!r}, and none of 'zeros', 'iota', 'random'")
        untouched = parameter.direction == "out"
        return np.full(shape, -1).astype(dtype) if untouched else np.zeros(shape, dtype)

    def argument(self, array: Array) -> LaunchArgument:
        """The array as an argument of a launch."""
        return as_type(array, self.dtype) if self.dtype.numpy.name != self.dtype.numpy_name else array


@dataclass(frozen=True)
class ScalarSpec:
    """A scalar of the host driver."""

    name: str
    """The parameter's name."""
    dtype: DType
    """Its type: `i32`, `i64`, `f32` or `bool`."""
    value: Union[int, float, Callable[[int], Union[int, float]]]
    """Its value, or a function of the launch, from 1: `lambda launch: launch` counts epochs."""

    def initial(self, launch: int) -> Union[int, float]:
        """The value for a launch."""
        return self.value(launch) if callable(self.value) else self.value


Spec = Union[TensorSpec, ScalarSpec]


def matched(
    parameters: Sequence[HostParameter], specs: Sequence[Spec], ranks: int
) -> "list[Tuple[HostParameter, Spec]]":
    """Each parameter with its spec. Raises InvalidArgument for what does not fit, naming both sides."""
    by_name = {spec.name: spec for spec in specs}
    missing = [p.name for p in parameters if p.name not in by_name]
    unknown = [name for name in by_name if name not in [p.name for p in parameters]]
    if missing or unknown or len(by_name) != len(specs):
        raise InvalidArgument(
            f"specs name {[spec.name for spec in specs]}, parameters are {[p.name for p in parameters]}"
        )
    pairs = [(parameter, by_name[parameter.name]) for parameter in parameters]
    for parameter, spec in pairs:
        kind = "tensor" if isinstance(spec, TensorSpec) else "scalar"
        if kind != parameter.kind or spec.dtype is not parameter.dtype:
            raise InvalidArgument(
                f"{spec.name} is a {parameter.kind} of {parameter.dtype.name}, and its spec a {kind} of "
                f"{spec.dtype.name}"
            )
        if isinstance(spec, TensorSpec):
            _check_shape(parameter, spec, ranks)
    return pairs


def _check_shape(parameter: HostParameter, spec: TensorSpec, ranks: int) -> None:
    wanted, given = parameter.shape, spec.extents
    fits = len(wanted) == len(given) and all(w in (None, g) for w, g in zip(wanted, given))
    if not fits:
        shown = ["?" if extent is None else extent for extent in wanted]
        raise InvalidArgument(f"{spec.name} has shape {list(given)} in its spec, and {shown} with {ranks} ranks")


def _random(generator: np.random.Generator, shape: Tuple[int, ...], dtype: DType) -> Array:
    if dtype.name == "bool":
        return np.asarray(generator.integers(0, 2, shape).astype(np.bool_))
    if dtype.name[0] == "f" or dtype.name == "bf16":
        return to_dtype(generator.uniform(-1, 1, shape).astype(np.float32), dtype)
    limits = np.iinfo(dtype.numpy)
    return generator.integers(limits.min, limits.max, shape, dtype.numpy, endpoint=True)


def _iota(shape: Tuple[int, ...], dtype: DType, launch: int) -> Array:
    """Whole numbers that floats hold exactly, so that sums do not depend on their order."""
    per_rank = int(np.prod(shape[1:], dtype=np.int64)) or 1
    place = np.arange(int(np.prod(shape, dtype=np.int64)))
    numbers = place % per_rank + 100003 * (place // per_rank + 1) + 1000003 * (launch - 1)
    if dtype.name == "bool":
        return np.asarray(numbers % 2 == 1).reshape(shape)
    if dtype.name[0] == "f" or dtype.name == "bf16":
        remainder = {4: 1021, 2: 31, 1: 7}[dtype.size]
        return to_dtype((numbers % remainder).astype(np.float32), dtype).reshape(shape)
    return numbers.astype(dtype.numpy).reshape(shape)


def to_dtype(values: np.ndarray[Any, np.dtype[np.float32]], dtype: DType) -> Array:
    """Numbers as elements of a float type, also where numpy has no such type."""
    if dtype.numpy.name == dtype.numpy_name:
        return values.astype(dtype.numpy)
    if dtype.name != "bf16":
        raise InvalidArgument(f"values of {dtype} by rule need the package ml_dtypes; or pass an array of bits as init")
    bits = values.view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + (bits >> np.uint64(16) & np.uint64(1))) >> np.uint64(16)
    return rounded.astype(np.uint16)


def to_numbers(array: Array, dtype: DType) -> Array:
    """Elements as numbers that numpy computes with."""
    if dtype.name == "bf16" and array.dtype == np.uint16:
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32) if dtype.numpy_name.startswith(("bfloat", "float8")) and array.dtype.kind not in "u" else array
