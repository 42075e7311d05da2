"""The guide's all-reduce: every rank stages its row in a window, a barrier of signals makes all rows visible, and every
rank adds up the others'. Checked by the golden harness, on threads and on processes.

    python examples/python/allreduce.py            two ranks
    python examples/python/allreduce.py --ranks 4
"""

import argparse
from typing import Any, Dict

import pld
from pld.testing import TensorSpec, benchmark, run

SIZE = 256


@pld.entry
def allreduce(
    inp: pld.Tensor[[1, SIZE], pld.f32],
    out: pld.Out[pld.Tensor[[1, SIZE], pld.f32]],
    data: pld.Window[[1, SIZE], pld.f32],
    signal: pld.Window[[pld.WORLD, 1], pld.i32],
    me: pld.Scalar[pld.i32],
) -> None:
    world = pld.world_size()
    with pld.at("reduce_step"):
        acc = pld.load(inp, [0, 0], [1, SIZE])
        pld.store(acc, data, [0, 0])

        for peer in pld.range(world):
            with pld.if_(peer != me):
                pld.notify(signal, peer, [me, 0])
        for src in pld.range(world):
            with pld.if_(src != me):
                pld.wait(signal, [src, 0], 1)

        for peer in pld.range(world):
            with pld.if_(peer != me):
                recv = pld.remote_load(data, peer, [0, 0], [1, SIZE])
                acc += recv
        pld.store(acc, out, [0, 0])


@pld.host
def l3_allreduce(
    inputs: pld.Tensor[[pld.WORLD, 1, SIZE], pld.f32],
    outputs: pld.Out[pld.Tensor[[pld.WORLD, 1, SIZE], pld.f32]],
) -> None:
    data_buf = pld.alloc_window([1, SIZE], pld.f32)
    signal_buf = pld.alloc_window([pld.WORLD, 1], pld.i32)
    for r in pld.ranks(pld.world_size()):
        data = pld.window(data_buf, [1, SIZE], pld.f32)
        signal = pld.window(signal_buf, [pld.WORLD, 1], pld.i32)
        allreduce(inputs[r], outputs[r], data, signal, r, device=r)


def golden(tensors: Dict[str, Any]) -> None:
    """Every rank gets the sum of all rows."""
    tensors["outputs"][...] = tensors["inputs"].sum(axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(description="The all-reduce of the guide, checked.")
    parser.add_argument("--ranks", type=int, default=2)
    ranks = parser.parse_args().ranks

    print(l3_allreduce)
    specs = [
        TensorSpec("inputs", [ranks, 1, SIZE], pld.f32, init="random"),
        TensorSpec("outputs", [ranks, 1, SIZE], pld.f32),
    ]
    print(run(l3_allreduce, specs, golden, ranks=ranks, launches=3))
    print(run(l3_allreduce, specs, golden, ranks=ranks, launches=3, transport="processes"))
    print(benchmark(l3_allreduce, specs, ranks=ranks))


if __name__ == "__main__":
    main()
