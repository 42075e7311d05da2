"""Executables and launches."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generator, List, Optional, Sequence, Tuple, Type

from pld._native import ffi, lib
from pld.arguments import Arguments, LaunchArgument
from pld.errors import Timeout, failure, succeed
from pld.functions import Function, Functions, explain
from pld.interrupt import interruptible, on_main_thread
from pld.parameters import HostParameter

if TYPE_CHECKING:
    from pld.world import World

_SLICE_US = 50_000
"""How long the main thread waits in the library before Python looks for signals."""
_GRACE_US = 200_000
"""How long a launch that Ctrl-C meets may take to end by itself, before its world is aborted."""


@dataclass(frozen=True)
class LaunchTime:
    """When a rank began and ended its part of a launch, in nanoseconds of `time.monotonic_ns`."""

    begin_ns: int
    end_ns: int


class Executable:
    """A program compiled for a world. `executable(*args)` runs it once, with one argument for each parameter of the host
    driver: numpy arrays and arrays with `__dlpack__` are used as they lie in memory, without a copy.

    Any number of threads may use it, but a world is used by one call at a time: a launch, reset or compile of another
    thread meanwhile raises Busy. All calls release Python's global lock while they block."""

    def __init__(
        self,
        handle: Any,
        world: "World",
        parameters: Tuple[HostParameter, ...],
        functions: Sequence[Function],
        given: Functions,
    ) -> None:
        self._handle = ffi.gc(handle, lib.pld_executable_destroy)
        self.world = world
        """Its world."""
        self.parameters = parameters
        """What a launch is given."""
        self._functions: List[Function] = list(functions)
        self._given = given

    def __call__(self, *args: LaunchArgument) -> None:
        """The same as `launch`."""
        self.launch(*args)

    def launch(self, *args: LaunchArgument) -> None:
        """Runs the program once and blocks until this process's ranks are done, after all runs that were submitted
        before. In a world of threads tensors have the leading rank axis, or are lists of one array a rank; in a world of
        processes they are this rank's part. All ranks launch, submit and reset in the same order.

        Raises InvalidArgument naming the argument before anything runs. Errors that end the launch on every rank:
        Timeout, OutOfBounds, ArithmeticFault, Mismatch, CallbackError; and those that end the world too: PeerLost,
        Aborted. The contents of outputs are then undefined.

        Ctrl-C raises KeyboardInterrupt, once the launch has ended: it has 0.2 s to do so by itself, and then the world
        is aborted, on every rank."""
        arguments = Arguments(self.parameters, args)
        if not on_main_thread():
            self._succeed(lib.pld_launch(self._handle, arguments.list, len(arguments)))
            return
        run = self._submit(arguments)
        try:
            run.wait()
        except KeyboardInterrupt:
            if not run._ended_within(_GRACE_US):
                self.world.abort()
            raise
        finally:
            run.close()

    def launch_on(self, stream: int, *args: LaunchArgument) -> None:
        """As `launch`, but queues the launch behind what is on the engine's stream (the address of an `aclrtStream` of the
        rank's card: `torch.npu.current_stream().npu_stream`; 0 for the default stream) and returns. What comes on the
        stream later comes after the launch; until then the arguments' memory must stay. For a world joined with `cards`
        and a persistent executable. A launch that fails later tells the next call on the world."""
        arguments = Arguments(self.parameters, args)
        native = ffi.cast("void *", stream)
        self._succeed(lib.pld_launch_on(self._handle, arguments.list, len(arguments), native))

    def submit(self, *args: LaunchArgument) -> "Run":
        """As `launch`, but does not wait for the end. The arrays are used until the run is done, which holds references
        to them; they must not change meanwhile. Blocks only while the world's `max_runs` runs have not ended; then
        Ctrl-C is heard when one has."""
        return self._submit(Arguments(self.parameters, args))

    def _submit(self, arguments: Arguments) -> "Run":
        run = ffi.new("pld_run_t **")
        self._succeed(lib.pld_submit(self._handle, arguments.list, len(arguments), run))
        return Run(run[0], self, arguments)

    def _succeed(self, status: int) -> None:
        if status:
            raise explain(failure(status), self._functions)

    def reset(self) -> None:
        """Zeroes the windows of a persistent executable, or the whole pool that they lie in, as after `compile`. All
        ranks call it, between launches; blocks."""
        interruptible(lambda: succeed(lib.pld_executable_reset(self._handle)), cancel=self.world.abort)

    def time(self, rank: Optional[int] = None) -> LaunchTime:
        """When the last launch began and ended on a rank of this process (its own, in a world of processes). The
        executable is compiled with `timed`, and nothing is launched meanwhile."""
        found = ffi.new("pld_launch_time_t *")
        owner = max(0, self.world.rank) if rank is None else rank
        succeed(lib.pld_executable_time(self._handle, owner, found))
        return LaunchTime(found.begin_ns, found.end_ns)

    def close(self) -> None:
        """Frees it now, and not when nobody refers to it any more."""
        ffi.release(self._handle)

    def __enter__(self) -> "Executable":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()


class Run:
    """A launch under way. Any number of threads may use it; `await run` waits without blocking the event loop. Dropping
    the last reference waits for its end."""

    def __init__(self, handle: Any, executable: Executable, arguments: Arguments) -> None:
        self._handle = handle
        self._executable = executable
        self._arguments = arguments

    @property
    def done(self) -> bool:
        """Whether it is over, however it ended. Does not block."""
        return self._handle is None or bool(lib.pld_run_done(self._handle))

    def wait(self, timeout: Optional[float] = None) -> None:
        """Blocks until the run is done, and raises what went wrong in it: see `Executable.launch`. With a `timeout`, in
        seconds, no longer than that: then Timeout, and the run goes on (`done` is False). May be called again, and by
        several threads. Ctrl-C ends the waiting, not the run."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = -1 if deadline is None else max(0, round((deadline - time.monotonic()) * 1e6))
            part = min(left, _SLICE_US) if left >= 0 else _SLICE_US
            status = lib.pld_run_wait(self._handle, part if on_main_thread() else left)
            if lib.pld_run_done(self._handle):
                self._executable._succeed(lib.pld_run_wait(self._handle, -1))
                return
            if status != lib.PLD_ERR_TIMEOUT:
                self._executable._succeed(status)
            if deadline is not None and time.monotonic() >= deadline:
                raise Timeout(f"the run has not ended within {timeout} s")

    def _ended_within(self, microseconds: int) -> bool:
        """Whether it ends in this time, which is waited for without looking for signals."""
        lib.pld_run_wait(self._handle, microseconds)
        return self.done

    def __await__(self) -> Generator[Any, None, None]:
        return asyncio.get_running_loop().run_in_executor(None, self.wait).__await__()

    def close(self) -> None:
        """Waits until the run is done, and frees it; the outcome is not looked at."""
        handle, self._handle = self._handle, None
        lib.pld_run_destroy(ffi.NULL if handle is None else handle)

    def __del__(self) -> None:
        self.close()
