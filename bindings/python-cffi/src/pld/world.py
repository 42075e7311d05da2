"""Worlds: the ranks that launch together."""

from __future__ import annotations

import os
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Callable, List, Literal, Mapping, Optional, Sequence, Type, Union

from pld._native import constant, ffi, lib, text_of
from pld.dtypes import DType, dtype_of
from pld.errors import Error, failure, succeed
from pld.executable import Executable
from pld.functions import Functions, TaskFunction
from pld.interrupt import interruptible
from pld.program import Program
from pld.resident import Resident

Path = Union[str, "os.PathLike[str]"]
Wait = Literal["auto", "spin", "yield", "sleep"]
JoinTransport = Literal["auto", "shm", "ucx"]
Log = Callable[[str, str], None]
"""Gets a level, `"error"` or `"info"`, and a message; by any thread that uses the world, also several at once."""
Exchange = Callable[[bytes], Sequence[bytes]]
"""The engine's own all-gather: from this rank's bytes to those of every rank, in rank order."""


@dataclass(frozen=True)
class Cards:
    """Ranks that are Ascend NPUs."""

    devices: Sequence[int] = ()
    """The ACL device of each rank that this process drives; none for devices with the numbers of the ranks."""
    comm: int = 0
    """Join only: the address of an `HcclComm` of the engine with the same ranks, which it destroys after the world."""


class World:
    """A world whose ranks are threads of this process, or cards that it drives: one launch runs all of them, and takes
    tensors with the leading rank axis. `World.join` makes one of processes instead. The environment is read here and
    never again.

    `timeout` is how long, in seconds, compiling, a wait or a launch may take. `wait` says how ranks wait for each other,
    `cores_per_rank` how many threads share a rank's tasks, `max_runs` how many submitted runs may not have ended.
    `cards` makes ranks Ascend NPUs, whose memory tensors are then. `chaos_seed` other than 0 shakes the timing. `trace`
    is the file that all launches are traced to. `log` gets messages up to `log_level`.

    Any number of threads may use a world at once. `with pld.World(2) as world:` leaves it at the end of the block."""

    def __init__(
        self,
        nranks: int,
        *,
        wait: Wait = "auto",
        timeout: float = 30.0,
        cores_per_rank: int = 1,
        max_runs: int = 0,
        chaos_seed: int = 0,
        trace: Optional[Path] = None,
        cards: Optional[Cards] = None,
        log: Optional[Log] = None,
        log_level: Literal["error", "info"] = "info",
    ) -> None:
        options = _Options(wait, timeout, cores_per_rank, max_runs, chaos_seed, trace, cards, log, log_level)
        options.struct.nranks = nranks
        self._open(lib.pld_world_create, options)

    @classmethod
    def join(
        cls,
        nranks: int = 0,
        rank: int = 0,
        *,
        transport: JoinTransport = "auto",
        bootstrap: str = "env:",
        exchange: Optional[Exchange] = None,
        peer_timeout: float = 5.0,
        wait: Wait = "auto",
        timeout: float = 30.0,
        cores_per_rank: int = 1,
        max_runs: int = 0,
        chaos_seed: int = 0,
        trace: Optional[Path] = None,
        cards: Optional[Cards] = None,
        log: Optional[Log] = None,
        log_level: Literal["error", "info"] = "info",
    ) -> "World":
        """Makes this process one rank of a world of processes. All ranks call it, and it blocks until they have met. A
        launch takes this rank's own part of each tensor.

        Without `nranks` the launcher's variables say which rank this is of how many: PLD_RANK and PLD_WORLD_SIZE, or
        those of torchrun, mpirun, srun. Ranks find each other by `bootstrap`: `"env:"` by the same variables;
        `"file:PATH"`, a path that is the same on all ranks and new for each job, for ranks of one host; or
        `"tcp:HOST:PORT"`, where rank 0 listens, with a secret that PLD_SECRET or PLD_SECRET_FILE gives to all; or by
        `exchange`.

        With `transport` `"auto"` ranks of one host map each other's memory, and others go over OpenUCX; `"shm"` is for
        ranks of one host, and with `"ucx"` all go over OpenUCX. A process of another host that is silent for
        `peer_timeout` seconds counts as lost. Other options as for `World`."""
        options = _Options(wait, timeout, cores_per_rank, max_runs, chaos_seed, trace, cards, log, log_level)
        options.struct.nranks, options.struct.rank = nranks, rank
        if cards is None:
            options.struct.transport = constant("pld_transport", "PLD_TRANSPORT_", transport)
        options.struct.peer_timeout_us = round(peer_timeout * 1e6)
        options.meet(bootstrap, exchange)
        world = cls.__new__(cls)
        interruptible(lambda: world._open(lib.pld_world_join, options))
        return world

    def _open(self, function: Any, options: "_Options") -> None:
        world = ffi.new("pld_world_t **")
        succeed(function(options.struct, world))
        self._options = options  # its callbacks live as long as the world
        self._handle = ffi.gc(world[0], lib.pld_world_destroy)

    @property
    def nranks(self) -> int:
        """The number of ranks."""
        return int(lib.pld_world_nranks(self._handle))

    @property
    def rank(self) -> int:
        """This process's rank; -1 if it drives all ranks."""
        return int(lib.pld_world_rank(self._handle))

    @property
    def error(self) -> Optional[Error]:
        """The error that ended the world, if one has: PeerLost, Aborted or InternalError. A world that has ended stays
        so. Does not block."""
        status = lib.pld_world_status(self._handle)
        return failure(status) if status else None

    def abort(self, code: int = 1) -> None:
        """Ends what all ranks are doing, and all they will do: every call on the world raises Aborted with `code` in its
        message, on every rank. Does not block; any thread may call it at any time."""
        succeed(lib.pld_world_abort(self._handle, code))

    def compile(
        self,
        program: Program,
        *,
        persistent: bool = False,
        unchecked: bool = False,
        timed: bool = False,
        pool: Optional[str] = None,
        pool_bytes: int = 0,
        functions: Optional[Mapping[str, TaskFunction]] = None,
    ) -> Executable:
        """Turns a program into machine code for this world, and reserves its windows, zeroed, on every rank. All ranks
        compile the same program with the same options, which is compared; blocks until all have.

        `persistent` windows keep their contents from launch to launch, and launches need no barrier; by default every
        launch sees zeroed windows. An `unchecked` executable does not check offsets, peers and divisors. A `timed` one
        notes when each rank begins and ends. Executables of one `pool` share persistent windows by name. `functions` are
        those of extern and host tasks, by name, in place of those that the program was traced with."""
        given = Functions(functions or {})
        name = ffi.NULL if pool is None else ffi.new("char[]", pool.encode())
        options = ffi.new("pld_compile_options_t *")
        lib.pld_compile_options_init(options, ffi.sizeof("pld_compile_options_t"))
        options.persistent, options.unchecked, options.timed = persistent, unchecked, timed
        options.callbacks, options.ncallbacks = given.list, len(given)
        options.pool, options.pool_bytes = name, pool_bytes
        executable = ffi.new("pld_executable_t **")
        interruptible(
            lambda: succeed(lib.pld_compile(program.handle, self._handle, options, executable)),
            keep=(given, name),
            cancel=self.abort,
        )
        functions_ = [*program.functions.values(), *given.functions.values()]
        return Executable(executable[0], self, program.parameters(self.nranks), functions_, given)

    def resident(self, shape: Sequence[int], dtype: DType, rank: Optional[int] = None) -> Resident:
        """A zeroed tensor of one rank that this process drives (its own, in a world of processes). As argument of a
        launch it stands where all that this process passes is one tensor: for a parameter that is not sliced by rank,
        and in a world of processes for any."""
        owner = max(0, self.rank) if rank is None else rank
        resident = ffi.new("pld_resident_t **")
        kind = dtype_of(dtype)
        succeed(lib.pld_resident_create(self._handle, owner, kind.code, list(shape), len(shape), resident))
        return Resident(resident[0], (owner,), tuple(shape), kind)

    def resident_stacked(self, shape: Sequence[int], dtype: DType) -> Resident:
        """A zeroed tensor of this shape for each rank that this process drives. As argument of a launch it stands for a
        parameter that is sliced by rank: shard `r` goes to rank `r`."""
        resident = ffi.new("pld_resident_t **")
        kind = dtype_of(dtype)
        succeed(lib.pld_resident_create_stacked(self._handle, kind.code, list(shape), len(shape), resident))
        ranks = tuple(range(self.nranks)) if self.rank < 0 else (self.rank,)
        return Resident(resident[0], ranks, tuple(shape), kind)

    def close(self) -> None:
        """Leaves the world and frees it. A rank that leaves after its part of every launch disturbs nobody; others that
        still need it get PeerLost. Never blocks for long."""
        ffi.release(self._handle)

    def __enter__(self) -> "World":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()


class _Options:
    """Options of a world, and what they point to."""

    def __init__(
        self,
        wait: Wait,
        timeout: float,
        cores_per_rank: int,
        max_runs: int,
        chaos_seed: int,
        trace: Optional[Path],
        cards: Optional[Cards],
        log: Optional[Log],
        log_level: str,
    ) -> None:
        self.struct = ffi.new("pld_world_options_t *")
        lib.pld_world_options_init(self.struct, ffi.sizeof("pld_world_options_t"))
        self.struct.wait = constant("pld_wait_policy", "PLD_WAIT_POLICY_", wait)
        self.struct.timeout_us = round(timeout * 1e6)
        self.struct.cores_per_rank, self.struct.max_runs = cores_per_rank, max_runs
        self.struct.chaos_seed = chaos_seed
        self._kept: List[Any] = []
        if trace is not None:
            self.struct.trace = self._text(os.fspath(trace))
        if cards is not None:
            self.struct.transport = lib.PLD_TRANSPORT_HCCL
            self._kept.append(ffi.new("int32_t[]", list(cards.devices)))
            self.struct.devices, self.struct.ndevices = self._kept[-1], len(cards.devices)
            self.struct.comm = ffi.cast("void *", cards.comm)
        if log is not None:
            self.struct.log_level = constant("pld_log_level", "PLD_LOG_", log_level)
            self.struct.log = self._callback("pld_log_fn", _logger(log))

    def meet(self, bootstrap: str, exchange: Optional[Exchange]) -> None:
        if exchange is not None:
            self.struct.exchange = self._callback("pld_exchange_fn", _exchanger(exchange), error=1)
            return
        self.struct.bootstrap = self._text(bootstrap)

    def _text(self, text: str) -> Any:
        self._kept.append(ffi.new("char[]", text.encode()))
        return self._kept[-1]

    def _callback(self, kind: str, function: Any, **options: Any) -> Any:
        self._kept.append(ffi.callback(kind, function, **options))
        return self._kept[-1]


def _logger(log: Log) -> Callable[[int, Any, Any], None]:
    def call(level: int, message: Any, _: Any) -> None:
        log("error" if level == lib.PLD_LOG_ERROR else "info", text_of(message))

    return call


def _exchanger(exchange: Exchange) -> Callable[[Any, Any, int, Any], int]:
    def call(mine: Any, all_: Any, size: int, _: Any) -> int:
        gathered = b"".join(exchange(bytes(ffi.buffer(mine, size))))
        ffi.memmove(all_, gathered, len(gathered))
        return 0

    return call
