"""Step 16: three collectives in one program: a tensor-parallel layer. Rank 0 has the tokens and gives them to all.
Each rank multiplies them by its share of the weights - here by the number r + 1 - which gives it a part of every row
of the result. Each rank adds up one row, adds the token to it (the residual), and all rows come together again: y =
x[0] * (1 + 2 + ... + world) + x[0], on every rank."""

import pld

import step


@pld.entry
def layer(
    x: pld.Tensor[[pld.WORLD, 8], pld.f32],
    y: pld.Out[pld.Tensor[[pld.WORLD, 8], pld.f32]],
    tokens: pld.Window[[pld.WORLD, 8], pld.f32],
    parts: pld.Window[[pld.WORLD, 8], pld.f32],
) -> None:
    with pld.at("layer"):
        me = pld.rank(tokens)
        pld.put(tokens, me, x)
        pld.broadcast(tokens, 0)

        weight = pld.cast(me + 1, pld.f32)
        pld.store(pld.load(tokens, [0, 0], [pld.WORLD, 8]) * weight, parts, [0, 0])
        pld.reduce_scatter(parts, "sum")

        pld.store(pld.load(parts, [me, 0], [1, 8]) + pld.load(tokens, [me, 0], [1, 8]), parts, [me, 0])
        row = pld.slice(parts, [me, 0], [1, 8])
        pld.allgather(tokens, row)
        pld.get(y, me, tokens)


@pld.host
def composed(
    xs: pld.Tensor[[pld.WORLD, pld.WORLD, 8], pld.f32], ys: pld.Out[pld.Tensor[[pld.WORLD, pld.WORLD, 8], pld.f32]]
) -> None:
    tokens_buf = pld.alloc_window([pld.WORLD, 8], pld.f32)
    parts_buf = pld.alloc_window([pld.WORLD, 8], pld.f32)
    for r in pld.ranks(pld.WORLD):
        tokens = pld.window(tokens_buf, [pld.WORLD, 8], pld.f32)
        parts = pld.window(parts_buf, [pld.WORLD, 8], pld.f32)
        layer(xs[r], ys[r], tokens, parts, device=r)


if __name__ == "__main__":
    step.main(composed, ys=lambda x: x[0] * (sum(range(len(x) + 1)) + 1))
