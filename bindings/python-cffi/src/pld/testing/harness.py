"""Golden tests."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Dict, List, Literal, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from pld.functions import TaskFunction
from pld.program import CheckReport, Program
from pld.testing.compare import Comparator, Comparison, allclose, compare, exact
from pld.testing.ranks import Pairs, ProcessRanks, Ranks, Setting, ThreadRanks
from pld.testing.specs import Array, ScalarSpec, Spec, Tensors, TensorSpec, matched, to_numbers

Golden = Callable[[Tensors], None]
"""The reference: gets all tensors by name as they are before the launch, and scalars, and writes the outputs. It sees
all ranks at once."""
Transport = Literal["threads", "processes"]
Directory = Union[str, "os.PathLike[str]"]


class MismatchError(AssertionError):
    """Outputs differ from the golden ones. `comparisons` has all outputs of the launch, the message a report."""

    def __init__(self, comparisons: Sequence[Comparison]) -> None:
        self.comparisons = tuple(comparisons)
        super().__init__("\n".join(c.report for c in comparisons if not c.passed))


@dataclass
class Outcome:
    """What a golden test that passed has done."""

    check: Optional[CheckReport]
    """What the checker explored, if it ran."""
    comparisons: List[Comparison] = field(default_factory=list)
    """All outputs of all launches."""
    tensors: Tensors = field(default_factory=dict)
    """All tensors, and scalars, as they were after the last launch."""

    def __str__(self) -> str:
        elements = sum(c.elements for c in self.comparisons)
        launches = len({c.launch for c in self.comparisons})
        schedules = f", {self.check.schedules} schedules checked" if self.check else ""
        return f"passed: {elements} elements of {launches} launches{schedules}"


def run(
    program: Program,
    specs: Sequence[Spec],
    golden: Optional[Golden] = None,
    *,
    ranks: int = 2,
    transport: Transport = "threads",
    launches: int = 1,
    persistent: bool = False,
    rtol: float = 1e-5,
    atol: float = 1e-6,
    comparators: Optional[Mapping[str, Comparator]] = None,
    check: Union[bool, Mapping[str, Any]] = True,
    seed: int = 0,
    chaos_seed: int = 0,
    cores_per_rank: int = 1,
    timeout: float = 30.0,
    functions: Optional[Mapping[str, TaskFunction]] = None,
    save: Optional[Directory] = None,
    replay: Optional[Directory] = None,
) -> Outcome:
    """Checks a program, launches it, and compares what it writes with a reference. Raises CheckError, what a launch
    raises, or MismatchError with a report of the worst elements; so it is a test by itself.

    `specs` has one spec for each parameter of the host driver, in any order. Every launch is given fresh inputs, by the
    specs and `seed`, and `golden` says what its outputs should be: floats within `rtol` and `atol`, all else exactly;
    or by a comparator for each name in `comparators`.

    `check` runs `Program.check` first, on the same inputs: False for not at all, or a dict of its options; by default it
    ends after 10 s. `transport` says whether ranks are threads of this process, or processes that are forked from it.
    `chaos_seed` shakes the timing. `functions` are those of extern and host tasks that the program was not traced with.

    `save` writes the inputs and golden outputs of each launch into a directory, `replay` takes them from there instead of
    specs and `golden`: for references that are slow, or not at hand."""
    pairs = matched(program.parameters(ranks), specs, ranks)
    if golden is None and replay is None:
        raise TypeError("golden is needed: a function that writes the outputs, or replay= of saved ones")
    cases = [_Case.make(pairs, launch, seed, golden, replay) for launch in range(1, launches + 1)]
    for case in cases if save is not None else ():
        case.save(Path(save or ""))
    outcome = Outcome(_checked(program, pairs, cases, ranks, persistent, functions, seed, check))
    world = {"timeout": timeout, "chaos_seed": chaos_seed, "cores_per_rank": cores_per_rank}
    setting = Setting(ranks, world, {"persistent": persistent}, functions)
    with start(transport, program, pairs, setting) as started:
        for case in cases:
            launched(started, case.inputs)
            outcome.comparisons += _compared(pairs, case, started.arrays, comparators or {}, rtol, atol)
            outcome.tensors = {**case.inputs, **{name: array.copy() for name, array in started.arrays.items()}}
    return outcome


def start(transport: Transport, program: Program, pairs: Pairs, setting: Setting) -> Ranks:
    """Starts the ranks of a test."""
    kinds = {"threads": ThreadRanks, "processes": ProcessRanks}
    if transport not in kinds:
        raise ValueError(f"{transport!r} is none of {', '.join(map(repr, kinds))}")
    return kinds[transport](program, pairs, setting)


def initial(pairs: Pairs, launch: int, seed: int) -> Tensors:
    """What a launch is given, by the specs."""
    tensors: Tensors = {}
    for parameter, spec in pairs:
        if isinstance(spec, TensorSpec):
            tensors[spec.name] = spec.initial(parameter, launch, seed)
        else:
            tensors[spec.name] = spec.initial(launch)
    return tensors


def launched(ranks: Ranks, inputs: Tensors) -> None:
    """Launches once on these inputs."""
    for name, array in ranks.arrays.items():
        array[...] = inputs[name]
    ranks.launch({name: value for name, value in inputs.items() if name not in ranks.arrays})


@dataclass(frozen=True)
class _Case:
    """A launch: what it is given, and what it should write."""

    launch: int
    inputs: Tensors
    expected: Dict[str, Array]

    @classmethod
    def make(
        cls, pairs: Pairs, launch: int, seed: int, golden: Optional[Golden], replay: Optional[Directory]
    ) -> "_Case":
        outputs = [spec.name for parameter, spec in pairs if parameter.written]
        if replay is not None:
            return cls._load(pairs, launch, Path(replay), outputs)
        assert golden is not None
        inputs = initial(pairs, launch, seed)
        tensors = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in inputs.items()}
        golden(tensors)
        expected = {}
        for name in outputs:
            value, before = np.asarray(tensors[name]), inputs[name]
            if value.shape != before.shape:
                raise ValueError(f"golden {name} has shape {list(value.shape)}, and its spec {list(before.shape)}")
            expected[name] = value
        return cls(launch, inputs, expected)

    @staticmethod
    def _file(directory: Path, launch: int) -> Path:
        return directory / f"launch_{launch}.npz"

    def save(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        arrays = {f"in.{name}": _bits(np.asarray(value)) for name, value in self.inputs.items()}
        arrays.update({f"golden.{name}": _bits(value) for name, value in self.expected.items()})
        np.savez_compressed(self._file(directory, self.launch), allow_pickle=False, **arrays)

    @classmethod
    def _load(cls, pairs: Pairs, launch: int, directory: Path, outputs: Sequence[str]) -> "_Case":
        with np.load(cls._file(directory, launch)) as saved:
            inputs: Tensors = {}
            expected = {}
            for _, spec in pairs:
                value = saved[f"in.{spec.name}"]
                if isinstance(spec, ScalarSpec):
                    inputs[spec.name] = value.item()
                    continue
                if value.shape != spec.extents:
                    raise ValueError(f"saved {spec.name} has shape {list(value.shape)}, its spec {list(spec.extents)}")
                inputs[spec.name] = value.view(spec.dtype.numpy)
                if spec.name in outputs:
                    golden = saved[f"golden.{spec.name}"]
                    foreign = golden.dtype.kind == "u" and spec.dtype.numpy.kind not in "u"
                    expected[spec.name] = golden.view(spec.dtype.numpy) if foreign else golden
        return cls(launch, inputs, expected)


def _bits(array: Array) -> Array:
    """Elements as a file of numpy holds them: types of ml_dtypes are none that it knows."""
    return array if array.dtype.isbuiltin == 1 else array.view(f"uint{8 * array.itemsize}")


def _checked(
    program: Program,
    pairs: Pairs,
    cases: Sequence[_Case],
    ranks: int,
    persistent: bool,
    functions: Optional[Mapping[str, TaskFunction]],
    seed: int,
    check: Union[bool, Mapping[str, Any]],
) -> Optional[CheckReport]:
    if check is False:
        return None
    options: Dict[str, Any] = {"time_limit": 10.0, "seed": seed, **({} if check is True else check)}
    sets = cases[: options.pop("launches", len(cases))]
    args = []
    for case in sets:
        for _, spec in pairs:
            value = case.inputs[spec.name]
            args.append(spec.argument(value) if isinstance(spec, TensorSpec) else value)
    return program.check(
        ranks, launches=len(sets), persistent=persistent, args=args, functions=functions, **options
    )


def _compared(
    pairs: Pairs,
    case: _Case,
    arrays: Mapping[str, Array],
    comparators: Mapping[str, Comparator],
    rtol: float,
    atol: float,
) -> List[Comparison]:
    comparisons = []
    for parameter, spec in pairs:
        if spec.name not in case.expected:
            continue
        numbers: Tuple[Array, Array] = (
            to_numbers(arrays[spec.name], spec.dtype),
            to_numbers(case.expected[spec.name], spec.dtype),
        )
        default = allclose(rtol, atol) if numbers[0].dtype.kind == "f" else exact
        right = comparators.get(spec.name, default)
        comparisons.append(compare(spec.name, *numbers, right, sliced=parameter.sliced, launch=case.launch))
    if not all(c.passed for c in comparisons):
        raise MismatchError(comparisons)
    return comparisons
