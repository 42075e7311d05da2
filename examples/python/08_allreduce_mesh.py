"""Step 8: an all-reduce, the shortest way. Every rank stages what it has, tells all others, waits for all of them,
and adds up what all have staged: y = x[0] + x[1] + ..., on every rank."""

import pld

import step


@pld.entry
def allreduce(
    x: pld.Tensor[[pld.WORLD, 8], pld.f32],
    y: pld.Out[pld.Tensor[[pld.WORLD, 8], pld.f32]],
    data: pld.Window[[pld.WORLD, 8], pld.f32],
    staged: pld.Window[[pld.WORLD], pld.i32],
    me: pld.Scalar[pld.i32],
) -> None:
    with pld.at("reduce"):
        pld.put(data, me, x)
        for peer in pld.range(pld.WORLD):
            pld.notify(staged, peer, [me])

        sum = pld.full(pld.f32, [pld.WORLD, 8], 0.0)
        for src in pld.range(pld.WORLD):
            pld.wait(staged, [src], 1)
            sum += pld.remote_load(data, src, [0, 0], [pld.WORLD, 8])
        pld.store(sum, y, [0, 0])


@pld.host
def allreduce_mesh(
    xs: pld.Tensor[[pld.WORLD, pld.WORLD, 8], pld.f32], ys: pld.Out[pld.Tensor[[pld.WORLD, pld.WORLD, 8], pld.f32]]
) -> None:
    data_buf = pld.alloc_window([pld.WORLD, 8], pld.f32)
    staged_buf = pld.alloc_window([pld.WORLD], pld.i32)
    for r in pld.ranks(pld.WORLD):
        data = pld.window(data_buf, [pld.WORLD, 8], pld.f32)
        staged = pld.window(staged_buf, [pld.WORLD], pld.i32)
        allreduce(xs[r], ys[r], data, staged, r, device=r)


if __name__ == "__main__":
    step.main(allreduce_mesh, ys=lambda x: x.sum(axis=0))
