"""Step 6: the two shifts of step 5 without tiles, from memory to memory: pushed[r] = x[r - 1] by put, pulled[r] = x[r
+ 1] by get."""

import numpy as np
import pld

import step


@pld.entry
def shift(
    x: pld.Tensor[[1, 64], pld.f32],
    pushed: pld.Out[pld.Tensor[[1, 64], pld.f32]],
    pulled: pld.Out[pld.Tensor[[1, 64], pld.f32]],
    inbox: pld.Window[[1, 64], pld.f32],
    shown: pld.Window[[1, 64], pld.f32],
    signal: pld.Window[[2, 1], pld.i32],
    me: pld.Scalar[pld.i32],
) -> None:
    with pld.at("exchange"):
        next = (me + 1) % pld.WORLD
        previous = (me + pld.WORLD - 1) % pld.WORLD

        pld.put(inbox, next, x)  # all of both
        pld.notify(signal, next, [0, 0])
        pld.put(shown, me, x)  # to this rank itself: a copy
        pld.notify(signal, previous, [1, 0])

        pld.wait(signal, [0, 0], 1)
        pld.get(pushed, me, inbox)
        pld.wait(signal, [1, 0], 1)
        # The same extents again, as a region: where it begins in both, and its shape.
        pld.get(pulled, next, shown, dst_offsets=[0, 0], src_offsets=[0, 0], shape=[1, 64])


@pld.host
def put_get(
    xs: pld.Tensor[[pld.WORLD, 1, 64], pld.f32],
    pushed: pld.Out[pld.Tensor[[pld.WORLD, 1, 64], pld.f32]],
    pulled: pld.Out[pld.Tensor[[pld.WORLD, 1, 64], pld.f32]],
) -> None:
    inbox_buf = pld.alloc_window([1, 64], pld.f32)
    shown_buf = pld.alloc_window([1, 64], pld.f32)
    signal_buf = pld.alloc_window([2, 1], pld.i32)
    for r in pld.ranks(pld.WORLD):
        inbox = pld.window(inbox_buf, [1, 64], pld.f32)
        shown = pld.window(shown_buf, [1, 64], pld.f32)
        signal = pld.window(signal_buf, [2, 1], pld.i32)
        shift(xs[r], pushed[r], pulled[r], inbox, shown, signal, r, device=r)


if __name__ == "__main__":
    step.main(put_get, pushed=lambda x: np.roll(x, 1, axis=0), pulled=lambda x: np.roll(x, -1, axis=0))
