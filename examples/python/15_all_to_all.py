"""Step 15: all-to-all. Every rank has a row for each rank, and gets one from each: y[r][q] = x[q][r]. What was
ordered by sender is ordered by receiver, which is how tokens get to their experts."""

import pld

import step


@pld.entry
def exchange(
    x: pld.Tensor[[pld.WORLD, 8], pld.f32],
    y: pld.Out[pld.Tensor[[pld.WORLD, 8], pld.f32]],
    inbox: pld.Window[[pld.WORLD, 8], pld.f32],
) -> None:
    with pld.at("exchange"):
        pld.all_to_all(inbox, x)
        pld.get(y, pld.rank(inbox), inbox)


@pld.host
def all_to_all(
    xs: pld.Tensor[[pld.WORLD, pld.WORLD, 8], pld.f32], ys: pld.Out[pld.Tensor[[pld.WORLD, pld.WORLD, 8], pld.f32]]
) -> None:
    inbox_buf = pld.alloc_window([pld.WORLD, 8], pld.f32)
    for r in pld.ranks(pld.WORLD):
        inbox = pld.window(inbox_buf, [pld.WORLD, 8], pld.f32)
        exchange(xs[r], ys[r], inbox, device=r)


if __name__ == "__main__":
    step.main(all_to_all, ys=lambda x: x.swapaxes(0, 1))
