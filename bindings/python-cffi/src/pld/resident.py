"""Memory that lives with the ranks."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import numpy as np

from pld._native import ffi, lib
from pld.dtypes import DType, of_numpy
from pld.errors import InvalidArgument, succeed


class Resident:
    """Memory that lives with the ranks and that launches use as it is, without staging: weights, caches. Made by
    `World.resident` or `World.resident_stacked`. Any number of threads may use it at once. It ends with its world."""

    def __init__(self, handle: Any, ranks: Tuple[int, ...], shape: Tuple[int, ...], dtype: DType) -> None:
        self._handle = ffi.gc(handle, lib.pld_resident_destroy)
        self.ranks = ranks
        """The ranks whose parts it has."""
        self.shape = shape
        """Extents of one rank's part."""
        self.dtype = dtype
        """Type of its elements."""

    @property
    def handle(self) -> Any:
        """The library's object."""
        return self._handle

    def copy_in(self, array: np.ndarray[Any, Any], rank: Optional[int] = None) -> None:
        """Fills `rank`'s part; without a rank all parts, from an array with a leading rank axis if there are several.
        Returns when it is done. Raises Busy while a launch, or a run that has not ended, uses it."""
        for one, part in self._parts(array, rank):
            data = np.ascontiguousarray(part)
            succeed(lib.pld_resident_copy_in(self._handle, one, _pointer(data), data.nbytes))

    def copy_out(self, out: Optional[np.ndarray[Any, Any]] = None, rank: Optional[int] = None) -> np.ndarray[Any, Any]:
        """`rank`'s part, or all of them behind a leading rank axis if there are several; in `out` if it is given, else
        in a new array. Otherwise as `copy_in`."""
        if out is None:
            stacked = rank is None and len(self.ranks) > 1
            out = np.empty((len(self.ranks), *self.shape) if stacked else self.shape, self.dtype.numpy)
        if not out.flags.c_contiguous or not out.flags.writeable:
            raise InvalidArgument("out is written as it lies in memory: it must be contiguous, and not read-only")
        for one, part in self._parts(out, rank):
            succeed(lib.pld_resident_copy_out(self._handle, one, _pointer(part), part.nbytes))
        return out

    def _parts(self, array: np.ndarray[Any, Any], rank: Optional[int]) -> "list[Tuple[int, np.ndarray[Any, Any]]]":
        stacked = rank is None and len(self.ranks) > 1
        shape = (len(self.ranks), *self.shape) if stacked else self.shape
        known = of_numpy(array.dtype)
        if array.shape != shape or known is not self.dtype and array.dtype != self.dtype.numpy:
            raise InvalidArgument(
                f"the resident has shape {list(shape)} and type {self.dtype.name}, the array {list(array.shape)} and "
                f"{array.dtype}"
            )
        if stacked:
            return list(zip(self.ranks, array))
        return [(self.ranks[0] if rank is None else rank, array)]

    def destroy(self) -> None:
        """Frees it now, and not when nobody refers to it any more. Runs under way keep its memory until they end."""
        ffi.release(self._handle)


def _pointer(array: np.ndarray[Any, Any]) -> Any:
    return ffi.cast("void *", array.__array_interface__["data"][0])
