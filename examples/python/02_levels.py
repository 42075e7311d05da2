"""Step 2: three levels. The host driver dispatches, the entry orders tasks, tasks compute: y[r] = x[r] * (r + 1)."""

import numpy as np
import pld

import step


@pld.entry
def scale(
    x: pld.Tensor[[8, 8], pld.f32], y: pld.InOut[pld.Tensor[[8, 8], pld.f32]], factor: pld.Scalar[pld.i32]
) -> None:
    with pld.at("copy"):
        pld.store(pld.load(x, [0, 0], [8, 8]), y, [0, 0])
    with pld.at("multiply"):  # reads y, so it waits for the task that writes y
        pld.store(pld.load(y, [0, 0], [8, 8]) * pld.cast(factor, pld.f32), y, [0, 0])


@pld.host
def levels(xs: pld.Tensor[[pld.WORLD, 8, 8], pld.f32], ys: pld.InOut[pld.Tensor[[pld.WORLD, 8, 8], pld.f32]]) -> None:
    for r in pld.ranks(pld.WORLD):
        scale(xs[r], ys[r], r + 1, device=r)


if __name__ == "__main__":
    step.main(levels, ys=lambda x: x * (1 + np.arange(len(x)))[:, None, None])
