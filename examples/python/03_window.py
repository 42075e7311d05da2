"""Step 3: a window. To its own rank it is a tensor like any other: x goes in, and comes out as y."""

import pld

import step


@pld.entry
def round_trip(
    x: pld.Tensor[[1, 64], pld.f32], y: pld.Out[pld.Tensor[[1, 64], pld.f32]], data: pld.Window[[1, 64], pld.f32]
) -> None:
    with pld.at("there"):
        pld.store(pld.load(x, [0, 0], [1, 64]), data, [0, 0])
    with pld.at("back"):
        pld.store(pld.load(data, [0, 0], [1, 64]), y, [0, 0])


@pld.host
def window_round_trip(
    xs: pld.Tensor[[pld.WORLD, 1, 64], pld.f32], ys: pld.Out[pld.Tensor[[pld.WORLD, 1, 64], pld.f32]]
) -> None:
    data_buf = pld.alloc_window([1, 64], pld.f32)
    for r in pld.ranks(pld.WORLD):
        data = pld.window(data_buf, [1, 64], pld.f32)
        round_trip(xs[r], ys[r], data, device=r)


if __name__ == "__main__":
    step.main(window_round_trip, ys=lambda x: x)
