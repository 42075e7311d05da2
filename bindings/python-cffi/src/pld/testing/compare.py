"""Which elements differ from what they should be, and how that is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, List, Tuple

import numpy as np

Array = np.ndarray[Any, Any]
Comparator = Callable[[Array, Array], Array]
"""Gets an output, as numbers, and what it should be; returns an array of bools of the same shape: where it is right."""


def allclose(rtol: float, atol: float) -> Comparator:
    """Right where `|actual - expected| <= atol + rtol * |expected|`, and for NaN where both are NaN."""

    def right(actual: Array, expected: Array) -> Array:
        with np.errstate(invalid="ignore", over="ignore"):
            return np.isclose(actual.astype(np.float64), expected.astype(np.float64), rtol, atol, equal_nan=True)

    return right


def exact(actual: Array, expected: Array) -> Array:
    """Right where both are equal; NaN is equal to NaN."""
    both_nan = (actual != actual) & (expected != expected)
    result: Array = (actual == expected) | both_nan
    return result


@dataclass(frozen=True)
class Comparison:
    """An output beside what it should be."""

    name: str
    """The parameter's name."""
    launch: int
    """The launch, from 1."""
    elements: int
    """Number of elements."""
    wrong: Tuple[int, ...]
    """Of each rank, how many are wrong; of a tensor that is not sliced by rank all together."""
    report: str
    """The worst ones, a line each: rank, index, expected and actual value, error; empty if none is wrong."""

    @property
    def passed(self) -> bool:
        """Whether all are right."""
        return sum(self.wrong) == 0


def compare(
    name: str,
    actual: Array,
    expected: Array,
    right: Comparator,
    *,
    sliced: bool = True,
    launch: int = 1,
    worst: int = 8,
) -> Comparison:
    """Compares an output with what it should be. With `sliced` the first axis is that of the ranks."""
    if actual.shape != expected.shape:
        raise ValueError(f"golden {name} has shape {list(expected.shape)}, and the output {list(actual.shape)}")
    ok = np.asarray(right(actual, expected))
    if ok.shape != actual.shape or ok.dtype != np.bool_:
        raise ValueError(f"the comparator of {name} gave {ok.dtype} {list(ok.shape)}, not bools {list(actual.shape)}")
    parts = ~ok if sliced else (~ok)[np.newaxis]
    wrong = tuple(int(part.sum()) for part in parts)
    report = "" if ok.all() else _report(name, actual, expected, ok, wrong, sliced, launch, worst)
    return Comparison(name, launch, int(ok.size), wrong, report)


def _report(
    name: str,
    actual: Array,
    expected: Array,
    ok: Array,
    wrong: Tuple[int, ...],
    sliced: bool,
    launch: int,
    worst: int,
) -> str:
    with np.errstate(invalid="ignore", over="ignore"):
        errors = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
    order = np.where(np.isnan(errors), np.inf, errors)
    order[ok] = -1
    by_rank = ", ".join(f"rank {rank}: {count}" for rank, count in enumerate(wrong)) if sliced else "not sliced"
    lines: List[str] = [f"{name}, launch {launch}: {sum(wrong)} of {ok.size} elements are wrong ({by_rank})"]
    shown = min(worst, sum(wrong))
    for flat in np.argsort(-order, axis=None, kind="stable")[:shown]:
        index = tuple(int(i) for i in np.unravel_index(flat, ok.shape))
        where = f"rank {index[0]} {list(index[1:])}" if sliced else f"{list(index)}"
        lines.append(f"  {where}: expected {expected[index]}, actual {actual[index]}, error {errors[index]:.4g}")
    if shown < sum(wrong):
        lines.append(f"  and {sum(wrong) - shown} that are less wrong")
    return "\n".join(lines)
