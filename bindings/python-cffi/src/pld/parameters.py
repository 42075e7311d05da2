"""What a launch of a program is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, List, Optional, Tuple

from pld._native import ffi, lib, text_of
from pld.dtypes import BY_CODE, DType
from pld.errors import succeed


@dataclass(frozen=True)
class HostParameter:
    """A parameter of a host driver: an argument of a launch."""

    name: str
    kind: str
    """`"tensor"` or `"scalar"`."""
    dtype: DType
    """The type of its elements, or of the scalar."""
    direction: str
    """`"in"`, `"out"` or `"inout"`."""
    sliced: bool
    """Whether every rank has a part of the tensor, along its first dimension."""
    shape: Tuple[Optional[int], ...]
    """Extents of the whole tensor; None for one that is not known before a launch, or without the number of ranks."""

    @property
    def written(self) -> bool:
        """Whether a launch writes it."""
        return self.direction != "in"


def host_parameters(program: Any, nranks: int) -> Tuple[HostParameter, ...]:
    """The parameters of a finished program's host driver; `nranks` is 0 if the number of ranks is open."""
    found: List[HostParameter] = []

    @ffi.callback("pld_param_fn")  # type: ignore[untyped-decorator, unused-ignore]
    def add(param: Any, _: Any) -> None:
        kind = "tensor" if param.kind == lib.PLD_OPERAND_TENSOR else "scalar"
        shape = tuple(None if param.shape[i] < 0 else param.shape[i] for i in range(param.ndims))
        direction = _DIRECTIONS.get(param.direction, "in")
        found.append(
            HostParameter(text_of(param.name), kind, BY_CODE[param.dtype], direction, bool(param.sliced), shape)
        )

    succeed(lib.pld_program_params(program, nranks, add, ffi.NULL))
    return tuple(found)


_DIRECTIONS = {lib.PLD_IN: "in", lib.PLD_OUT: "out", lib.PLD_INOUT: "inout"}
