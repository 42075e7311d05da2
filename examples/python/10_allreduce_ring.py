"""Step 10: the same all-reduce around a ring, where a rank sends to its next one only. In world - 1 steps partial
sums travel and grow, until each rank has one row complete; in world - 1 more the complete rows travel."""

import pld

import step


@pld.entry
def allreduce(
    x: pld.Tensor[[pld.WORLD, 8], pld.f32],
    y: pld.Out[pld.Tensor[[pld.WORLD, 8], pld.f32]],
    data: pld.Window[[pld.WORLD, 8], pld.f32],
    inbox: pld.Window[[pld.WORLD, 8], pld.f32],
    arrived: pld.Window[[2], pld.i32],
    me: pld.Scalar[pld.i32],
) -> None:
    with pld.at("ring"):
        pld.put(data, me, x)
        next = (me + 1) % pld.WORLD

        # Row me - step goes on, and row me - step - 1 comes: each step has a row of the inbox for itself.
        for step in pld.range(pld.WORLD - 1):
            row = (me + pld.WORLD - step) % pld.WORLD
            pld.put(inbox, next, data, dst_offsets=[step, 0], src_offsets=[row, 0], shape=[1, 8])
            pld.notify(arrived, next, [0])
            pld.wait(arrived, [0], step + 1)
            grows = (row + pld.WORLD - 1) % pld.WORLD
            pld.store(pld.load(inbox, [step, 0], [1, 8]) + pld.load(data, [grows, 0], [1, 8]), data, [grows, 0])

        # Row me + 1 is complete here. Complete rows go straight to their places.
        for step in pld.range(pld.WORLD - 1):
            row = (me + 1 + pld.WORLD - step) % pld.WORLD
            pld.put(data, next, data, dst_offsets=[row, 0], src_offsets=[row, 0], shape=[1, 8])
            pld.notify(arrived, next, [1])
            pld.wait(arrived, [1], step + 1)
        pld.get(y, me, data)


@pld.host
def allreduce_ring(
    xs: pld.Tensor[[pld.WORLD, pld.WORLD, 8], pld.f32], ys: pld.Out[pld.Tensor[[pld.WORLD, pld.WORLD, 8], pld.f32]]
) -> None:
    data_buf = pld.alloc_window([pld.WORLD, 8], pld.f32)
    inbox_buf = pld.alloc_window([pld.WORLD, 8], pld.f32)
    arrived_buf = pld.alloc_window([2], pld.i32)
    for r in pld.ranks(pld.WORLD):
        data = pld.window(data_buf, [pld.WORLD, 8], pld.f32)
        inbox = pld.window(inbox_buf, [pld.WORLD, 8], pld.f32)
        arrived = pld.window(arrived_buf, [2], pld.i32)
        allreduce(xs[r], ys[r], data, inbox, arrived, r, device=r)


if __name__ == "__main__":
    step.main(allreduce_ring, ys=lambda x: x.sum(axis=0))
