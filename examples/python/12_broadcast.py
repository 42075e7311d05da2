"""Step 12: broadcast. One rank, the root, has something for all: y[r] = x[root]."""

import pld

import step

ROOT = 0


@pld.entry
def give(
    x: pld.Tensor[[1, 8], pld.f32], y: pld.Out[pld.Tensor[[1, 8], pld.f32]], data: pld.Window[[1, 8], pld.f32]
) -> None:
    with pld.at("give"):
        me = pld.rank(data)
        with pld.if_(me == ROOT):
            pld.put(data, me, x)
        pld.broadcast(data, ROOT)
        pld.get(y, me, data)


@pld.host
def broadcast(
    xs: pld.Tensor[[pld.WORLD, 1, 8], pld.f32], ys: pld.Out[pld.Tensor[[pld.WORLD, 1, 8], pld.f32]]
) -> None:
    data_buf = pld.alloc_window([1, 8], pld.f32)
    for r in pld.ranks(pld.WORLD):
        data = pld.window(data_buf, [1, 8], pld.f32)
        give(xs[r], ys[r], data, device=r)


if __name__ == "__main__":
    step.main(broadcast, ys=lambda x: x[ROOT])
