"""Ctrl-C while the library blocks.

Python runs signal handlers between its own instructions of the main thread, so that thread must not block in the library
for long. Other threads may: they block in the library itself, without Python's global lock.
"""

from __future__ import annotations

import threading
from typing import Any, Callable, List, Optional, TypeVar

T = TypeVar("T")


def on_main_thread() -> bool:
    """Whether signals are handled by this thread."""
    return threading.current_thread() is threading.main_thread()


def interruptible(call: Callable[[], T], keep: Any = None, cancel: Optional[Callable[[], None]] = None) -> T:
    """`call()`; on the main thread by another one, so that an exception of a signal handler ends the waiting at once.
    Then `cancel` makes the call end, and it is waited for; without one it is left to itself. `keep` lives as long as the
    call."""
    if not on_main_thread():
        return call()
    results: List[T] = []
    errors: List[BaseException] = []
    done = threading.Event()

    def run(_: Any) -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)
        finally:
            done.set()

    threading.Thread(target=run, args=(keep,), daemon=True).start()
    try:
        done.wait()
    except BaseException:
        if cancel is not None:
            cancel()
            done.wait()
        raise
    if errors:
        raise errors[0]
    return results[0]
