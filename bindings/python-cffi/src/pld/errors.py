"""What goes wrong: one exception a status, with the message and all findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Sequence, Tuple, Type

from pld._native import ffi, last_error, lib, text_of


@dataclass(frozen=True)
class Diagnostic:
    """One finding about a program."""

    severity: str
    """`"error"` or `"warning"`."""
    code: str
    """Stable code of the rule, such as `PLD-V012`."""
    file: str
    """Source file: for traced programs that of the Python statement; empty if unknown."""
    line: int
    """Line in it, from 1; 0 if unknown."""
    column: int
    """Column, from 1; 0 if unknown (always, for traced programs)."""
    message: str
    """What is wrong, in one line with the numbers."""
    snippet: str
    """The operation as program text, or the line of the text; may be empty."""
    hint: str
    """What would make it right; may be empty."""
    text: str
    """All of it, laid out over several lines."""
    schedule: str
    """The schedule that shows it, for `replay` of `Program.check`; empty elsewhere."""

    def __str__(self) -> str:
        return self.text


class Error(Exception):
    """A call of the library failed. Sub-classes tell statuses apart; `except pld.Error` takes all."""

    status: str = ""
    """Name of the status, such as `PLD_ERR_TIMEOUT`."""

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic] = ()) -> None:
        super().__init__(message)
        self.message = message
        """What happened, with the numbers; of a program that is refused, all errors in it."""
        self.diagnostics: Tuple[Diagnostic, ...] = tuple(diagnostics)
        """Findings about the program, warnings too."""

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.message, self.diagnostics)


class InvalidArgument(Error, ValueError):
    """An argument is out of range, or of the wrong kind: the call is wrong."""


class InvalidState(Error):
    """The call is not allowed in the object's present state."""


class Busy(Error):
    """The object is in use by another thread."""


class VersionError(Error):
    """The library is another one than the package was built with."""


class Forked(Error):
    """The call is made in a forked child, on a world of its parent."""


class ParseError(Error):
    """The text is not a program: `diagnostics` say where."""


class VerifyError(Error):
    """The program breaks a rule: `diagnostics` say which."""


class Unsupported(Error):
    """The target or transport cannot do what is asked."""


class CheckError(Error):
    """`Program.check` has found an error in the program: `diagnostics` say which."""


class NoMemory(Error, MemoryError):
    """Memory is exhausted."""


class NoSpace(Error):
    """A window does not fit: the message has needed and available bytes."""


class SystemCallError(Error):
    """A system call failed."""


class Unavailable(Error):
    """What the transport needs is not on this machine: a library, a compiler, a card."""


class DeviceError(Error):
    """A function of a card's runtime failed: the message has its name and its error."""


class Timeout(Error, TimeoutError):
    """A wait, a rendezvous or a launch did not end in time."""


class PeerLost(Error):
    """A rank died or left. The world has ended."""


class Aborted(Error):
    """Somebody called `World.abort`. The world has ended."""


class Mismatch(Error):
    """The ranks disagree about world, program or sizes, or call different collectives."""


class OutOfBounds(Error, IndexError):
    """An offset or a peer of a running program is outside, and nothing was written there; or what it requires does
    not hold."""


class ArithmeticFault(Error, ArithmeticError):
    """A running program divided by zero, or made a loop step that is not positive."""


class CallbackError(Error):
    """A function of the engine that the program calls failed. If it raised an exception in this process, that is the
    `__cause__`."""


class InternalError(Error):
    """A bug of the library. The object of the call may only be destroyed."""


_CLASSES: Dict[str, Type[Error]] = {
    "PLD_ERR_INVALID_ARGUMENT": InvalidArgument,
    "PLD_ERR_INVALID_STATE": InvalidState,
    "PLD_ERR_BUSY": Busy,
    "PLD_ERR_VERSION": VersionError,
    "PLD_ERR_FORKED": Forked,
    "PLD_ERR_PARSE": ParseError,
    "PLD_ERR_VERIFY": VerifyError,
    "PLD_ERR_UNSUPPORTED": Unsupported,
    "PLD_ERR_CHECK": CheckError,
    "PLD_ERR_NO_MEMORY": NoMemory,
    "PLD_ERR_NO_SPACE": NoSpace,
    "PLD_ERR_IO": SystemCallError,
    "PLD_ERR_UNAVAILABLE": Unavailable,
    "PLD_ERR_DEVICE": DeviceError,
    "PLD_ERR_TIMEOUT": Timeout,
    "PLD_ERR_PEER_LOST": PeerLost,
    "PLD_ERR_ABORTED": Aborted,
    "PLD_ERR_MISMATCH": Mismatch,
    "PLD_ERR_OUT_OF_BOUNDS": OutOfBounds,
    "PLD_ERR_ARITHMETIC": ArithmeticFault,
    "PLD_ERR_CALLBACK": CallbackError,
    "PLD_ERR_INTERNAL": InternalError,
}
for _name, _class in _CLASSES.items():
    _class.status = _name


class TraceError(TypeError):
    """A traced function does what cannot be traced, such as `if` on a value of the program. The message says what to
    write instead."""


class Findings:
    """Collects what a `pld_diagnostic_fn` gets."""

    def __init__(self) -> None:
        self.list: List[Diagnostic] = []
        self.callback: Any = ffi.callback("pld_diagnostic_fn", self._add)

    def _add(self, diagnostic: Any, _: Any) -> None:
        error = diagnostic.severity == lib.PLD_SEVERITY_ERROR
        strings = {name: text_of(getattr(diagnostic, name)) for name in _STRINGS}
        self.list.append(
            Diagnostic("error" if error else "warning", line=diagnostic.line, column=diagnostic.column, **strings)
        )


_STRINGS = ("code", "file", "message", "snippet", "hint", "text", "schedule")


def failure(status: int, diagnostics: Sequence[Diagnostic] = ()) -> Error:
    """The exception for a status that the library has just returned on this thread."""
    name = text_of(lib.pld_status_name(status))
    errors = [d.text.rstrip() for d in diagnostics if d.severity == "error"]
    message = "\n".join(errors) or last_error() or text_of(lib.pld_status_message(status))
    return _CLASSES.get(name, Error)(message, diagnostics)


def succeed(status: int, diagnostics: Sequence[Diagnostic] = ()) -> None:
    """Raises the exception for a status that is not `PLD_OK`."""
    if status:
        raise failure(status, diagnostics)
