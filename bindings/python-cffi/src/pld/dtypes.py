"""Element types."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Dict, Optional, Union

import numpy as np

from pld._native import ffi, lib


class DType:
    """An element type, such as `pld.f32`."""

    def __init__(self, name: str, numpy_name: str) -> None:
        self.name = name
        """As in program text."""
        self.numpy_name = numpy_name
        """What numpy calls it (ml_dtypes for bf16 and the f8 types)."""
        self.code: int = ffi.typeof("pld_dtype").relements[f"PLD_DTYPE_{name.upper()}"]
        self.size: int = lib.pld_dtype_size(self.code)
        """Bytes of one element."""
        BY_NUMPY[numpy_name] = BY_CODE[self.code] = self

    @property
    def numpy(self) -> np.dtype[Any]:
        """The type of a numpy array with such elements. Of bf16 and the f8 types that of the package ml_dtypes if it
        is installed, else unsigned integers of the same size."""
        if self.numpy_name not in _FOREIGN:
            return np.dtype(self.numpy_name)
        try:
            import ml_dtypes
        except ImportError:
            return np.dtype(f"uint{8 * self.size}")
        dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, self.numpy_name))
        return dtype

    def __repr__(self) -> str:
        return f"pld.{self._variable}"

    def __reduce__(self) -> str:
        return self._variable

    @property
    def _variable(self) -> str:
        return "bool_" if self.name == "bool" else self.name


_FOREIGN = ("bfloat16", "float8_e4m3fn", "float8_e5m2")

BY_NUMPY: Dict[str, DType] = {}
BY_CODE: Dict[int, DType] = {}

f32 = DType("f32", "float32")
f16 = DType("f16", "float16")
bf16 = DType("bf16", "bfloat16")
i8 = DType("i8", "int8")
u8 = DType("u8", "uint8")
i16 = DType("i16", "int16")
u16 = DType("u16", "uint16")
i32 = DType("i32", "int32")
u32 = DType("u32", "uint32")
i64 = DType("i64", "int64")
u64 = DType("u64", "uint64")
bool_ = DType("bool", "bool")
f8e4m3 = DType("f8e4m3", "float8_e4m3fn")
f8e5m2 = DType("f8e5m2", "float8_e5m2")


@lru_cache(maxsize=None)
def of_numpy(dtype: np.dtype[Any]) -> Optional[DType]:
    """The element type that arrays with this type of numpy have; None if there is none."""
    return BY_NUMPY.get(dtype.name) if dtype.isnative else None


def dtype_of(value: Union[DType, Any]) -> DType:
    """The element type that a `pld` or numpy type names."""
    if isinstance(value, DType):
        return value
    found = of_numpy(np.dtype(value))
    if found is None:
        raise TypeError(f"{value!r} is no element type: {', '.join(map(repr, BY_CODE.values()))}")
    return found
