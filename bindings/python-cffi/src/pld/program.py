"""Finished programs: read, shown, checked."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Dict, Literal, Mapping, Optional, Sequence, Tuple, Union

from pld._native import constant, ffi, lib, written
from pld.arguments import Arguments, LaunchArgument
from pld.errors import Diagnostic, Findings, failure, succeed
from pld.functions import Function, Functions, TaskFunction, explain
from pld.interrupt import interruptible
from pld.parameters import HostParameter, host_parameters

Memory = Literal["host", "npu"]
Explore = Literal["auto", "random", "pct", "exhaustive"]
Fill = Literal["iota", "random"]


@dataclass(frozen=True)
class CheckReport:
    """What `Program.check` explored, and what it found that is no error."""

    complete: bool
    """Whether every schedule was run, up to the order of independent steps."""
    schedules: int
    """Schedules that were run."""
    steps: int
    """Steps of all of them: pieces of a task between two signals."""
    warnings: Tuple[Diagnostic, ...]


class Program:
    """A finished program: of a traced host driver (`@pld.host`), or of text. It never changes, and any number of threads
    may use it."""

    def __init__(self, handle: Any, functions: Mapping[str, Function], diagnostics: Sequence[Diagnostic]) -> None:
        self.handle = ffi.gc(handle, lib.pld_program_destroy)
        self.functions: Dict[str, Function] = dict(functions)
        self.warnings: Tuple[Diagnostic, ...] = tuple(diagnostics)
        """What is legal, but likely not what is meant."""

    @classmethod
    def parse(cls, text: str, file: Optional[str] = None) -> "Program":
        """The program of a text. `file` is the name that findings show. Raises ParseError if the text is not a program,
        VerifyError if it breaks a rule; `diagnostics` have each finding with line and column."""
        data = text.encode()
        findings = Findings()
        program = ffi.new("pld_program_t **")
        name = ffi.NULL if file is None else ffi.new("char[]", file.encode())
        succeed(lib.pld_program_parse(data, len(data), name, findings.callback, ffi.NULL, program), findings.list)
        return cls(program[0], {}, findings.list)

    @classmethod
    def load(cls, path: Union[str, "os.PathLike[str]"]) -> "Program":
        """The program of a file of text, as `parse`."""
        with open(path, encoding="utf-8") as file:
            return cls.parse(file.read(), os.fspath(path))

    def __str__(self) -> str:
        """The program as text, which `parse` reads back."""
        status, text = written(lib.pld_program_print, self.handle)
        succeed(status)
        return text

    def graph(self, nranks: int = 0, format: Literal["text", "dot"] = "text") -> str:
        """The task graph of every entry: which task waits for which, and why, as far as that is known before the program
        runs. `nranks` is 0 if the number of ranks is open. `"dot"` is the input of Graphviz."""
        how = constant("pld_graph_format", "PLD_GRAPH_", format)
        status, text = written(lib.pld_program_graph, self.handle, nranks, how)
        succeed(status)
        return text

    def expand(
        self,
        nranks: int = 2,
        *,
        transport: Literal["default", "thread", "shm", "ucx", "auto"] = "default",
        crowded: bool = False,
        unchecked: bool = False,
        ranks_per_host: int = 0,
    ) -> "Program":
        """The program with its collectives written out in puts, gets, notifies and waits, as `World.compile` does for a
        world of this kind. `crowded` says that there are more ranks than CPUs; `ranks_per_host` is how many run on each
        host, side by side, or 0 if all run on one."""
        options = ffi.new("pld_expand_options_t *")
        lib.pld_expand_options_init(options, ffi.sizeof("pld_expand_options_t"))
        options.nranks, options.crowded, options.unchecked = nranks, crowded, unchecked
        options.ranks_per_host = ranks_per_host
        options.transport = constant("pld_transport", "PLD_TRANSPORT_", transport)
        program = ffi.new("pld_program_t **")
        succeed(lib.pld_program_expand(self.handle, options, program))
        return Program(program[0], self.functions, ())

    def parameters(self, nranks: int = 0) -> Tuple[HostParameter, ...]:
        """The parameters of the host driver: the arguments of a launch, in order. `nranks` is 0 if the number of ranks
        is open."""
        return host_parameters(self.handle, nranks)

    def check(
        self,
        nranks: int = 2,
        *,
        launches: int = 1,
        persistent: bool = False,
        memory: Memory = "host",
        explore: Explore = "auto",
        schedules: int = 0,
        time_limit: float = 0,
        seed: int = 0,
        replay: Optional[str] = None,
        args: Sequence[Optional[LaunchArgument]] = (),
        fill: Fill = "iota",
        functions: Optional[Mapping[str, TaskFunction]] = None,
    ) -> CheckReport:
        """Runs the program on private copies of its windows and tensors, in many orders of its ranks, tasks and remote
        writes, and raises CheckError if anything can go wrong: races, signals that are lost, stale or overwritten,
        deadlocks. `docs/checking.md` says what the options mean and what it can and cannot find.

        `args` are as for a launch in a world of threads, for all launches or a set for each; None for what is to be made
        up (by `fill` and `seed`), which is everything if there are none. `time_limit` is in seconds; 0 for none.
        `functions` are those of extern and host tasks; Python callables that the program was traced with are called
        too."""
        given = Functions(functions or {})
        arguments = Arguments(self.parameters(nranks), args, for_check=True)
        text = ffi.NULL if replay is None else ffi.new("char[]", replay.encode())
        options = ffi.new("pld_check_options_t *")
        lib.pld_check_options_init(options, ffi.sizeof("pld_check_options_t"))
        options.nranks, options.launches, options.persistent = nranks, launches, persistent
        options.memory = constant("pld_memory_model", "PLD_MEMORY_", memory)
        options.explore = constant("pld_explore", "PLD_EXPLORE_", explore)
        options.schedules, options.time_limit_us, options.seed = schedules, round(time_limit * 1e6), seed
        options.replay, options.args, options.nargs = text, arguments.list, len(arguments)
        options.fill = constant("pld_fill", "PLD_FILL_", fill)
        options.callbacks, options.ncallbacks = given.list, len(given)
        findings = Findings()
        report = ffi.new("pld_check_report_t *", {"struct_size": ffi.sizeof("pld_check_report_t")})

        def run() -> None:
            status = lib.pld_check(self.handle, options, findings.callback, ffi.NULL, report)
            if status:
                raise explain(failure(status, findings.list), [*self.functions.values(), *given.functions.values()])

        interruptible(run, keep=(arguments, text, given))
        return CheckReport(bool(report.complete), report.schedules, report.steps, tuple(findings.list))
