"""Benchmarks: how long the ranks of a program take for their part of a launch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Mapping, Optional, Sequence, Tuple

import numpy as np

from pld.functions import TaskFunction
from pld.program import Program
from pld.testing.harness import Transport, initial, launched, start
from pld.testing.ranks import Setting
from pld.testing.specs import Spec, matched


@dataclass(frozen=True)
class Figures:
    """Figures of all rounds, in microseconds."""

    min: float
    median: float
    mean: float
    max: float

    @classmethod
    def of(cls, microseconds: Sequence[float]) -> "Figures":
        values = np.asarray(microseconds)
        return cls(float(values.min()), float(np.median(values)), float(values.mean()), float(values.max()))

    def __str__(self) -> str:
        return "".join(f"{value:12.2f}" for value in (self.min, self.median, self.mean, self.max))


@dataclass(frozen=True)
class Benchmark:
    """How long a program takes. A rank's time is that of its part of a launch, from when it comes to it."""

    title: str
    """Program, ranks, transport and rounds."""
    slowest: Figures
    """Of the rank that was the slowest in each round: the headline."""
    ranks: Tuple[Figures, ...]
    """Of each rank."""
    start_skew: Figures
    """From when the first rank came to a launch to when the last one did."""

    def __str__(self) -> str:
        head = f"{'us':<12}" + "".join(f"{name:>12}" for name in ("min", "median", "mean", "max"))
        lines = [("slowest rank", self.slowest)]
        lines += [(f"rank {rank}", figures) for rank, figures in enumerate(self.ranks)]
        lines.append(("start skew", self.start_skew))
        return "\n".join([self.title, head, *(f"{name:<12}{figures}" for name, figures in lines)])


def benchmark(
    program: Program,
    specs: Sequence[Spec],
    *,
    ranks: int = 2,
    transport: Transport = "threads",
    rounds: int = 100,
    warm_up: int = 10,
    persistent: bool = False,
    seed: int = 0,
    cores_per_rank: int = 1,
    timeout: float = 30.0,
    functions: Optional[Mapping[str, TaskFunction]] = None,
) -> Benchmark:
    """Launches a program `warm_up` times and then `rounds` times, each on fresh inputs, and returns the figures; `print`
    shows them as a table. Nothing is compared: that is what `run` is for."""
    pairs = matched(program.parameters(ranks), specs, ranks)
    world = {"timeout": timeout, "cores_per_rank": cores_per_rank}
    setting = Setting(ranks, world, {"persistent": persistent, "timed": True}, functions)
    durations: List[List[float]] = []
    skews: List[float] = []
    with start(transport, program, pairs, setting) as started:
        for launch in range(1, warm_up + rounds + 1):
            launched(started, initial(pairs, launch, seed))
            times = started.times()
            if launch > warm_up:
                durations.append([(time.end_ns - time.begin_ns) / 1e3 for time in times])
                skews.append((max(time.begin_ns for time in times) - min(time.begin_ns for time in times)) / 1e3)
    name = str(program).split("\n", 1)[0].split()[1]
    title = f"{name}: {ranks} ranks, {transport}, {rounds} rounds"
    per_rank = tuple(Figures.of(column) for column in zip(*durations))
    return Benchmark(title, Figures.of([max(row) for row in durations]), per_rank, Figures.of(skews))
