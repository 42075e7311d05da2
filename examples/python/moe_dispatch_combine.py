"""MoE dispatch and combine between the ranks of an expert-parallel world, called once a layer: the program of
examples/pld/moe_dispatch_combine.pld, whose comments explain the protocol, with an expert in numpy. Checked by the golden
harness for several kinds of routing.

    python examples/python/moe_dispatch_combine.py                       two ranks, threads
    python examples/python/moe_dispatch_combine.py --ranks 4 --processes
"""

import argparse
from typing import Any, Callable, Dict

import numpy as np

import pld
from pld.testing import ScalarSpec, TensorSpec, exact, run, to_dtype, to_numbers

Array = np.ndarray[Any, Any]

T = pld.const("T", 128)
TOPK = pld.const("TOPK", 8)
D = pld.const("D", 4096)
N_LOCAL = pld.const("N_LOCAL", 16)
MAX_PER_SRC = pld.const("MAX_PER_SRC", 128)
PAD = pld.const("PAD", 8)
BLOCKS = pld.const("BLOCKS", 4)
WORLD = pld.world_size()
LANES = N_LOCAL * WORLD * MAX_PER_SRC


def answers_of(expert: Array, x: Array, scale: Array, weight: Array) -> Array:
    """What experts make of rows: a different thing for each expert."""
    factor = (scale * (np.float32(1) + np.float32(0.125) * expert.astype(np.float32))) * weight
    return to_dtype(x.astype(np.float32) * factor[:, np.newaxis], pld.bf16)


def expert(context: pld.TaskContext) -> None:
    """The engine's kernel, a block an expert: reads the lanes of the expert, writes its answers packed."""
    x, scales, weights, counts, first, y = context.tensors
    e = context.block
    number = np.array([context.rank * N_LOCAL.value + e])
    for src in range(context.nranks):
        lane, to, rows = (e * context.nranks + src) * int(MAX_PER_SRC), first[e, src], counts[src, e]
        part = slice(lane, lane + rows)
        y[to : to + rows] = answers_of(number, x[part], scales[part, 0], weights[part, 0])




@pld.entry
def moe(
    x: pld.Tensor[[T, D], pld.i8],
    scales: pld.Tensor[[T, 1], pld.f32],
    indices: pld.Tensor[[T, TOPK], pld.i32],
    weights: pld.Tensor[[T, TOPK], pld.f32],
    tokens: pld.Tensor[[1], pld.i32],
    out: pld.Out[pld.Tensor[[T, D], pld.f32]],
    sent: pld.Window[[WORLD, N_LOCAL], pld.i32],
    slots: pld.Window[[T, TOPK], pld.i32],
    counts: pld.Window[[WORLD, N_LOCAL], pld.i32],
    counted: pld.Window[[WORLD, 1], pld.i32],
    recv_x: pld.Window[[LANES, D], pld.i8],
    recv_scale: pld.Window[[LANES, PAD], pld.f32],
    recv_weight: pld.Window[[LANES, PAD], pld.f32],
    recv_route: pld.Window[[LANES, PAD], pld.i32],
    arrived: pld.Window[[WORLD, 1], pld.i32],
    first: pld.Window[[N_LOCAL, WORLD], pld.i32],
    y: pld.Window[[WORLD * T * TOPK, D], pld.bf16],
    routed_y: pld.Window[[T * TOPK, D], pld.bf16],
    returned: pld.Window[[WORLD, 1], pld.i32],
    me: pld.Scalar[pld.i32],
    epoch: pld.Scalar[pld.i32],
) -> None:
    # Which row of its lane each route takes, and how many rows each lane gets.
    with pld.at("route") as routed:
        rows = pld.array(pld.i32, WORLD * N_LOCAL)
        for t in pld.range(pld.clamp(tokens[0], 0, T)):
            for k in pld.range(TOPK):
                eid = indices[t, k]
                slots[t, k] = rows[eid]
                rows[eid] += 1
        for dst in pld.range(WORLD):
            for e in pld.range(N_LOCAL):
                sent[dst, e] = rows[dst * N_LOCAL + e]
            pld.put(counts, dst, sent, dst_offsets=[me, 0], src_offsets=[dst, 0], shape=[1, N_LOCAL])
            with pld.if_(dst != me):
                pld.notify(counted, dst, [me, 0])

    with pld.spmd("push", BLOCKS) as pushed:
        b = pushed.block
        for t in pld.range(b, pld.clamp(tokens[0], 0, T), BLOCKS):
            for k in pld.range(TOPK):
                eid = indices[t, k]
                dst = eid / N_LOCAL
                lane = (eid % N_LOCAL * WORLD + me) * MAX_PER_SRC
                slot = slots[t, k]
                lane_x = pld.slice(recv_x, [lane, 0], [MAX_PER_SRC, D])
                pld.put(lane_x, dst, x, dst_offsets=[slot, 0], src_offsets=[t, 0], shape=[1, D])
                row = lane + slot
                scale = pld.full(pld.f32, [1, PAD], scales[t, 0])
                pld.remote_store(scale, recv_scale, dst, [row, 0])
                weight = pld.full(pld.f32, [1, PAD], weights[t, k])
                pld.remote_store(weight, recv_weight, dst, [row, 0])
                route = pld.full(pld.i32, [1, PAD], t * TOPK + k)
                pld.remote_store(route, recv_route, dst, [row, 0])
        for dst in pld.range(WORLD):
            with pld.if_(dst != me):
                pld.notify(arrived, dst, [me, 0])

    # Where the answers to each lane begin in y: expert by expert, packed.
    with pld.at("place", deps=[routed]) as placed:
        for src in pld.range(WORLD):
            with pld.if_(src != me):
                pld.wait(counted, [src, 0], epoch)
        total = pld.var(pld.i32, 0)
        for e in pld.range(N_LOCAL):
            for src in pld.range(WORLD):
                first[e, src] = total
                total += counts[src, e]

    with pld.at("receive", deps=[pushed]) as received:
        for src in pld.range(WORLD):
            with pld.if_(src != me):
                pld.defer_wait(arrived, [src, 0], epoch * BLOCKS)

    answers = pld.extern_task(
        expert,
        *(pld.In(window) for window in (recv_x, recv_scale, recv_weight, counts, first)),
        pld.Out(y),
        blocks=N_LOCAL,
        deps=[placed, received],
    )

    with pld.spmd("answer", N_LOCAL, deps=[answers]) as answered:
        e = answered.block
        for src in pld.range(WORLD):
            lane = (e * WORLD + src) * MAX_PER_SRC
            for i in pld.range(counts[src, e]):
                to, at = [recv_route[lane + i, 0], 0], [first[e, src] + i, 0]
                pld.put(routed_y, src, y, dst_offsets=to, src_offsets=at, shape=[1, D])
        for src in pld.range(WORLD):
            with pld.if_(src != me):
                pld.notify(returned, src, [me, 0])

    with pld.at("gather", deps=[answered]) as gathered:
        for src in pld.range(WORLD):
            with pld.if_(src != me):
                pld.defer_wait(returned, [src, 0], epoch * N_LOCAL)

    with pld.spmd("combine", BLOCKS, deps=[gathered]):
        b = pld.block_index()
        for t in pld.range(b, pld.clamp(tokens[0], 0, T), BLOCKS):
            sum = pld.full(pld.f32, [1, D], 0.0)
            for k in pld.range(TOPK):
                answer = pld.load(routed_y, [t * TOPK + k, 0], [1, D])
                wide = pld.cast(answer, pld.f32)
                sum += wide
            pld.store(sum, out, [t, 0])


@pld.host
def moe_dispatch_combine(
    x: pld.Tensor[[WORLD, T, D], pld.i8],
    scales: pld.Tensor[[WORLD, T, 1], pld.f32],
    indices: pld.Tensor[[WORLD, T, TOPK], pld.i32],
    weights: pld.Tensor[[WORLD, T, TOPK], pld.f32],
    tokens: pld.Tensor[[WORLD, 1], pld.i32],
    out: pld.Out[pld.Tensor[[WORLD, T, D], pld.f32]],
    epoch: pld.Scalar[pld.i32],
) -> None:
    buffers = {
        name: (pld.alloc_window(parameter.shape, parameter.dtype, name=f"{name}_buf"), parameter)
        for name, parameter in moe.parameters.items()
        if parameter.kind == "window"
    }
    for r in pld.ranks(WORLD):
        windows = {name: pld.window(buffer, p.shape, p.dtype) for name, (buffer, p) in buffers.items()}
        parts = (x[r], scales[r], indices[r], weights[r], tokens[r], out[r])
        moe(*parts, **windows, me=r, epoch=epoch, device=r)


Routing = Callable[[np.random.Generator, int, int], Array]
"""From a source of numbers, a rank and the number of ranks: a rank's table of experts, [T, TOPK]."""


def spread(random: np.random.Generator, rank: int, ranks: int) -> Array:
    """Experts at random."""
    return np.stack([random.permutation(ranks * int(N_LOCAL))[: int(TOPK)] for _ in range(T)])


def hot(random: np.random.Generator, rank: int, ranks: int) -> Array:
    """One expert in every token."""
    table = spread(random, rank, ranks) // ranks * ranks
    table[:, 0] = 1
    return table


def own(random: np.random.Generator, rank: int, ranks: int) -> Array:
    """Own experts only."""
    return np.stack([rank * int(N_LOCAL) + random.permutation(int(N_LOCAL))[: int(TOPK)] for _ in range(T)])


def golden(tensors: Dict[str, Any]) -> None:
    """What each rank computes from its own tokens, as if it had all the experts: the same operations in the same order,
    so the same bits."""
    for rank, tokens in enumerate(tensors["tokens"][:, 0]):
        x, scale = tensors["x"][rank, :tokens], tensors["scales"][rank, :tokens, 0]
        sum = np.zeros((tokens, int(D)), np.float32)
        for k in range(TOPK):
            experts, weights = (tensors[name][rank, :tokens, k] for name in ("indices", "weights"))
            sum += to_numbers(answers_of(experts, x, scale, weights), pld.bf16)
        tensors["out"][rank, :tokens] = sum


def main() -> None:
    parser = argparse.ArgumentParser(description="MoE dispatch and combine, checked.")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--processes", action="store_true")
    parser.add_argument("--layers", type=int, default=3, help="launches for each kind of routing")
    arguments = parser.parse_args()
    ranks = arguments.ranks

    for routing in (spread, hot, own):

        def indices(layer: int, routing: Routing = routing) -> Array:
            return np.stack([routing(np.random.default_rng([layer, rank]), rank, ranks) for rank in range(ranks)])

        def tokens(layer: int) -> Array:
            return np.array([[0 if (rank + layer) % 3 == 0 else int(T) - rank] for rank in range(ranks)])

        outcome = run(
            moe_dispatch_combine,
            [
                TensorSpec("x", [ranks, T, D], pld.i8, init="random"),
                TensorSpec("scales", [ranks, T, 1], pld.f32, init="random"),
                TensorSpec("indices", [ranks, T, TOPK], pld.i32, init=indices),
                TensorSpec("weights", [ranks, T, TOPK], pld.f32, init="random"),
                TensorSpec("tokens", [ranks, 1], pld.i32, init=tokens),
                TensorSpec("out", [ranks, T, D], pld.f32),
                ScalarSpec("epoch", pld.i32, lambda launch: launch),
            ],
            golden,
            ranks=ranks,
            transport="processes" if arguments.processes else "threads",
            launches=arguments.layers,
            persistent=True,
            check=False,
            comparators={"out": exact},
        )
        print(f"{routing.__doc__} {outcome}")


if __name__ == "__main__":
    main()
