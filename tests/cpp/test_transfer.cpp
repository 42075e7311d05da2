// Transfers: put, get, combinations, and tiles of other ranks.
#include "test.hpp"

using namespace pld;
using test::Given;

int main() {
  test::deadline();
  test::same_text(test::program([](const Given &g) {
                    TransferOptions add, chunks;
                    add.atomic = Atomic::add;
                    chunks.chunk_rows = 1;
                    chunks.chunk_cols = 4;
                    chunks.pipeline = true;
                    put(g.w.at(g.n, 0), 1, g.f.at(0, 0), {1, 8});
                    put(g.w.at(0, 0), g.x(0), g.f.at(g.x(1), 0), {1, 8}, add);
                    put(g.w, g.me, g.f);
                    put(g.w, world_size - 1, g.f, chunks);
                    get(g.f.at(0, 0), 1, g.w.at(2, 0), {Dim(g.n), 8});
                    get(g.f, 0, g.w, chunks);
                    get_reduce(g.f.at(0, 0), 0, world_size, g.w.at(1, 0), Combine::sum, {1, 8});
                    get_reduce(g.f, g.me, g.me + 1, g.w, Combine::max);
                    get_reduce(g.f, 0, 1, g.w, Combine::min);
                    get_reduce(g.f, 0, 1, g.w, Combine::prod);
                    const Tile a = let("a", remote_load(g.w.at(g.n, 0), 1, {1, 8}));
                    const Tile b = let("b", remote_load(g.w, g.me, {0, 0}, {1, 8}));
                    remote_store(a, g.w.at(0, 0), 1);
                    remote_store(b, g.w.at(3, 0), g.me, Atomic::add);
                  }),
                  test::text(R"(
    put w[n, 0] @1 <- f[0, 0] [1, 8]
    put w[0, 0] @(x[0]) <- f[x[1], 0] [1, 8] add
    put w @me <- f
    put w @(world - 1) <- f chunk [1, 4] pipeline
    get f[0, 0] <- w[2, 0] @1 [n, 8]
    get f <- w @0 chunk [1, 4] pipeline
    get_sum f[0, 0] <- w[1, 0] @0..world [1, 8]
    get_max f <- w @me..(me + 1)
    get_min f <- w @0..1
    get_prod f <- w @0..1
    a = remote_load w[n, 0] @1 [1, 8]
    b = remote_load w[0, 0] @me [1, 8]
    remote_store a -> w[0, 0] @1
    remote_store b -> w[3, 0] @me add
)"));
}
