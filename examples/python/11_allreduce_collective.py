"""Step 11: the same all-reduce in one line. It is nothing new: `str(allreduce_collective.expand(2))` is what the
library makes of the line, in the puts, gets, notifies and waits of the steps before."""

import pld

import step


@pld.entry
def allreduce(
    x: pld.Tensor[[pld.WORLD, 8], pld.f32],
    y: pld.Out[pld.Tensor[[pld.WORLD, 8], pld.f32]],
    data: pld.Window[[pld.WORLD, 8], pld.f32],
) -> None:
    with pld.at("reduce"):
        me = pld.rank(data)
        pld.put(data, me, x)
        pld.allreduce(data, "sum")
        pld.get(y, me, data)


@pld.host
def allreduce_collective(
    xs: pld.Tensor[[pld.WORLD, pld.WORLD, 8], pld.f32], ys: pld.Out[pld.Tensor[[pld.WORLD, pld.WORLD, 8], pld.f32]]
) -> None:
    data_buf = pld.alloc_window([pld.WORLD, 8], pld.f32)
    for r in pld.ranks(pld.WORLD):
        data = pld.window(data_buf, [pld.WORLD, 8], pld.f32)
        allreduce(xs[r], ys[r], data, device=r)


if __name__ == "__main__":
    step.main(allreduce_collective, ys=lambda x: x.sum(axis=0))
