"""Programs that several tests use."""

from __future__ import annotations

import pld


def shift(size: int) -> pld.Program:
    """Every rank gets the row of the rank before it, and adds `plus` to it."""

    @pld.entry
    def entry(
        x: pld.Tensor[[1, size], pld.i32],
        y: pld.Out[pld.Tensor[[1, size], pld.i32]],
        inbox: pld.Window[[1, size], pld.i32],
        arrived: pld.Window[[1], pld.i32],
        me: pld.Scalar[pld.i32],
        plus: pld.Scalar[pld.i32],
    ) -> None:
        with pld.at("exchange"):
            following = (me + 1) % pld.world_size()
            pld.put(inbox, following, x)
            pld.notify(arrived, following, [0])
            pld.wait(arrived, [0], 1)
            row = pld.load(inbox, [0, 0], [1, size])
            pld.store(row + plus, y, [0, 0])

    @pld.host
    def shift(
        xs: pld.Tensor[[pld.WORLD, 1, size], pld.i32],
        ys: pld.Out[pld.Tensor[[pld.WORLD, 1, size], pld.i32]],
        plus: pld.Scalar[pld.i32],
    ) -> None:
        inbox = pld.alloc_window([1, size], pld.i32)
        arrived = pld.alloc_window([1], pld.i32)
        for r in pld.ranks(pld.world_size()):
            views = pld.window(inbox, [1, size], pld.i32), pld.window(arrived, [1], pld.i32)
            entry(xs[r], ys[r], *views, r, plus, device=r)

    return shift


def stuck() -> pld.Program:
    """Every rank waits for a signal that comes only if `go` is set on the other one."""

    @pld.entry
    def entry(
        go: pld.Tensor[[1], pld.i32],
        signal: pld.Window[[1], pld.i32],
        me: pld.Scalar[pld.i32],
    ) -> None:
        with pld.at("wait_for_go"):
            with pld.if_(go[0] > 0):
                pld.notify(signal, (me + 1) % pld.world_size(), [0])
            pld.wait(signal, [0], 1)

    @pld.host
    def stuck(go: pld.Tensor[[pld.WORLD, 1], pld.i32]) -> None:
        signal = pld.alloc_window([1], pld.i32)
        for r in pld.ranks(pld.world_size()):
            entry(go[r], pld.window(signal, [1], pld.i32), r, device=r)

    return stuck
