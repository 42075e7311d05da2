"""The ranks of a test: threads of this process, or processes."""

from __future__ import annotations

import mmap
import multiprocessing
import os
import tempfile
import warnings
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Type

import numpy as np

from pld.errors import Error
from pld.executable import Executable, LaunchTime
from pld.functions import TaskFunction
from pld.parameters import HostParameter
from pld.program import Program
from pld.resident import Resident
from pld.testing.specs import Array, Spec, TensorSpec
from pld.world import World

Pairs = Sequence[Tuple[HostParameter, Spec]]


class RankDied(RuntimeError):
    """The process of a rank ended in the middle of a test."""


@dataclass
class Setting:
    """How the ranks of a test run."""

    ranks: int
    world: Mapping[str, Any] = field(default_factory=dict)
    compile: Mapping[str, Any] = field(default_factory=dict)
    functions: Optional[Mapping[str, TaskFunction]] = None


class _Launcher:
    """Launches for the ranks that this process drives, on arrays of all ranks."""

    def __init__(self, world: World, program: Program, pairs: Pairs, setting: Setting, arrays: Mapping[str, Array]):
        self._world = world
        self._pairs = pairs
        self._arrays = arrays
        self._executable: Executable = world.compile(program, functions=setting.functions, **setting.compile)
        self._residents: Dict[str, Resident] = {}
        for parameter, spec in pairs:
            if isinstance(spec, TensorSpec) and spec.resident == "stacked":
                self._residents[parameter.name] = world.resident_stacked(spec.extents[1:], spec.dtype)

    def _mine(self, parameter: HostParameter) -> Array:
        whole = self._arrays[parameter.name]
        return whole if self._world.rank is None or not parameter.sliced else whole[self._world.rank]

    def launch(self, scalars: Mapping[str, Any]) -> None:
        args: List[Any] = []
        for parameter, spec in self._pairs:
            if not isinstance(spec, TensorSpec):
                args.append(scalars[parameter.name])
            elif parameter.name in self._residents:
                self._residents[parameter.name].copy_in(self._mine(parameter))
                args.append(self._residents[parameter.name])
            else:
                args.append(spec.argument(self._mine(parameter)))
        self._executable(*args)
        for parameter, _ in self._pairs:
            if parameter.name in self._residents and parameter.written:
                self._residents[parameter.name].copy_out(self._mine(parameter))

    def times(self, ranks: Sequence[int]) -> List[LaunchTime]:
        return [self._executable.time(rank) for rank in ranks]


class Ranks:
    """Launches a program on all ranks: `launch` takes what is in `arrays`, and leaves results there."""

    def __init__(self, pairs: Pairs) -> None:
        self.arrays: Dict[str, Array] = {}
        for parameter, spec in pairs:
            if isinstance(spec, TensorSpec):
                self.arrays[parameter.name] = _shared(spec)

    def launch(self, scalars: Mapping[str, Any]) -> None:
        """Launches once."""
        raise NotImplementedError

    def times(self) -> List[LaunchTime]:
        """When each rank had its part of the last launch, if it is timed."""
        raise NotImplementedError

    def close(self) -> None:
        """Ends the ranks."""

    def __enter__(self) -> "Ranks":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()


def _shared(spec: TensorSpec) -> Array:
    """An array that forked processes share."""
    count = int(np.prod(spec.extents, dtype=np.int64))
    memory = mmap.mmap(-1, max(1, count * spec.dtype.numpy.itemsize))
    return np.frombuffer(memory, np.uint8, count * spec.dtype.size).view(spec.dtype.numpy).reshape(spec.extents)


class ThreadRanks(Ranks):
    """Ranks that are threads of this process."""

    def __init__(self, program: Program, pairs: Pairs, setting: Setting) -> None:
        super().__init__(pairs)
        self._world = World(setting.ranks, **setting.world)
        self._launcher = _Launcher(self._world, program, pairs, setting, self.arrays)
        self._ranks = range(setting.ranks)

    def launch(self, scalars: Mapping[str, Any]) -> None:
        self._launcher.launch(scalars)

    def times(self) -> List[LaunchTime]:
        return self._launcher.times(self._ranks)

    def close(self) -> None:
        self._world.close()


class ProcessRanks(Ranks):
    """Ranks that are processes, forked from this one: they have the program, its functions and the arrays."""

    def __init__(self, program: Program, pairs: Pairs, setting: Setting) -> None:
        super().__init__(pairs)
        self._directory = tempfile.TemporaryDirectory(prefix="pld-")
        meeting = os.path.join(self._directory.name, "ranks")
        context = multiprocessing.get_context("fork")
        self._connections: List[Connection] = []
        self._processes: List[Any] = []
        for rank in range(setting.ranks):
            ours, theirs = context.Pipe()
            # Forks have all that is open here; a connection ends only if nobody else has its other end.
            inherited = [*self._connections, ours]
            arguments = (rank, f"file:{meeting}", theirs, inherited, program, pairs, setting, self.arrays)
            process = context.Process(target=_serve, args=arguments, daemon=True)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of forks in processes with threads
                process.start()
            theirs.close()
            self._connections.append(ours)
            self._processes.append(process)
        self._times: List[LaunchTime] = []
        try:
            self._answers()
        except BaseException:
            self.close()
            raise

    def launch(self, scalars: Mapping[str, Any]) -> None:
        for connection in self._connections:
            connection.send(dict(scalars))
        self._times = [time for times in self._answers() for time in times]

    def _answers(self) -> "list[list[LaunchTime]]":
        """What every rank answers. Of errors the one that others only follow from comes last."""
        errors: List[BaseException] = []
        answers: List[List[LaunchTime]] = []
        for rank, connection in enumerate(self._connections):
            try:
                answer = connection.recv()
            except (EOFError, OSError):
                self._processes[rank].join(10)
                answer = RankDied(f"the process of rank {rank} has ended, with exit code {self._processes[rank].exitcode}")
            if isinstance(answer, BaseException):
                errors.append(answer)
            else:
                answers.append(answer)
        errors.sort(key=lambda error: isinstance(error, Error))
        if errors:
            raise errors[0]
        return answers

    def times(self) -> List[LaunchTime]:
        return self._times

    def close(self) -> None:
        for connection in self._connections:
            connection.close()
        for process in self._processes:
            process.join(10)
            if process.is_alive():
                process.kill()
                process.join()
        self._directory.cleanup()


def _serve(
    rank: int,
    bootstrap: str,
    connection: Connection,
    inherited: Sequence[Connection],
    program: Program,
    pairs: Pairs,
    setting: Setting,
    arrays: Mapping[str, Array],
) -> None:
    """A rank: launches once for each message, and answers with times or an error."""
    for other in inherited:
        other.close()
    try:
        with World.join(setting.ranks, rank, bootstrap=bootstrap, **setting.world) as world:
            launcher = _Launcher(world, program, pairs, setting, arrays)
            timed = bool(setting.compile.get("timed"))
            connection.send([])
            while True:
                launcher.launch(connection.recv())
                connection.send(launcher.times([rank]) if timed else [])
    except EOFError:
        pass  # the test is over
    except BaseException as error:
        connection.send(error)
