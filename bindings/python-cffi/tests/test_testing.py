"""The golden harness, above all on tests that must fail."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import Any, Dict

import ml_dtypes
import numpy as np
import pytest
from programs import shift, stuck

import pld
from pld.testing import ScalarSpec, TensorSpec, allclose, benchmark, compare, exact, run, to_dtype, to_numbers

SIZE = 12


def specs(ranks: int, **xs: Any) -> "list[TensorSpec | ScalarSpec]":
    return [
        TensorSpec("xs", [ranks, 1, SIZE], pld.i32, **{"init": "random", **xs}),
        TensorSpec("ys", [ranks, 1, SIZE], pld.i32),
        ScalarSpec("plus", pld.i32, lambda launch: 10 * launch),
    ]


def golden(tensors: Dict[str, Any]) -> None:
    assert (tensors["ys"] == -1).all()
    tensors["ys"][...] = np.roll(tensors["xs"], 1, axis=0) + np.int32(tensors["plus"])


@pytest.mark.parametrize("transport", ["threads", "processes"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_right_programs_pass(transport: Any, ranks: int) -> None:
    for init in ("random", "iota", 7, np.arange(ranks * SIZE).reshape(ranks, 1, SIZE), lambda n: np.full((ranks, 1, SIZE), n)):
        outcome = run(shift(SIZE), specs(ranks, init=init), golden, ranks=ranks, transport=transport, launches=2)
        assert outcome.check and outcome.check.schedules >= 1
        assert [(c.name, c.launch, c.passed, c.elements) for c in outcome.comparisons] == [
            ("ys", 1, True, ranks * SIZE),
            ("ys", 2, True, ranks * SIZE),
        ]
        assert outcome.tensors["plus"] == 20
        np.testing.assert_array_equal(outcome.tensors["ys"], np.roll(outcome.tensors["xs"], 1, axis=0) + 20)
    assert str(outcome).startswith(f"passed: {2 * ranks * SIZE} elements of 2 launches, ")


@pytest.mark.parametrize("transport", ["threads", "processes"])
def test_residents(transport: Any) -> None:
    stacked = [
        TensorSpec("xs", [2, 1, SIZE], pld.i32, init="iota", resident="stacked"),
        TensorSpec("ys", [2, 1, SIZE], pld.i32, resident="stacked"),
        ScalarSpec("plus", pld.i32, 4),
    ]
    run(shift(SIZE), stacked, golden, transport=transport, launches=3, chaos_seed=9, cores_per_rank=2)


def test_inputs_follow_from_the_seed() -> None:
    xs = [run(shift(SIZE), specs(2), golden, check=False, seed=seed).tensors["xs"] for seed in (1, 1, 2)]
    np.testing.assert_array_equal(xs[0], xs[1])
    assert (xs[0] != xs[2]).any() and len(np.unique(xs[0])) > SIZE


def test_a_wrong_result_is_reported() -> None:
    def wrong(tensors: Dict[str, Any]) -> None:
        golden(tensors)
        tensors["ys"][1, 0, 3] += 5
        tensors["ys"][1, 0, 4] -= 700
        tensors["ys"][0, 0, 11] += 1

    with pytest.raises(pld.testing.MismatchError) as raised:
        run(shift(SIZE), specs(2, init="iota"), wrong, launches=2)
    report = str(raised.value).split("\n")
    x = 100003 * 1 + 4 + 10
    assert report[0] == f"ys, launch 1: 3 of {2 * SIZE} elements are wrong (rank 0: 1, rank 1: 2)"
    assert report[1] == f"  rank 1 [0, 4]: expected {x - 700}, actual {x}, error 700"
    assert report[2].startswith("  rank 1 [0, 3]:") and report[2].endswith("error 5")
    assert report[3].startswith("  rank 0 [0, 11]:") and report[3].endswith("error 1")
    assert raised.value.comparisons[0].wrong == (1, 2)


def test_comparisons() -> None:
    expected = np.array([[1, 2, np.nan, np.inf, 0]], np.float32)
    actual = np.array([[1.001, np.nan, np.nan, np.inf, 1e-7]], np.float32)
    close = compare("y", actual, expected, allclose(0.01, 1e-6))
    assert close.wrong == (1,) and "rank 0 [1]: expected 2.0, actual nan, error nan" in close.report
    assert compare("y", actual, expected, exact).wrong == (3,)
    assert compare("y", actual, expected, allclose(0, 0), sliced=False).wrong == (3,)
    assert "[0, 1]: expected 2.0" in compare("y", actual, expected, exact, sliced=False).report
    few = compare("y", np.zeros((1, 9)), np.arange(9.0)[np.newaxis], exact, worst=2)
    assert few.report.split("\n")[1:] == [
        "  rank 0 [8]: expected 8.0, actual 0.0, error 8",
        "  rank 0 [7]: expected 7.0, actual 0.0, error 7",
        "  and 6 that are less wrong",
    ]
    with pytest.raises(ValueError, match=re.escape("golden y has shape [1, 5], and the output [5]")):
        compare("y", actual[0], expected, exact)
    with pytest.raises(ValueError, match="comparator of y gave float32"):
        compare("y", actual, expected, lambda a, e: a - e)


COPY = """
program copy
entry copy(x: tensor[4] {dtype} in, y: tensor[4] {dtype} out) {{
  at copy {{
    t = load x[0] [4]
    store t -> y[0]
  }}
}}
host (xs: tensor[world, 4] {dtype} in, ys: tensor[world, 4] {dtype} out) {{
  ranks r in 0..world {{
    dispatch copy(xs[r], ys[r]) device r
  }}
}}
"""


def copy(tensors: Dict[str, Any]) -> None:
    tensors["ys"][...] = tensors["xs"]


@pytest.mark.parametrize("init", ["random", "iota"])
@pytest.mark.parametrize("dtype", pld.dtypes.BY_CODE.values(), ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("bits", [False, True])
def test_every_element_type(
    dtype: pld.DType, init: Any, bits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if bits:
        monkeypatch.setitem(__import__("sys").modules, "ml_dtypes", None)
        if dtype.name.startswith("f8"):
            init = np.arange(8, dtype=np.uint8).reshape(2, 4)
    program = pld.Program.parse(COPY.format(dtype=dtype.name))
    both = [TensorSpec("xs", [2, 4], dtype, init=init), TensorSpec("ys", [2, 4], dtype)]
    outcome = run(program, both, copy, save=tmp_path)
    assert outcome.tensors["xs"].any() and (outcome.tensors["xs"][0] != outcome.tensors["xs"][1]).any()
    again = run(program, both, replay=tmp_path)
    assert outcome.tensors["ys"].tobytes() == again.tensors["ys"].tobytes()


def test_bf16_without_ml_dtypes() -> None:
    numbers = np.array([1, -2.5, 1 + 2**-8, 1 + 3 * 2**-8, 1e30, 0], np.float32)
    with_ = numbers.astype(ml_dtypes.bfloat16)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("sys").modules, "ml_dtypes", None)
        bits = to_dtype(numbers, pld.bf16)
        np.testing.assert_array_equal(bits, with_.view(np.uint16))
        np.testing.assert_array_equal(to_numbers(bits, pld.bf16), with_.astype(np.float32))
        with pytest.raises(pld.InvalidArgument, match="ml_dtypes"):
            to_dtype(numbers, pld.f8e4m3)


def test_nan_where_a_number_should_be() -> None:
    program = pld.Program.parse(COPY.format(dtype="f32"))
    x = np.array([[1, 2, 3, np.nan], [5, 6, 7, 8]], np.float32)
    both = [TensorSpec("xs", [2, 4], pld.f32, init=x), TensorSpec("ys", [2, 4], pld.f32)]
    run(program, both, copy)

    def number(tensors: Dict[str, Any]) -> None:
        copy(tensors)
        tensors["ys"][0, 3] = 4

    with pytest.raises(pld.testing.MismatchError, match=r"rank 0 \[3\]: expected 4.0, actual nan"):
        run(program, both, number)
    run(program, both, number, comparators={"ys": lambda actual, expected: (actual == expected) | np.isnan(actual)})


def test_golden_data_is_replayed(tmp_path: Path) -> None:
    saved = run(shift(SIZE), specs(2), golden, launches=2, save=tmp_path, seed=5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["launch_1.npz", "launch_2.npz"]
    replayed = run(shift(SIZE), specs(2), launches=2, replay=tmp_path)
    np.testing.assert_array_equal(saved.tensors["ys"], replayed.tensors["ys"])
    with np.load(tmp_path / "launch_2.npz") as file:
        arrays = dict(file)
    arrays["golden.ys"][1, 0, 2] += 1
    np.savez(tmp_path / "launch_2.npz", allow_pickle=False, **arrays)
    with pytest.raises(pld.testing.MismatchError, match=r"ys, launch 2: 1 of 24 .*\n  rank 1 \[0, 2\]"):
        run(shift(SIZE), specs(2), launches=2, replay=tmp_path)
    with pytest.raises(ValueError, match=re.escape("saved xs has shape [2, 1, 12], its spec [3, 1, 12]")):
        run(shift(SIZE), specs(3), ranks=3, replay=tmp_path)


@pytest.mark.parametrize(
    "wrong, message",
    [
        ([TensorSpec("xs", [2, 1, SIZE], pld.i32)], "specs name ['xs'], parameters are ['xs', 'ys', 'plus']"),
        ([*specs(2), ScalarSpec("more", pld.i32, 1)], "specs name ['xs', 'ys', 'plus', 'more']"),
        (specs(3), "xs has shape [3, 1, 12] in its spec, and [2, 1, 12] with 2 ranks"),
        ([TensorSpec("xs", [2, 1, SIZE], pld.f32), *specs(2)[1:]], "xs is a tensor of i32, and its spec a tensor of f32"),
        ([*specs(2)[:2], TensorSpec("plus", [1], pld.i32)], "plus is a scalar of i32, and its spec a tensor of i32"),
        (specs(2, init="ones"), "init of xs is 'ones', and none of 'zeros', 'iota', 'random'"),
        (specs(2, init=np.zeros(3)), "init of xs has shape [3], and the spec [2, 1, 12]"),
    ],
)
def test_specs_that_do_not_fit(wrong: Any, message: str) -> None:
    with pytest.raises(pld.InvalidArgument, match=re.escape(message)):
        run(shift(SIZE), wrong, golden)


def test_golden_that_does_not_fit() -> None:
    def reshaped(tensors: Dict[str, Any]) -> None:
        tensors["ys"] = tensors["ys"].reshape(-1)

    with pytest.raises(ValueError, match=re.escape("golden ys has shape [24], and its spec [2, 1, 12]")):
        run(shift(SIZE), specs(2), reshaped)
    with pytest.raises(TypeError, match="golden is needed"):
        run(shift(SIZE), specs(2))


def stuck_specs(*values: int) -> "list[TensorSpec]":
    return [TensorSpec("go", [len(values), 1], pld.i32, init=np.array(values).reshape(-1, 1))]


def nothing(tensors: Dict[str, Any]) -> None:
    pass


@pytest.mark.parametrize("transport", ["threads", "processes"])
def test_the_checker_comes_first_and_launches_may_fail(transport: Any) -> None:
    with pytest.raises(pld.CheckError):
        run(stuck(), stuck_specs(1, 0), nothing, transport=transport)
    with pytest.raises(pld.Timeout, match="signal"):
        run(stuck(), stuck_specs(1, 0), nothing, transport=transport, check=False, timeout=0.5)
    run(stuck(), stuck_specs(1, 1), nothing, transport=transport, check={"schedules": 3, "explore": "pct"})


def test_a_rank_that_dies(tmp_path: Path) -> None:
    def die(context: pld.TaskContext) -> None:
        if context.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    @pld.entry
    def entry(x: pld.Tensor[[1], pld.i32]) -> None:
        pld.extern_task(die, pld.In(x))
        with pld.at("meet"):
            pld.barrier()

    @pld.host
    def dying(xs: pld.Tensor[[pld.WORLD, 1], pld.i32]) -> None:
        for r in pld.ranks(pld.world_size()):
            entry(xs[r], device=r)

    with pytest.raises(pld.testing.RankDied, match="rank 1 has ended, with exit code -9"):
        run(dying, [TensorSpec("xs", [2, 1], pld.i32)], nothing, transport="processes", check=False)


def test_functions_in_processes() -> None:
    def triple(context: pld.TaskContext) -> None:
        x, y = context.tensors
        y[...] = x * 3
        if context.integer(0) > 2:
            raise KeyError("three launches")

    @pld.entry
    def entry(x: pld.Tensor[[2], pld.i32], y: pld.Out[pld.Tensor[[2], pld.i32]], n: pld.Scalar[pld.i32]) -> None:
        pld.extern_task("triple", pld.In(x), pld.Out(y), n)

    @pld.host
    def tripled(
        xs: pld.Tensor[[pld.WORLD, 2], pld.i32], ys: pld.Out[pld.Tensor[[pld.WORLD, 2], pld.i32]], n: pld.Scalar[pld.i32]
    ) -> None:
        for r in pld.ranks(pld.world_size()):
            entry(xs[r], ys[r], n, device=r)

    def golden(tensors: Dict[str, Any]) -> None:
        tensors["ys"][...] = tensors["xs"] * 3

    three = [
        TensorSpec("xs", [2, 2], pld.i32, init="iota"),
        TensorSpec("ys", [2, 2], pld.i32),
        ScalarSpec("n", pld.i32, lambda launch: launch),
    ]
    options: Dict[str, Any] = {"functions": {"triple": triple}, "transport": "processes", "check": False}
    run(tripled, three, golden, launches=2, **options)
    with pytest.raises(pld.CallbackError, match="triple"):
        run(tripled, three, golden, launches=3, **options)


@pytest.mark.parametrize("transport", ["threads", "processes"])
def test_benchmarks(transport: Any) -> None:
    result = benchmark(shift(SIZE), specs(2), transport=transport, rounds=7, warm_up=2)
    for figures in (result.slowest, *result.ranks, result.start_skew):
        assert 0 <= figures.min <= figures.median <= figures.max
        assert figures.min <= figures.mean <= figures.max
    assert result.slowest.max == max(figures.max for figures in result.ranks)
    lines = str(result).split("\n")
    assert lines[0] == f"shift: 2 ranks, {transport}, 7 rounds"
    assert lines[1].split() == ["us", "min", "median", "mean", "max"]
    assert [re.split("  +", line)[0] for line in lines[2:]] == ["slowest rank", "rank 0", "rank 1", "start skew"]
    assert [float(number) for number in lines[2].split()[2:]] == [
        pytest.approx(value, abs=0.006)
        for value in (result.slowest.min, result.slowest.median, result.slowest.mean, result.slowest.max)
    ]
