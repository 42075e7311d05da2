"""What a launch takes, and what it says about what it does not take."""

from __future__ import annotations

import re
from typing import Any, Iterator

import ml_dtypes
import numpy as np
import pytest

import pld
from programs import shift

SIZE = 24


@pytest.fixture(scope="module")
def world() -> Iterator[pld.World]:
    with pld.World(3) as world:
        yield world


@pytest.fixture(scope="module")
def executable(world: pld.World) -> pld.Executable:
    return world.compile(shift(SIZE))


def inputs() -> "np.ndarray[Any, np.dtype[np.int32]]":
    return np.arange(3 * SIZE, dtype=np.int32).reshape(3, 1, SIZE) * 7 + 1


def outputs() -> "np.ndarray[Any, np.dtype[np.int32]]":
    return np.full((3, 1, SIZE), -1, np.int32)


def test_arrays_are_used_where_they_lie(executable: pld.Executable) -> None:
    x, y = inputs(), outputs()
    executable(x, y, 5)
    np.testing.assert_array_equal(y, np.roll(x, 1, axis=0) + 5)


def test_lists_have_one_array_a_rank(executable: pld.Executable) -> None:
    x, y = inputs(), [np.zeros((1, SIZE), np.int32) for _ in range(3)]
    executable(list(x), y, np.int64(-2))
    np.testing.assert_array_equal(np.stack(y), np.roll(x, 1, axis=0) - 2)


class Foreign:
    """An array of another library: all that is known of it is the protocol."""

    def __init__(self, array: "np.ndarray[Any, Any]", device: int = 1) -> None:
        self._array, self._device = array, device

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> "tuple[int, int]":
        return self._device, 0


def test_arrays_of_other_libraries(executable: pld.Executable) -> None:
    x, y = inputs(), outputs()
    executable(Foreign(x), Foreign(y), 1)
    np.testing.assert_array_equal(y, np.roll(x, 1, axis=0) + 1)
    with pytest.raises(pld.InvalidArgument, match=r"ys lies on device \(2, 0\)"):
        executable(x, Foreign(y, device=2), 1)


def test_submitted_runs_and_threads(executable: pld.Executable) -> None:
    x, ys = inputs(), [outputs() for _ in range(4)]
    runs = [executable.submit(x, y, i) for i, y in enumerate(ys)]
    for i, (run, y) in enumerate(zip(runs, ys)):
        run.wait()
        assert run.done
        np.testing.assert_array_equal(y, np.roll(x, 1, axis=0) + i)


def test_a_run_keeps_what_it_works_on(executable: pld.Executable) -> None:
    x, y = inputs(), outputs()
    run = executable.submit(x.copy(), y, 0)  # nobody else has the copy
    del run  # waits
    np.testing.assert_array_equal(y, np.roll(x, 1, axis=0))


def test_runs_can_be_awaited(executable: pld.Executable) -> None:
    import asyncio

    x, y = inputs(), outputs()

    async def go() -> None:
        await executable.submit(x, y, 9)

    asyncio.run(go())
    np.testing.assert_array_equal(y, np.roll(x, 1, axis=0) + 9)


def strided() -> "np.ndarray[Any, Any]":
    return np.zeros((3, 1, 2 * SIZE), np.int32)[:, :, ::2]


def read_only() -> "np.ndarray[Any, Any]":
    y = outputs()
    y.flags.writeable = False
    return y


@pytest.mark.parametrize(
    "args, message",
    [
        ((inputs(),), "1 arguments are given, the program takes 3 (xs, ys, plus)"),
        ((inputs(), outputs(), 1, 2), "4 arguments are given, the program takes 3 (xs, ys, plus)"),
        ((inputs().astype(np.float32), outputs(), 1), "xs has elements of type i32, and not float32"),
        ((inputs().astype(">i4"), outputs(), 1), "xs has elements of type i32, and not >i4"),
        ((inputs().view(np.uint32), outputs(), 1), "not uint32; pld.as_type(array, pld.i32) if its bits are meant"),
        ((strided(), outputs(), 1), f"xs is not contiguous (shape (3, 1, {SIZE}), strides ({SIZE * 8}, {SIZE * 8}, 8)"),
        ((inputs(), read_only(), 1), "ys is written by a launch (out), and the array is read-only"),
        ((inputs()[:2], outputs(), 1), "argument xs has the extent 2 in dimension 0, not 3"),
        (([inputs()[0]], outputs(), 1), "argument xs has 1 parts for 3 ranks"),
        ((inputs(), outputs(), 1.5), "plus is a scalar of type i32, and not a float"),
        ((inputs(), outputs(), inputs()), "plus is a scalar of type i32, and not a ndarray"),
        ((inputs(), 3, 1), "ys is a tensor: pass an array of numpy or one with __dlpack__, and not a int"),
        ((inputs(), None, 1), "ys is a tensor: pass an array of numpy or one with __dlpack__, and not a NoneType"),
    ],
)
def test_mistakes_name_the_argument(executable: pld.Executable, args: Any, message: str) -> None:
    with pytest.raises(pld.InvalidArgument, match=re.escape(message)):
        executable(*args)
    x, y = inputs(), outputs()
    executable(x, y, 0)  # and the world is as before
    np.testing.assert_array_equal(y, np.roll(x, 1, axis=0))


def test_residents(world: pld.World, executable: pld.Executable) -> None:
    x = inputs()
    xs, ys = (world.resident_stacked([1, SIZE], pld.i32) for _ in range(2))
    assert xs.ranks == (0, 1, 2)
    xs.copy_in(x)
    executable(xs, ys, 3)
    np.testing.assert_array_equal(ys.copy_out(), np.roll(x, 1, axis=0) + 3)
    xs.copy_in(x[0] - 4, rank=2)
    executable(xs, ys, 0)
    out = np.zeros((1, SIZE), np.int32)
    assert ys.copy_out(out, rank=0) is out
    np.testing.assert_array_equal(out, x[0] - 4)
    with pytest.raises(pld.InvalidArgument, match=rf"shape \[3, 1, {SIZE}\] and type i32, the array \[1, {SIZE}\]"):
        xs.copy_in(x[0])
    with pytest.raises(pld.InvalidArgument, match="must be contiguous, and not read-only"):
        ys.copy_out(read_only())
    xs.destroy()


SQUARES = """
program squares
entry square(x: tensor[4] {dtype} in, weights: tensor[4] f32 in, y: tensor[4] f32 out) {{
  at square {{
    t = load x[0] [4]
    w = load weights[0] [4]
    wide = cast t f32
    wide = mul wide, wide
    wide = add wide, w
    store wide -> y[0]
  }}
}}
host (xs: tensor[world, 4] {dtype} in, weights: tensor[4] f32 in, ys: tensor[world, 4] f32 out) {{
  ranks r in 0..world {{
    dispatch square(xs[r], weights, ys[r]) device r
  }}
}}
"""


@pytest.mark.parametrize("dtype", [pld.bf16, pld.f8e4m3, pld.f8e5m2, pld.f16])
def test_float_types_of_ml_dtypes_or_as_bits(world: pld.World, dtype: pld.DType) -> None:
    squares = world.compile(pld.Program.parse(SQUARES.format(dtype=dtype.name)))
    x = np.array([[r + 1, -0.5 * r, 2, r] for r in range(3)]).astype(dtype.numpy)
    weights = np.array([0, 1, 2, 3], np.float32)
    bits = x.view(f"uint{8 * dtype.size}")
    for given in (x, pld.as_type(bits, dtype)):
        y = np.zeros((3, 4), np.float32)
        squares(given, weights, y)
        np.testing.assert_array_equal(y, x.astype(np.float32) ** 2 + weights)
    with pytest.raises(pld.InvalidArgument, match=f"xs has elements of type {dtype.name}, and not uint"):
        squares(bits, weights, np.zeros((3, 4), np.float32))
    with pytest.raises(pld.InvalidArgument, match="4 bytes, and elements of the array"):
        pld.as_type(bits, pld.i32)


def test_a_resident_of_one_rank(world: pld.World) -> None:
    squares = world.compile(pld.Program.parse(SQUARES.format(dtype="f16")))
    weights = world.resident([4], pld.f32, rank=1)
    weights.copy_in(np.array([4, 3, 2, 1], np.float32))
    x, y = np.ones((3, 4), np.float16), np.zeros((3, 4), np.float32)
    squares(x, weights, y)
    np.testing.assert_array_equal(y, [[5, 4, 3, 2]] * 3)
    np.testing.assert_array_equal(weights.copy_out(), [4, 3, 2, 1])


def test_types_without_ml_dtypes_are_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pld.bf16.numpy == np.dtype(ml_dtypes.bfloat16)
    monkeypatch.setitem(__import__("sys").modules, "ml_dtypes", None)
    assert pld.bf16.numpy == np.uint16
    assert pld.f8e4m3.numpy == np.uint8
