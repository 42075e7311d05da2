"""Step 14: reduce-scatter. Every rank has a row for each rank, and gets the sum of those that are for it: y[r] =
x[0][r] + x[1][r] + ... It is the first half of step 9."""

import pld

import step


@pld.entry
def reduce(
    x: pld.Tensor[[pld.WORLD, 8], pld.f32],
    y: pld.Out[pld.Tensor[[1, 8], pld.f32]],
    data: pld.Window[[pld.WORLD, 8], pld.f32],
) -> None:
    with pld.at("reduce"):
        me = pld.rank(data)
        pld.put(data, me, x)
        pld.reduce_scatter(data, "sum")
        # Row `me` is the result; the other rows are as they were.
        pld.get(y, me, data, dst_offsets=[0, 0], src_offsets=[me, 0], shape=[1, 8])


@pld.host
def reduce_scatter(
    xs: pld.Tensor[[pld.WORLD, pld.WORLD, 8], pld.f32], ys: pld.Out[pld.Tensor[[pld.WORLD, 1, 8], pld.f32]]
) -> None:
    data_buf = pld.alloc_window([pld.WORLD, 8], pld.f32)
    for r in pld.ranks(pld.WORLD):
        data = pld.window(data_buf, [pld.WORLD, 8], pld.f32)
        reduce(xs[r], ys[r], data, device=r)


if __name__ == "__main__":
    step.main(reduce_scatter, ys=lambda x: x.sum(axis=0)[:, None])
