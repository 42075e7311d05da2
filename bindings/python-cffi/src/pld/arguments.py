"""Arguments of a launch: arrays of numpy and of other libraries as they lie in memory, residents, numbers."""

from __future__ import annotations

import ctypes
import operator
from typing import Any, List, Sequence

import numpy as np

from pld._native import ffi, lib
from pld.dtypes import DType, of_numpy
from pld.errors import InvalidArgument
from pld.parameters import HostParameter
from pld.resident import Resident

LaunchArgument = Any
"""A numpy array; an array of another library with `__dlpack__`, in CPU memory; a list of either, one a rank; what
`as_type` made; a DeviceArray; a Resident; an integer, float or bool."""

_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_CPU = 1  # kDLCPU


class DeviceArray:
    """A packed array in memory of a card, by its address: for a tensor `x` of torch_npu
    `DeviceArray(x.data_ptr(), pld.f32, x.shape)`. It does not keep the memory alive."""

    def __init__(self, address: int, dtype: DType, shape: Sequence[int]) -> None:
        self.address, self.dtype, self.shape = address, dtype, tuple(shape)


class Typed:
    """An array of unsigned integers that stand for elements of another type; see `as_type`."""

    def __init__(self, array: np.ndarray[Any, Any], dtype: DType) -> None:
        self.array, self.dtype = array, dtype


def as_type(array: np.ndarray[Any, Any], dtype: DType) -> Typed:
    """The elements' bits of a numpy array as another type of the same size, for a launch: bf16 that lies in an array of
    `uint16`, say. Arrays with the types of the package ml_dtypes do not need it."""
    if array.itemsize != dtype.size:
        raise InvalidArgument(f"{dtype} has {dtype.size} bytes, and elements of the array {array.itemsize}")
    return Typed(array, dtype)


class Arguments:
    """The `pld_arg_t` list of a launch, and what it points to. For a check there may be several sets of arguments, and
    None for what is to be made up."""

    def __init__(
        self, parameters: Sequence[HostParameter], args: Sequence[LaunchArgument], for_check: bool = False
    ) -> None:
        if not for_check and len(args) != len(parameters):
            names = ", ".join(parameter.name for parameter in parameters)
            raise InvalidArgument(f"{len(args)} arguments are given, the program takes {len(parameters)} ({names})")
        self._for_check = for_check
        self._kept: List[Any] = [args]
        self.list = ffi.new("pld_arg_t[]", len(args))
        for index, value in enumerate(args):
            self._fill(self.list[index], value, parameters[index % len(parameters)])

    def __len__(self) -> int:
        return len(self.list)

    def _fill(self, arg: Any, value: Any, parameter: HostParameter) -> None:
        if isinstance(value, Resident):
            arg.kind, arg.resident = lib.PLD_ARG_RESIDENT, value.handle
            self._kept.append(value)
        elif value is None and self._for_check:
            arg.kind = lib.PLD_ARG_GENERATED
        elif parameter.kind == "scalar":
            self._number(arg, value, parameter)
        elif isinstance(value, (list, tuple)):
            parts = ffi.new("pld_tensor_arg_t[]", len(value))
            self._kept.append(parts)
            for rank, part in enumerate(value):
                self._tensor(parts[rank], part, parameter, f" of rank {rank}")
            arg.kind, arg.parts, arg.nparts = lib.PLD_ARG_PARTS, parts, len(parts)
        else:
            arg.kind = lib.PLD_ARG_TENSOR
            self._tensor(arg.tensor, value, parameter, "")

    def _number(self, arg: Any, value: Any, parameter: HostParameter) -> None:
        try:
            if parameter.dtype.name == "f32":
                arg.kind, arg.real = lib.PLD_ARG_FLOAT, float(value)
            elif parameter.dtype.name == "bool":
                arg.kind, arg.integer = lib.PLD_ARG_BOOL, bool(value)
            else:
                arg.kind, arg.integer = lib.PLD_ARG_INT, operator.index(value)
        except TypeError:
            raise InvalidArgument(
                f"{parameter.name} is a scalar of type {parameter.dtype.name}, and not {_described(value)}"
            ) from None

    def _tensor(self, place: Any, value: Any, parameter: HostParameter, whose: str) -> None:
        name = parameter.name + whose
        if isinstance(value, DeviceArray):
            if not 0 < len(value.shape) <= lib.PLD_MAX_RANK:
                raise InvalidArgument(f"{name} has {len(value.shape)} dimensions: 1 to {lib.PLD_MAX_RANK} are possible")
            place.data = ffi.cast("void *", value.address)
            place.dtype, place.ndims = value.dtype.code, len(value.shape)
            place.shape[0 : len(value.shape)] = value.shape
            return
        array: Any = value.array if isinstance(value, Typed) else value
        if not isinstance(array, np.ndarray):
            self._dlpack(place, array, name)
            return
        dtype = value.dtype if isinstance(value, Typed) else of_numpy(array.dtype)
        if dtype is not parameter.dtype:
            hint = ""
            if dtype is not None and dtype.name.startswith("u") and dtype.size == parameter.dtype.size:
                hint = f"; pld.as_type(array, {parameter.dtype}) if its bits are meant"
            raise InvalidArgument(f"{name} has elements of type {parameter.dtype.name}, and not {array.dtype}{hint}")
        if not array.flags.c_contiguous:
            raise InvalidArgument(
                f"{name} is not contiguous (shape {array.shape}, strides {array.strides} bytes): a launch copies "
                "nothing, so pass np.ascontiguousarray(x), and for an output copy back"
            )
        if parameter.written and not array.flags.writeable:
            raise InvalidArgument(f"{name} is written by a launch ({parameter.direction}), and the array is read-only")
        if array.ndim == 0 or array.ndim > lib.PLD_MAX_RANK:
            raise InvalidArgument(f"{name} has {array.ndim} dimensions: 1 to {lib.PLD_MAX_RANK} are possible")
        place.data = ffi.cast("void *", array.__array_interface__["data"][0])
        place.dtype, place.ndims = dtype.code, array.ndim
        place.shape[0 : array.ndim] = array.shape

    def _dlpack(self, place: Any, value: Any, name: str) -> None:
        if not hasattr(value, "__dlpack__"):
            raise InvalidArgument(
                f"{name} is a tensor: pass an array of numpy or one with __dlpack__, and not {_described(value)}"
            )
        device = value.__dlpack_device__()
        if device[0] != _CPU:
            raise InvalidArgument(f"{name} lies on device {tuple(map(int, device))}, and not in CPU memory")
        capsule = value.__dlpack__()
        self._kept.append(capsule)
        place.dlpack = ffi.cast("struct DLManagedTensor *", _get_pointer(capsule, b"dltensor"))


def _described(value: Any) -> str:
    return f"a {type(value).__name__}"
