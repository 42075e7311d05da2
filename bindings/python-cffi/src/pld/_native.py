"""libpld.so and its declarations: the only module that knows where they are."""

from __future__ import annotations

import os
from typing import Any, Callable, List, Optional

from pld._declarations import ffi as _ffi

ffi: Any = _ffi
lib: Any = ffi.dlopen(os.path.join(os.path.dirname(__file__), "libpld.so"))

PACKAGE = os.path.dirname(__file__) + os.sep


def text_of(pointer: Any) -> str:
    """The string at a `const char *`."""
    return str(ffi.string(pointer).decode())


def last_error() -> str:
    """This thread's last message."""
    size = lib.pld_last_error(ffi.NULL, 0)
    buffer = ffi.new("char[]", size + 1)
    lib.pld_last_error(buffer, size + 1)
    return text_of(buffer)


def written(function: Callable[..., int], *args: Any) -> "tuple[int, str]":
    """The status of a function that writes text, and the text."""
    pieces: List[bytes] = []

    @ffi.callback("pld_write_fn")  # type: ignore[untyped-decorator, unused-ignore]
    def write(text: Any, size: int, _: Any) -> int:
        pieces.append(bytes(ffi.buffer(text, size)))
        return 0

    status = function(*args, write, ffi.NULL)
    return status, b"".join(pieces).decode()


def constant(enum: str, prefix: str, word: Optional[str]) -> int:
    """The value of an enum that a word stands for: `"ring"` is `PLD_COLLECTIVE_RING`."""
    values = ffi.typeof(enum).relements
    value = values.get(prefix + str(word).upper())
    if value is None:
        words = ", ".join(repr(name[len(prefix) :].lower()) for name in sorted(values, key=values.get))
        raise ValueError(f"{word!r} is none of {words}")
    return int(value)


def version() -> str:
    """The version of the library that runs, such as `0.1.0`."""
    return text_of(lib.pld_version_string())


def info() -> str:
    """What there is on this machine: version, CPU features, transports, and every PLD_ variable with its value, where it
    comes from, and what it means."""
    status, text = written(lib.pld_info)
    assert status == lib.PLD_OK, "the library tells what it is"
    return text
