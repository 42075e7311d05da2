"""Step 7: the number of ranks is the world's, not the program's. Every rank gives its row to all: y[r] = x[0], x[1],
... The entry is not told who it is: it asks the window for its number and for the number of ranks."""

import pld

import step


@pld.entry
def give(
    x: pld.Tensor[[1, 8], pld.f32],
    y: pld.Out[pld.Tensor[[pld.WORLD, 8], pld.f32]],
    inbox: pld.Window[[pld.WORLD, 8], pld.f32],
    arrived: pld.Window[[1], pld.i32],
) -> None:
    with pld.at("give"):
        me = pld.rank(inbox)
        count = pld.nranks(inbox)
        for peer in pld.range(count):
            pld.put(inbox, peer, x, dst_offsets=[me, 0], src_offsets=[0, 0], shape=[1, 8])
            pld.notify(arrived, peer, [0])

        # One cell counts all: when it has reached the number of ranks, every row is there.
        pld.wait(arrived, [0], count)
        pld.get(y, me, inbox)


@pld.host
def dynamic_ranks(
    xs: pld.Tensor[[pld.WORLD, 1, 8], pld.f32], ys: pld.Out[pld.Tensor[[pld.WORLD, pld.WORLD, 8], pld.f32]]
) -> None:
    inbox_buf = pld.alloc_window([pld.WORLD, 8], pld.f32)
    arrived_buf = pld.alloc_window([1], pld.i32)
    for r in pld.ranks(pld.WORLD):
        inbox = pld.window(inbox_buf, [pld.WORLD, 8], pld.f32)
        arrived = pld.window(arrived_buf, [1], pld.i32)
        give(xs[r], ys[r], inbox, arrived, device=r)


if __name__ == "__main__":
    step.main(dynamic_ranks, ys=lambda x: x[:, 0])
