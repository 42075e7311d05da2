"""The program that is being traced on this thread: where its calls come from, what is open in it, what it names."""

from __future__ import annotations

import dis
import sys
import threading
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

from pld._native import PACKAGE, ffi, lib
from pld.errors import Findings, TraceError, succeed
from pld.sizes import Size

Place = Tuple[str, int]


def user_frame() -> FrameType:
    """The innermost frame outside of this package: the statement that a call comes from."""
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    assert frame is not None, "the package does not call itself"
    return frame


@lru_cache(maxsize=None)
def _assigned(code: CodeType) -> Dict[int, str]:
    """For each instruction of `code` whose result goes to a variable at once, the variable."""
    names: Dict[int, str] = {}
    before = 0
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("EXTENDED_ARG", "CACHE", "NOP"):
            continue
        if instruction.opname.startswith(("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF")):
            name = instruction.argval
            if isinstance(name, tuple):  # one instruction that stores, and does something else behind it
                name = name[0]
            # A frame may stand anywhere in an instruction and its caches.
            names.update((offset, name) for offset in range(before, instruction.offset))
        before = instruction.offset
    return names


@lru_cache(maxsize=None)
def _is_free(name: str) -> bool:
    """Whether a value of a program may have this name: the library knows the words of its language."""
    text = f"program names\nconst {name} = 1\nhost () {{}}\n".encode()
    program = ffi.new("pld_program_t **")
    status = lib.pld_program_parse(text, len(text), ffi.NULL, ffi.NULL, ffi.NULL, program)
    lib.pld_program_destroy(program[0])
    return bool(status == lib.PLD_OK)


def variable_name() -> Optional[str]:
    """The Python variable that gets the result of the call under way, as a name of the program."""
    frame = user_frame()
    name = _assigned(frame.f_code).get(frame.f_lasti)
    if name is None or not name.isascii():
        return None
    return name if _is_free(name) else name + "_"


class Scope:
    """A block that is open: a task, a loop, an if."""

    def __init__(self, what: str, place: Place) -> None:
        self.what = what
        self.place = place


class Builder:
    """A program that is being traced."""

    def __init__(self, name: str) -> None:
        self.handle = lib.pld_program_create(name.encode())
        if self.handle == ffi.NULL:
            raise MemoryError("a program")
        self.scopes: List[Scope] = []
        self.ended_if: Optional[Scope] = None
        self.place: Optional[Place] = None
        self.in_host = False
        self.entries: Dict[Any, Any] = {}
        self.functions: Dict[str, Any] = {}
        self._dims: Dict[Tuple[str, str], int] = {}

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Calls a function of the builder for the user's present statement."""
        if self.ended_if is not None:
            self.ended_if = None
            lib.pld_if_end(self.handle)
        file, line = self.here()
        return function(lib.pld_loc(self.handle, file.encode(), line), *args)

    def here(self) -> Place:
        """The user's present statement."""
        if self.place is not None:
            return self.place
        frame = user_frame()
        return frame.f_code.co_filename, frame.f_lineno

    def open(self, scope: Scope) -> None:
        self.scopes.append(scope)

    def close(self, scope: Scope) -> None:
        """Ends the innermost block, which must be this one."""
        top = self.scopes.pop()
        if top is not scope:
            raise TraceError(
                f"{top.place[0]}:{top.place[1]}: this {top.what} was left before its end. A traced loop runs its "
                "body once, so `break`, `continue` and `return` have no meaning in it: write `with pld.if_(...)`"
            )

    def close_all(self) -> None:
        """Everything that was opened has ended."""
        if self.scopes:
            self.close(Scope("", ("", 0)))

    @property
    def loops(self) -> int:
        """How many loops are open."""
        return sum(scope.what == "loop" for scope in self.scopes)

    def size(self, size: Size) -> Any:
        """The value of a size."""
        if size.op == "world":
            return self.call(lib.pld_world_size)
        if size.op in ("dim", "const"):
            return self.call(lib.pld_dim_value, self.extent(size))
        a, b = (self.size(x) if isinstance(x, Size) else integer(x) for x in size.operands)
        return self.call(getattr(lib, f"pld_{size.op}"), a, b)

    def extent(self, size: Union[int, Size]) -> int:
        """A size as a dimension of a shape."""
        if not isinstance(size, Size):
            return size
        if size.op == "world":
            return int(lib.PLD_WORLD)
        if size.op not in ("dim", "const"):
            return int(self.call(lib.pld_dim_of, self.size(size)))
        key = (size.op, size.operands[0])
        if key not in self._dims:
            name = size.operands[0].encode()
            if size.op == "dim":
                self._dims[key] = self.call(lib.pld_dim, name)
            else:
                self._dims[key] = self.call(lib.pld_dim_const, name, self.extent(size.operands[1]))
        return self._dims[key]

    def finish(self) -> Findings:
        """Ends the building. Raises VerifyError with all findings if one is an error."""
        findings = Findings()
        status = lib.pld_program_finish(self.handle, findings.callback, ffi.NULL)
        succeed(status, findings.list)
        return findings

    def destroy(self) -> None:
        lib.pld_program_destroy(self.handle)


def integer(value: int) -> Any:
    """An integer as a scalar: `PLD_INT`."""
    return ffi.new("pld_scalar_t *", {"is_int": 1, "imm": value})[0]


class _Threads(threading.local):
    builder: Optional[Builder] = None


_threads = _Threads()


def builder() -> Builder:
    """The program that this thread traces."""
    if _threads.builder is None:
        raise TraceError("this belongs in a traced function: one that stands behind @pld.entry or @pld.host")
    return _threads.builder


class Tracing:
    """Makes a builder the one of this thread: `with Tracing(builder): ...`."""

    def __init__(self, traced: Builder) -> None:
        self.builder = traced

    def __enter__(self) -> Builder:
        if _threads.builder is not None:
            raise TraceError("a host driver is already being traced: define programs outside of traced functions")
        _threads.builder = self.builder
        return self.builder

    def __exit__(self, *_: object) -> None:
        _threads.builder = None
