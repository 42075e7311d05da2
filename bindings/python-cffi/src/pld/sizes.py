"""Sizes that are known before a program runs, or when it is launched; they belong to no program."""

from __future__ import annotations

import itertools
import operator
from typing import Any, Iterator, Optional, Tuple, Union

from pld.errors import TraceError


_serials = itertools.count()


class Size:
    """The number of ranks, a named size, or what is computed of them; see `WORLD`, `dim` and `const`.

    Stands in shapes, and as a value of type `i64` in traced functions. Arithmetic with integers and other sizes gives
    a size, with values of a program a value. `/` and `//` truncate toward zero.
    """

    def __init__(self, op: str, operands: Tuple[Any, ...] = (), value: Optional[int] = None) -> None:
        self.op = op
        self.operands = operands
        self.value = value
        self.serial = next(_serials)

    def named(self) -> "Iterator[Size]":
        """The named sizes that it is made of."""
        if self.op in ("dim", "const"):
            yield self
        for operand in self.operands:
            if isinstance(operand, Size):
                yield from operand.named()

    def _with(self, op: str, a: Any, b: Any) -> Any:
        if isinstance(a, (Size, int)) and isinstance(b, (Size, int)):
            return Size(op, (a, b))
        return NotImplemented

    def __add__(self, other: Any) -> Any:
        return self._with("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return self._with("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return self._with("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._with("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return self._with("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self._with("mul", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return self._with("div", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._with("div", other, self)

    __truediv__ = __floordiv__
    __rtruediv__ = __rfloordiv__

    def __mod__(self, other: Any) -> Any:
        return self._with("mod", self, other)

    def __rmod__(self, other: Any) -> Any:
        return self._with("mod", other, self)

    def __neg__(self) -> "Size":
        return Size("sub", (0, self))

    def _compared(self, op: str, other: Any) -> Any:
        known = other.value if isinstance(other, Size) else other
        if self.value is not None and isinstance(known, int):
            return getattr(operator, op)(self.value, known)
        from pld import values  # which needs this module

        return values.arithmetic(op, self, other)

    def __eq__(self, other: Any) -> Any:
        return self._compared("eq", other)

    def __ne__(self, other: Any) -> Any:
        return self._compared("ne", other)

    def __lt__(self, other: Any) -> Any:
        return self._compared("lt", other)

    def __le__(self, other: Any) -> Any:
        return self._compared("le", other)

    def __gt__(self, other: Any) -> Any:
        return self._compared("gt", other)

    def __ge__(self, other: Any) -> Any:
        return self._compared("ge", other)

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        return bool(self.__index__())

    def __index__(self) -> int:
        if self.value is None:
            raise TraceError(
                f"{self} is not known while a program is traced: it can stand in shapes and in arithmetic; for a "
                "loop of the program write pld.range(...)"
            )
        return self.value

    __int__ = __index__

    def __repr__(self) -> str:
        if self.op in _SIGNS:
            return f"({self.operands[0]} {_SIGNS[self.op]} {self.operands[1]})"
        return str(self.operands[0]) if self.operands else self.op


_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%"}

WORLD = Size("world")
"""The number of ranks of the world."""


def world_size() -> Size:
    """The number of ranks of the world: `WORLD`. Where windows are shared by some of the ranks only, `nranks` counts
    those."""
    return WORLD


def dim(name: str) -> Size:
    """A size that is bound at each launch, from the shapes of the arguments. Not for tiles, local arrays and windows,
    whose sizes must be known when the program is compiled."""
    return Size("dim", (name,))


def const(name: str, value: Union[int, Size]) -> Size:
    """A size under a name, which the program's text shows: `D = pld.const("D", 4096)`. Usable as an integer of Python
    if `value` is one."""
    return Size("const", (name, value), value if isinstance(value, int) else value.value)
