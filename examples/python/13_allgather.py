"""Step 13: all-gather. Every rank has a row, and all ranks get all rows: y[r] = x[0], x[1], ... It is what step 7
does by hand, but here the next call may follow at once."""

import pld

import step


@pld.entry
def gather(
    x: pld.Tensor[[1, 8], pld.f32],
    y: pld.Out[pld.Tensor[[pld.WORLD, 8], pld.f32]],
    rows: pld.Window[[pld.WORLD, 8], pld.f32],
) -> None:
    with pld.at("gather"):
        pld.allgather(rows, x)
        pld.get(y, pld.rank(rows), rows)


@pld.host
def allgather(
    xs: pld.Tensor[[pld.WORLD, 1, 8], pld.f32], ys: pld.Out[pld.Tensor[[pld.WORLD, pld.WORLD, 8], pld.f32]]
) -> None:
    rows_buf = pld.alloc_window([pld.WORLD, 8], pld.f32)
    for r in pld.ranks(pld.WORLD):
        rows = pld.window(rows_buf, [pld.WORLD, 8], pld.f32)
        gather(xs[r], ys[r], rows, device=r)


if __name__ == "__main__":
    step.main(allgather, ys=lambda x: x[:, 0])
