"""Python callables as tasks of ranks and of the host."""

from __future__ import annotations

import threading
from typing import Any, Dict, List

import numpy as np
import pytest

import pld


def scaled(function: Any, blocks: int = 3) -> pld.Program:
    """Rows of `y` are those of `x` times a factor and plus a number, by a function; a part of `x` is a slice with gaps."""

    @pld.entry
    def entry(
        x: pld.Tensor[[3, 8], pld.f32], y: pld.Out[pld.Tensor[[3, 4], pld.f32]], me: pld.Scalar[pld.i32]
    ) -> None:
        part = pld.slice(x, [0, 2], [3, 4])
        pld.extern_task(function, pld.In(part), pld.Out(y), 0.5, me, blocks=blocks)

    @pld.host
    def scaled(xs: pld.Tensor[[pld.WORLD, 3, 8], pld.f32], ys: pld.Out[pld.Tensor[[pld.WORLD, 3, 4], pld.f32]]) -> None:
        for r in pld.ranks(pld.world_size()):
            entry(xs[r], ys[r], r, device=r)

    return scaled


def scale(context: pld.TaskContext) -> None:
    x, y = context.tensors
    assert x.shape == (3, 4) and x.strides == (32, 4)
    assert (context.name, context.blocks, context.nranks) == ("scale", 3, 2)
    assert context.rank == context.integer(1) and context.core < 2 and context.launch >= 1
    y[context.block] = x[context.block] * context.real(0) + context.rank
    with pytest.raises(IndexError, match="value 2 of 2"):
        context.integer(2)


def test_functions_see_the_tensors_of_their_task() -> None:
    xs = np.arange(48, dtype=np.float32).reshape(2, 3, 8)
    expected = xs[:, :, 2:6] * 0.5 + np.arange(2)[:, None, None]
    with pld.World(2, cores_per_rank=2) as world:
        traced = world.compile(scaled(scale))
        named = world.compile(scaled("scale"), functions={"scale": scale})
        parsed = world.compile(pld.Program.parse(str(scaled(scale))), functions={"scale": scale})
        for executable in (traced, named, parsed):
            ys = np.zeros((2, 3, 4), np.float32)
            executable(xs, ys)
            np.testing.assert_array_equal(ys, expected)
        with pytest.raises(pld.InvalidArgument, match="scale"):
            world.compile(scaled("scale"))


def test_functions_of_a_waiting_rank() -> None:
    """A function that runs on the stack of a task that has waited, deep enough to need it."""

    def deep(context: pld.TaskContext) -> None:
        def down(n: int) -> int:
            return 0 if n == 0 else 1 + down(n - 1)

        context.tensors[0][0] = down(400)

    @pld.entry
    def entry(y: pld.Out[pld.Tensor[[1], pld.i32]], signal: pld.Window[[1], pld.i32], me: pld.Scalar[pld.i32]) -> None:
        with pld.at("tell", no_dep=[signal]):
            pld.notify(signal, (me + 1) % pld.world_size(), [0])
        with pld.at("hear") as heard:
            pld.wait(signal, [0], 1)
        pld.extern_task(deep, pld.Out(y), deps=[heard])

    @pld.host
    def ring(ys: pld.Out[pld.Tensor[[pld.WORLD, 1], pld.i32]]) -> None:
        signal = pld.alloc_window([1], pld.i32)
        for r in pld.ranks(pld.world_size()):
            entry(ys[r], pld.window(signal, [1], pld.i32), r, device=r)

    ys = np.zeros((4, 1), np.int32)
    with pld.World(4, chaos_seed=3) as world:
        executable = world.compile(ring)
        for _ in range(20):
            ys[:] = 0
            executable(ys)
            assert ys.tolist() == [[400]] * 4


class Broken(Exception):
    pass


def test_exceptions_of_functions_come_out_of_the_launch() -> None:
    def broken(context: pld.TaskContext) -> None:
        if context.rank == 1 and context.block == 2:
            raise Broken(f"block {context.block}")

    xs, ys = np.zeros((2, 3, 8), np.float32), np.zeros((2, 3, 4), np.float32)
    with pld.World(2) as world:
        executable = world.compile(scaled(broken))
        for _ in range(2):  # the launch has ended, the world has not
            with pytest.raises(pld.CallbackError, match="broken") as raised:
                executable(xs, ys)
            assert isinstance(raised.value.__cause__, Broken) and "block 2" in str(raised.value.__cause__)
        run = executable.submit(xs, ys)
        with pytest.raises(pld.CallbackError) as waited:
            run.wait()
        assert isinstance(waited.value.__cause__, Broken)


def test_other_results_than_none_end_the_launch() -> None:
    def failing(context: pld.TaskContext) -> int:
        return 7 * (context.rank == 0)

    with pld.World(2) as world:
        with pytest.raises(pld.CallbackError, match="7") as raised:
            world.compile(scaled(failing))(np.zeros((2, 3, 8), np.float32), np.zeros((2, 3, 4), np.float32))
        assert raised.value.__cause__ is None


def test_host_tasks_see_whole_tensors() -> None:
    seen: List[Any] = []

    def look(context: pld.TaskContext) -> None:
        seen.append((context.tensors[0].copy(), context.integer(0)))

    @pld.entry
    def entry(y: pld.Out[pld.Tensor[[2], pld.i32]], me: pld.Scalar[pld.i32]) -> None:
        with pld.at("fill"):
            for i in pld.range(2):
                y[i] = me * 10 + i

    @pld.host
    def filled(ys: pld.Out[pld.Tensor[[pld.WORLD, 2], pld.i32]], tag: pld.Scalar[pld.i64]) -> None:
        for r in pld.ranks(pld.world_size()):
            entry(ys[r], r, device=r)
        pld.host_task(look, pld.In(ys), tag)

    with pld.World(3) as world:
        world.compile(filled)(np.zeros((3, 2), np.int32), 1 << 40)
    assert [(tensor.tolist(), tag) for tensor, tag in seen] == [([[0, 1], [10, 11], [20, 21]], 1 << 40)]


def test_a_name_is_one_function() -> None:
    def make(n: int) -> Any:
        def same(context: pld.TaskContext) -> None:
            context.tensors[0][0] = n

        return same

    @pld.entry
    def entry(y: pld.Out[pld.Tensor[[1], pld.i32]]) -> None:
        pld.extern_task(make(1), pld.Out(y))
        pld.extern_task(make(2), pld.Out(y))

    with pytest.raises(pld.TraceError, match="two functions of this program have the name same"):

        @pld.host
        def twice(ys: pld.Out[pld.Tensor[[pld.WORLD, 1], pld.i32]]) -> None:
            for r in pld.ranks(pld.world_size()):
                entry(ys[r], device=r)


def test_functions_may_abort_from_any_thread() -> None:
    worlds: Dict[str, pld.World] = {}
    threads = set()

    def abort(context: pld.TaskContext) -> None:
        threads.add(threading.get_ident())
        if context.rank == 1:
            worlds["this"].abort(5)

    with pld.World(2) as world:
        worlds["this"] = world
        with pytest.raises(pld.Aborted, match="5"):
            world.compile(scaled(abort))(np.zeros((2, 3, 8), np.float32), np.zeros((2, 3, 4), np.float32))
    assert threads
