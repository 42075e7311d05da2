// Step 6: the two shifts of step 5 without tiles, from memory to memory: pushed[r] = x[r - 1] by put, pulled[r] =
// x[r + 1] by get.
//
//   cmake -S examples/cpp -B build/cpp -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build/cpp
//   build/cpp/06_put_get
#include "step.hpp"

using namespace pld;

constexpr int kColumns = 64;

static Program put_get() {
  Program prog("put_get");
  const Entry shift = prog.entry("shift", [&] {
    const Tensor x = prog.in("x", F32, {1, kColumns});
    const Tensor pushed = prog.out("pushed", F32, {1, kColumns}), pulled = prog.out("pulled", F32, {1, kColumns});
    const Tensor inbox = prog.window("inbox", F32, {1, kColumns}), shown = prog.window("shown", F32, {1, kColumns});
    const Tensor signal = prog.window("signal", I32, {2, 1});
    const Scalar me = prog.scalar("me", I32);
    prog.at("exchange", [&] {
      const Scalar next = let("next", (me + 1) % world_size);
      const Scalar previous = let("previous", (me + world_size - 1) % world_size);

      put(inbox, next, x);  // all of both
      notify(signal.at(0, 0), next);
      put(shown, me, x);  // to this rank itself: a copy
      notify(signal.at(1, 0), previous);

      wait(signal.at(0, 0), 1);
      get(pushed, me, inbox);
      wait(signal.at(1, 0), 1);
      // The same extents again, as a region: where it begins in both, and its shape.
      get(pulled.at(0, 0), next, shown.at(0, 0), {1, kColumns});
    });
  });

  prog.host([&] {
    const Tensor xs = prog.in("xs", F32, {world_size, 1, kColumns});
    const Tensor pushed = prog.out("pushed", F32, {world_size, 1, kColumns});
    const Tensor pulled = prog.out("pulled", F32, {world_size, 1, kColumns});
    const Buffer inbox = prog.alloc_window("inbox_buf", F32, {1, kColumns});
    const Buffer shown = prog.alloc_window("shown_buf", F32, {1, kColumns});
    const Buffer signal = prog.alloc_window("signal_buf", I32, {2, 1});
    ranks("r", 0, world_size, [&](Scalar r) {
      dispatch(shift, r, {xs[r], pushed[r], pulled[r], inbox.view(), shown.view(), signal.view(), r});
    });
  });
  return prog;
}

int main(int argc, char **argv) {
  return step::main(argc, argv, "06_put_get", put_get,
                    {{"x", F32, 1, kColumns},
                     {"pushed", F32, 1, kColumns, step::of_previous},
                     {"pulled", F32, 1, kColumns, step::of_next}});
}
