"""Step 5: tiles and peers. remote_store sends a tile into a peer's window; remote_load brings a part of a peer's
window into a tile: stored[r] = x[r - 1], loaded[r] = x[r + 1], around the ring of ranks."""

import numpy as np
import pld

import step


@pld.entry
def shift(
    x: pld.Tensor[[1, 64], pld.f32],
    stored: pld.Out[pld.Tensor[[1, 64], pld.f32]],
    loaded: pld.Out[pld.Tensor[[1, 64], pld.f32]],
    inbox: pld.Window[[1, 64], pld.f32],
    shown: pld.Window[[1, 64], pld.f32],
    signal: pld.Window[[2, 1], pld.i32],
    me: pld.Scalar[pld.i32],
) -> None:
    # Send: the next rank's inbox, then its signal.
    with pld.at("send"):
        next = (me + 1) % pld.WORLD
        pld.remote_store(pld.load(x, [0, 0], [1, 64]), inbox, next, [0, 0])
        pld.notify(signal, next, [0, 0])
        pld.wait(signal, [0, 0], 1)
        pld.store(pld.load(inbox, [0, 0], [1, 64]), stored, [0, 0])

    # Show: this rank's own window, and the signal of the rank that will read there.
    with pld.at("show"):
        pld.store(pld.load(x, [0, 0], [1, 64]), shown, [0, 0])
        previous = (me + pld.WORLD - 1) % pld.WORLD
        pld.notify(signal, previous, [1, 0])
        pld.wait(signal, [1, 0], 1)
        pld.store(pld.remote_load(shown, (me + 1) % pld.WORLD, [0, 0], [1, 64]), loaded, [0, 0])


@pld.host
def remote_tiles(
    xs: pld.Tensor[[pld.WORLD, 1, 64], pld.f32],
    stored: pld.Out[pld.Tensor[[pld.WORLD, 1, 64], pld.f32]],
    loaded: pld.Out[pld.Tensor[[pld.WORLD, 1, 64], pld.f32]],
) -> None:
    inbox_buf = pld.alloc_window([1, 64], pld.f32)
    shown_buf = pld.alloc_window([1, 64], pld.f32)
    signal_buf = pld.alloc_window([2, 1], pld.i32)
    for r in pld.ranks(pld.WORLD):
        inbox = pld.window(inbox_buf, [1, 64], pld.f32)
        shown = pld.window(shown_buf, [1, 64], pld.f32)
        signal = pld.window(signal_buf, [2, 1], pld.i32)
        shift(xs[r], stored[r], loaded[r], inbox, shown, signal, r, device=r)


if __name__ == "__main__":
    step.main(remote_tiles, stored=lambda x: np.roll(x, 1, axis=0), loaded=lambda x: np.roll(x, -1, axis=0))
