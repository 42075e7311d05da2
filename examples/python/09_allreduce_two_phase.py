"""Step 9: the same all-reduce in two phases, which move less: rank r adds up row r of all ranks, and gives the sum to
all."""

import pld

import step


@pld.entry
def allreduce(
    x: pld.Tensor[[pld.WORLD, 8], pld.f32],
    y: pld.Out[pld.Tensor[[pld.WORLD, 8], pld.f32]],
    data: pld.Window[[pld.WORLD, 8], pld.f32],
    staged: pld.Window[[pld.WORLD], pld.i32],
    reduced: pld.Window[[pld.WORLD], pld.i32],
    me: pld.Scalar[pld.i32],
) -> None:
    # Row `me` of all ranks is for this rank to add up.
    with pld.at("scatter"):
        pld.put(data, me, x)
        for peer in pld.range(pld.WORLD):
            pld.notify(staged, peer, [me])
        sum = pld.full(pld.f32, [1, 8], 0.0)
        for src in pld.range(pld.WORLD):
            pld.wait(staged, [src], 1)
            sum += pld.remote_load(data, src, [me, 0], [1, 8])

        # Its sum takes the place of row `me` everywhere: nobody but this rank has read that row.
        for peer in pld.range(pld.WORLD):
            pld.remote_store(sum, data, peer, [me, 0])
            pld.notify(reduced, peer, [me])

    with pld.at("gather"):
        for owner in pld.range(pld.WORLD):
            pld.wait(reduced, [owner], 1)
        pld.get(y, me, data)


@pld.host
def allreduce_two_phase(
    xs: pld.Tensor[[pld.WORLD, pld.WORLD, 8], pld.f32], ys: pld.Out[pld.Tensor[[pld.WORLD, pld.WORLD, 8], pld.f32]]
) -> None:
    data_buf = pld.alloc_window([pld.WORLD, 8], pld.f32)
    staged_buf = pld.alloc_window([pld.WORLD], pld.i32)
    reduced_buf = pld.alloc_window([pld.WORLD], pld.i32)
    for r in pld.ranks(pld.WORLD):
        data = pld.window(data_buf, [pld.WORLD, 8], pld.f32)
        staged = pld.window(staged_buf, [pld.WORLD], pld.i32)
        reduced = pld.window(reduced_buf, [pld.WORLD], pld.i32)
        allreduce(xs[r], ys[r], data, staged, reduced, r, device=r)


if __name__ == "__main__":
    step.main(allreduce_two_phase, ys=lambda x: x.sum(axis=0))
