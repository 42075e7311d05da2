// What every C++ test uses: checks that say where and what, a deadline, and programs to try things on.
#ifndef TEST_HPP
#define TEST_HPP

#include <pld/pld.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#define CHECK(condition)                                          \
  do {                                                            \
    if (!(condition)) test::fail(__FILE__, __LINE__, #condition); \
  } while (0)

// The text contains the part.
#define CHECK_CONTAINS(text, part) test::contains(__FILE__, __LINE__, (text), (part))

// The call throws an error of this status, whose message contains the part.
#define CHECK_THROWS(wanted, part, call)                             \
  do {                                                               \
    bool thrown = false;                                             \
    try {                                                            \
      call;                                                          \
    } catch (const pld::Error &error) {                              \
      thrown = true;                                                 \
      test::is(__FILE__, __LINE__, #call, (wanted), error.status()); \
      test::contains(__FILE__, __LINE__, error.what(), (part));      \
    }                                                                \
    if (!thrown) test::fail(__FILE__, __LINE__, "throws: " #call);   \
  } while (0)

// The call returns this status.
#define CHECK_STATUS(wanted, call) test::is(__FILE__, __LINE__, #call, (wanted), (call))

namespace test {

[[noreturn]] inline void fail(const char *file, int line, const std::string &what) {
  std::fprintf(stderr, "%s:%d: not so: %s\n", file, line, what.c_str());
  std::exit(1);
}

inline void contains(const char *file, int line, const std::string &text, const std::string &part) {
  if (text.find(part) == std::string::npos) fail(file, line, "\"" + part + "\" is in:\n" + text);
}

inline void is(const char *file, int line, const char *call, pld::Status wanted, pld::Status got) {
  if (wanted != got)
    fail(file, line, std::string(call) + " is " + name(wanted) + ", but " + name(got) + ": " + pld::last_error());
}

// A test that hangs ends here.
inline void deadline(unsigned seconds = 120) { alarm(seconds); }

// The finished program is the one that this text describes.
inline void same_text(const pld::Program &program, const std::string &expected) {
  const std::string got = program.text(), wanted = pld::Program::parse(expected, "expected").text();
  if (got == wanted) return;
  std::fprintf(stderr, "the program is\n\n%s\nand not\n\n%s\n", got.c_str(), wanted.c_str());
  std::exit(1);
}

// A program of one entry with one task, whose body is given what a test needs, as `text` is:
//
//     entry e(x: tensor[8] i32 in, y: tensor[8] i32 out, f: tensor[4, 8] f32 inout, w: window[4, 8] f32,
//             sig: window[world] i32, me: i32, n: i64, q: f32, on: bool) { at t { ... } }
struct Given {
  pld::Tensor x, y, f, w, sig;
  pld::Scalar me, n, q, on;
};

template <class Body>
pld::Program program(Body &&body, bool finished = true) {
  using namespace pld;
  Program prog("given");
  const Entry e = prog.entry("e", [&] {
    Given g;
    g.x = prog.in("x", I32, {8});
    g.y = prog.out("y", I32, {8});
    g.f = prog.inout("f", F32, {4, 8});
    g.w = prog.window("w", F32, {4, 8});
    g.sig = prog.window("sig", I32, {world_size});
    g.me = prog.scalar("me", I32);
    g.n = prog.scalar("n", I64);
    g.q = prog.scalar("q", F32);
    g.on = prog.scalar("on", BOOL);
    prog.at("t", [&] { body(g); });
  });
  prog.host([&] {
    const Tensor xs = prog.in("xs", I32, {world_size, 8}), ys = prog.out("ys", I32, {world_size, 8});
    const Tensor fs = prog.inout("fs", F32, {world_size, 4, 8});
    const Scalar n = prog.scalar("n", I64), q = prog.scalar("q", F32), on = prog.scalar("on", BOOL);
    const Buffer w = prog.alloc_window("w_buf", F32, {4, 8}), sig = prog.alloc_window("sig_buf", I32, {world_size});
    ranks("r", 0, world_size, [&](Scalar r) {
      dispatch(e, r, {xs[r], ys[r], fs[r], w.view(F32, {4, 8}), sig.view(I32, {world_size}), r, n, q, on});
    });
  });
  if (finished) prog.finish();
  return prog;
}

// The text of such a program.
inline std::string text(const std::string &body) {
  return R"(program given
entry e(x: tensor[8] i32 in, y: tensor[8] i32 out, f: tensor[4, 8] f32 inout, w: window[4, 8] f32,
        sig: window[world] i32, me: i32, n: i64, q: f32, on: bool) {
  at t {
)" + body +
         R"(
  }
}
host (xs: tensor[world, 8] i32 in, ys: tensor[world, 8] i32 out, fs: tensor[world, 4, 8] f32 inout, n: i64, q: f32,
      on: bool) {
  w_buf = alloc_window [4, 8] f32
  sig_buf = alloc_window [world] i32
  ranks r in 0..world {
    w = window w_buf [4, 8] f32
    sig = window sig_buf [world] i32
    dispatch e(xs[r], ys[r], fs[r], w, sig, r, n, q, on) device r
  }
}
)";
}

// outs[r] = ins[r - 1] * scale: every rank puts its row into the next one's window. A launch has the arguments ins,
// outs, scale; the window's cell counts up to `epoch` if it is persistent, else to 1.
inline pld::Program shift(std::int64_t columns, bool persistent = false) {
  using namespace pld;
  Program prog("shift");
  const Entry entry = prog.entry("shift_rank", [&] {
    const Tensor inp = prog.in("inp", F32, {1, columns}), outp = prog.out("outp", F32, {1, columns});
    const Tensor data = prog.window("data", F32, {1, columns}), ready = prog.window("ready", I32, {1, 1});
    const Scalar me = prog.scalar("me", I32), scale = prog.scalar("scale", F32);
    prog.at("exchange", [&] {
      const Scalar next = let("next", (me + 1) % world_size);
      put(data.at(0, 0), next, inp.at(0, 0), {1, columns});
      notify(ready.at(0, 0), next);
      wait(ready.at(0, 0), 1);
      if (persistent) {
        ready(0, 0) = 0;
        barrier();
      }
      store(load(data, {0, 0}, {1, columns}) * scale, outp, {0, 0});
    });
  });
  prog.host([&] {
    const Tensor ins = prog.in("ins", F32, {world_size, 1, columns});
    const Tensor outs = prog.out("outs", F32, {world_size, 1, columns});
    const Scalar scale = prog.scalar("scale", F32);
    const Buffer data = prog.alloc_window("data_buf", F32, {1, columns});
    const Buffer ready = prog.alloc_window("ready_buf", I32, {1, 1});
    ranks("r", 0, world_size, [&](Scalar r) {
      dispatch(entry, r, {ins[r], outs[r], data.view(F32, {1, columns}), ready.view(I32, {1, 1}), r, scale});
    });
  });
  prog.finish();
  return prog;
}

// Inputs of `ranks` ranks from `first` on, which depend on rank, place and launch.
inline std::vector<float> inputs(std::uint32_t first, std::uint32_t ranks, std::int64_t columns, int launch = 0) {
  std::vector<float> in;
  for (std::uint32_t r = first; r < first + ranks; r++)
    for (std::int64_t c = 0; c < columns; c++)
      in.push_back(static_cast<float>(launch * 10000 + 100 * static_cast<int>(r) + c));
  return in;
}

// The outputs of the ranks from `first` on, of `nranks`, are those of a shift.
inline bool shifted(const std::vector<float> &out, std::uint32_t first, std::uint32_t nranks, std::int64_t columns,
                    float scale, int launch = 0) {
  for (std::size_t i = 0; i < out.size(); i++) {
    const auto rank = first + static_cast<std::uint32_t>(i) / static_cast<std::uint32_t>(columns);
    const std::vector<float> source = inputs((rank + nranks - 1) % nranks, 1, columns, launch);
    const float difference = out[i] - scale * source[i % static_cast<std::size_t>(columns)];
    if (difference < 0 || difference > 0) return false;
  }
  return !out.empty();
}

}  // namespace test

#endif
