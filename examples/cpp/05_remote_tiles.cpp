// Step 5: tiles and peers. remote_store sends a tile into a peer's window; remote_load brings a part of a peer's window
// into a tile: stored[r] = x[r - 1], loaded[r] = x[r + 1], around the ring of ranks.
//
//   cmake -S examples/cpp -B build/cpp -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/cpp
//   build/cpp/05_remote_tiles
#include "step.hpp"

using namespace pld;

constexpr int kColumns = 64;

static Program remote_tiles() {
  Program prog("remote_tiles");
  const Entry shift = prog.entry("shift", [&] {
    const Tensor x = prog.in("x", F32, {1, kColumns});
    const Tensor stored = prog.out("stored", F32, {1, kColumns}), loaded = prog.out("loaded", F32, {1, kColumns});
    const Tensor inbox = prog.window("inbox", F32, {1, kColumns}), shown = prog.window("shown", F32, {1, kColumns});
    const Tensor signal = prog.window("signal", I32, {2, 1});
    const Scalar me = prog.scalar("me", I32);

    // The next rank's inbox, then its signal.
    prog.at("send", [&] {
      const Scalar next = let("next", (me + 1) % world_size);
      remote_store(load(x, {0, 0}, {1, kColumns}), inbox.at(0, 0), next);
      notify(signal.at(0, 0), next);
      wait(signal.at(0, 0), 1);
      store(load(inbox, {0, 0}, {1, kColumns}), stored, {0, 0});
    });

    // This rank's own window, and the signal of the rank that will read there.
    prog.at("show", [&] {
      store(load(x, {0, 0}, {1, kColumns}), shown, {0, 0});
      const Scalar previous = let("previous", (me + world_size - 1) % world_size);
      notify(signal.at(1, 0), previous);
      wait(signal.at(1, 0), 1);
      store(remote_load(shown, (me + 1) % world_size, {0, 0}, {1, kColumns}), loaded, {0, 0});
    });
  });

  prog.host([&] {
    const Tensor xs = prog.in("xs", F32, {world_size, 1, kColumns});
    const Tensor stored = prog.out("stored", F32, {world_size, 1, kColumns});
    const Tensor loaded = prog.out("loaded", F32, {world_size, 1, kColumns});
    const Buffer inbox = prog.alloc_window("inbox_buf", F32, {1, kColumns});
    const Buffer shown = prog.alloc_window("shown_buf", F32, {1, kColumns});
    const Buffer signal = prog.alloc_window("signal_buf", I32, {2, 1});
    ranks("r", 0, world_size, [&](Scalar r) {
      dispatch(shift, r, {xs[r], stored[r], loaded[r], inbox.view(), shown.view(), signal.view(), r});
    });
  });
  return prog;
}

int main(int argc, char **argv) {
  return step::main(argc, argv, "05_remote_tiles", remote_tiles,
                    {{"x", F32, 1, kColumns},
                     {"stored", F32, 1, kColumns, step::of_previous},
                     {"loaded", F32, 1, kColumns, step::of_next}});
}
