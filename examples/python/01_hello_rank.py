"""Step 1: one entry, dispatched once a rank. Every rank adds its own number to its part: y[r] = x[r] + r."""

import numpy as np
import pld

import step


@pld.entry
def hello(x: pld.Tensor[[8, 8], pld.f32], y: pld.Out[pld.Tensor[[8, 8], pld.f32]], me: pld.Scalar[pld.i32]) -> None:
    with pld.at("add_rank"):
        pld.store(pld.load(x, [0, 0], [8, 8]) + pld.cast(me, pld.f32), y, [0, 0])


@pld.host
def hello_rank(
    xs: pld.Tensor[[pld.WORLD, 8, 8], pld.f32], ys: pld.Out[pld.Tensor[[pld.WORLD, 8, 8], pld.f32]]
) -> None:
    for r in pld.ranks(pld.WORLD):
        hello(xs[r], ys[r], r, device=r)


if __name__ == "__main__":
    step.main(hello_rank, ys=lambda x: x + np.arange(len(x))[:, None, None])
