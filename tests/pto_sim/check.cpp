// What the instructions compute. The program can also be made with PTO-ISA's own headers, and must find the same.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include <pto/pto-inst.hpp>
#include <pto/comm/pto_comm_inst.hpp>

using namespace pto;

#define CHECK(condition)                                                           \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                                \
    }                                                                              \
  } while (0)

// Rows x cols elements, of which so many are in use.
template <class T, int Rows, int Cols>
using Part = Tile<TileType::Vec, T, Rows, Cols, BLayout::RowMajor, DYNAMIC, DYNAMIC>;
template <class T>
using Matrix = GlobalTensor<T, Shape<1, 1, 1, DYNAMIC, DYNAMIC>, Stride<1, 1, 1, DYNAMIC, 1>>;

template <class T>
Matrix<T> matrix(T *data, int64_t rows, int64_t cols, int64_t stride) {
  return Matrix<T>(data, Shape<1, 1, 1, DYNAMIC, DYNAMIC>(rows, cols), Stride<1, 1, 1, DYNAMIC, 1>(stride));
}

// Runs this as a kernel, everything behind everything before it.
template <class F>
void kernel(F body) {
  cpu_sim::set_execution_context(0, 0, 1);
  body();
}
template <class... F>
void steps(F... step) {
  kernel([&] { ((step(), pipe_barrier(PIPE_ALL)), ...); });
}

// What `compute` makes of a and b, 2 x 5 elements each of tiles of 2 x 32.
template <class T, class F>
void arithmetic(F compute, double (*expected)(double a, double b)) {
  T a[10], b[10], out[10];
  for (int i = 0; i < 10; ++i) {
    a[i] = static_cast<T>(static_cast<float>(3 * i - 11));
    b[i] = static_cast<T>(static_cast<float>(7 - i * i));
    out[i] = static_cast<T>(0.0f);
  }
  Part<T, 2, 32> x(2, 5), y(2, 5), z(2, 5);
  TASSIGN(x, 0x000);
  TASSIGN(y, 0x200);
  TASSIGN(z, 0x400);
  auto from = matrix(a, 2, 5, 5), with = matrix(b, 2, 5, 5), to = matrix(out, 2, 5, 5);
  steps([&] { TLOAD(x, from); }, [&] { TLOAD(y, with); }, [&] { compute(z, x, y); }, [&] { TSTORE(to, z); });
  for (int i = 0; i < 10; ++i)
    CHECK(static_cast<double>(out[i]) ==
          static_cast<double>(static_cast<T>(expected(static_cast<double>(a[i]), static_cast<double>(b[i])))));
}

#define TILES(T, NAME, EXPRESSION)                                \
  arithmetic<T>([](auto &z, auto &x, auto &y) { NAME(z, x, y); }, \
                [](double a, double b) -> double { return EXPRESSION; })
// With the scalar 3.
#define SCALAR(T, NAME, EXPRESSION)                                                 \
  arithmetic<T>([](auto &z, auto &x, auto &) { NAME(z, x, static_cast<T>(3.0f)); }, \
                [](double a, double b) -> double { return b = 3, EXPRESSION; })
#define ALL(T)                     \
  TILES(T, TADD, a + b);           \
  TILES(T, TSUB, a - b);           \
  TILES(T, TMUL, a *b);            \
  TILES(T, TMAX, a < b ? b : a);   \
  TILES(T, TMIN, b < a ? b : a);   \
  SCALAR(T, TADDS, a + b);         \
  SCALAR(T, TSUBS, a - b);         \
  SCALAR(T, TMULS, a *b);          \
  SCALAR(T, TMAXS, a < b ? b : a); \
  SCALAR(T, TMINS, b < a ? b : a)

// 8 elements, converted.
template <class To, class From>
void conversion(RoundMode mode, const double (&in)[8], const double (&expected)[8]) {
  From from[8];
  To out[8];
  for (int i = 0; i < 8; ++i) from[i] = static_cast<From>(in[i]);
  Part<From, 1, 32> x(1, 8);
  Part<To, 1, 32> y(1, 8);
  TASSIGN(x, 0x000);
  TASSIGN(y, 0x400);
  auto source = matrix(from, 1, 8, 8);
  auto target = matrix(out, 1, 8, 8);
  steps([&] { TLOAD(x, source); }, [&] { TCVT(y, x, mode, SaturationMode::ON); }, [&] { TSTORE(target, y); });
  for (int i = 0; i < 8; ++i) CHECK(out[i] == static_cast<To>(expected[i]));
}

void conversions() {
  constexpr double LOW = std::numeric_limits<int32_t>::min(), HIGH = std::numeric_limits<int32_t>::max();
  const double floats[8] = {-2.5, -1.5, -0.5, 0.5, 1.5, 2.75, 2e9, -3e9};
  conversion<int32_t, float>(RoundMode::CAST_TRUNC, floats, {-2, -1, 0, 0, 1, 2, 2e9, LOW});
  conversion<int32_t, float>(RoundMode::CAST_RINT, floats, {-2, -2, 0, 0, 2, 3, 2e9, LOW});
  conversion<int32_t, float>(RoundMode::CAST_FLOOR, floats, {-3, -2, -1, 0, 1, 2, 2e9, LOW});
  conversion<int32_t, float>(RoundMode::CAST_CEIL, floats, {-2, -1, 0, 1, 2, 3, 2e9, LOW});
  conversion<int32_t, float>(RoundMode::CAST_ROUND, floats, {-3, -2, -1, 1, 2, 3, 2e9, LOW});
  conversion<int16_t, float>(RoundMode::CAST_TRUNC, floats, {-2, -1, 0, 0, 1, 2, 32767, -32768});
#ifdef PTO_SIM_GENERATION  // where PTO-ISA's own headers overflow
  const double large[8] = {3e9, 2147483648, 1e30, -1e30, 1, 2, 3, 4};
  conversion<int32_t, float>(RoundMode::CAST_TRUNC, large, {HIGH, HIGH, HIGH, LOW, 1, 2, 3, 4});
#endif
  // Half of the last place of a half at 1 and at 1.001, of which the even neighbour is taken.
  const double fine[8] = {1, 1.00048828125, 1.00146484375, -65504, 0.25, 1e-9, 2049, 3};
  conversion<half, float>(RoundMode::CAST_RINT, fine, {1, 1, 1.001953125, -65504, 0.25, 0, 2048, 3});
  const double halves[8] = {1.5, -2, 0, 65504, 0.25, 127, -1, 8};
  conversion<float, half>(RoundMode::CAST_RINT, halves, halves);
  const double words[8] = {0, -1, 16777217, 16777219, 7, HIGH, LOW, 100000};
  conversion<float, int32_t>(RoundMode::CAST_RINT, words, {0, -1, 16777216, 16777220, 7, 2147483648, LOW, 100000});
  conversion<int64_t, int32_t>(RoundMode::CAST_NONE, words, words);
}

template <class T>
void reductions() {
  T in[3 * 20], rows[3], cols[20];
  for (int i = 0; i < 60; ++i) in[i] = static_cast<T>(static_cast<float>(i % 7 - 2 * (i % 5) + i / 20));
  Part<T, 4, 32> x(3, 20), scratch(3, 20);
  // The place of one element in each row has 32 bytes.
  Part<T, 4, 16> sums(3, 1);
  Part<T, 1, 32> line(1, 20);
  TASSIGN(x, 0x000);
  TASSIGN(scratch, 0x400);
  TASSIGN(sums, 0x800);
  TASSIGN(line, 0xc00);
  auto from = matrix(in, 3, 20, 20), to_rows = matrix(rows, 3, 1, 1), to_cols = matrix(cols, 1, 20, 20);
  const auto check = [&](auto by_rows, auto by_cols, auto combine) {
    steps([&] { TLOAD(x, from); }, [&] { by_rows(); }, [&] { by_cols(); }, [&] { TSTORE(to_rows, sums); },
          [&] { TSTORE(to_cols, line); });
    for (int r = 0; r < 3; ++r) {
      float sum = static_cast<float>(in[20 * r]);
      for (int c = 1; c < 20; ++c) sum = combine(sum, static_cast<float>(in[20 * r + c]));
      CHECK(static_cast<float>(rows[r]) == sum);
    }
    for (int c = 0; c < 20; ++c) {
      float sum = static_cast<float>(in[c]);
      for (int r = 1; r < 3; ++r) sum = combine(sum, static_cast<float>(in[20 * r + c]));
      CHECK(static_cast<float>(cols[c]) == sum);
    }
  };
  check([&] { TROWSUM(sums, x, scratch); }, [&] { TCOLSUM(line, x); }, [](float a, float b) { return a + b; });
  check([&] { TROWMAX(sums, x, scratch); }, [&] { TCOLMAX(line, x); }, [](float a, float b) { return a < b ? b : a; });
  check([&] { TROWMIN(sums, x, scratch); }, [&] { TCOLMIN(line, x); }, [](float a, float b) { return b < a ? b : a; });
}

// A region of four dimensions, with gaps, to rows of a tile and back; and filled, and moved from tile to tile.
void regions() {
  int32_t in[400], out[400] = {};
  for (int i = 0; i < 400; ++i) in[i] = i;
  using Region = GlobalTensor<int32_t, Shape<>, Stride<>>;
  Region from(in, Shape<>(2, 1, 2, 3, 5), Stride<>(200, 200, 90, 20, 1));
  Region to(out, Shape<>(1, 1, 4, 3, 5), Stride<>(400, 400, 60, 7, 1));
  Part<int32_t, 12, 8> x(12, 5), y(12, 5);
  TASSIGN(x, 0x000);
  TASSIGN(y, 0x400);
  steps([&] { TLOAD(x, from); }, [&] { TMOV(y, x); }, [&] { TSTORE(to, y); });
  for (int row = 0; row < 12; ++row)
    for (int col = 0; col < 5; ++col) {
      const int source = row / 6 * 200 + row / 3 % 2 * 90 + row % 3 * 20 + col;
      CHECK(out[row / 3 * 60 + row % 3 * 7 + col] == source);
      out[row / 3 * 60 + row % 3 * 7 + col] = 0;
    }
  for (int i = 0; i < 400; ++i) CHECK(out[i] == 0);
  auto line = matrix(out, 3, 5, 6);
  Part<int32_t, 4, 8> z(3, 5);
  TASSIGN(z, 0x800);
  steps([&] { TEXPANDS(z, 9); }, [&] { TSTORE(line, z); },
        [&] { TSTORE<decltype(z), decltype(line), AtomicType::AtomicAdd>(line, z); });
  for (int i = 0; i < 400; ++i) CHECK(out[i] == (i < 18 && i % 6 < 5 ? 18 : 0));
}

// Every size of transfer in chunks of 4 x 16, through one tile and two, changes what it should, and nothing else.
void transfers() {
  for (int rows = 1; rows <= 10; ++rows)
    for (int cols = 1; cols <= 40; cols += 3)
      for (const bool twice : {false, true}) {
        float in[10 * 40], put[10 * 50], get[10 * 50];
        for (int i = 0; i < 400; ++i) in[i] = static_cast<float>(i + 1);
        for (int i = 0; i < 500; ++i) put[i] = get[i] = -1;
        auto from = matrix(in, rows, cols, 40), to = matrix(put, rows, cols, 50), back = matrix(get, rows, cols, 50);
        kernel([&] {
          // A tile of which more is in use than there is would read too much.
          const int used_rows = rows < 4 && cols <= 16 ? rows : 4, used_cols = rows <= 4 && cols < 16 ? cols : 16;
          const auto tile = [&](int place) {
            Part<float, 4, 16> tile(used_rows, used_cols);
            TASSIGN(tile, place);
            return tile;
          };
          auto ping = tile(0x000), pong = tile(0x100), one = tile(0x200), other = tile(0x300);
          twice ? (comm::TPUT(to, from, ping, pong), 0) : (comm::TPUT(to, from, one), 0);
          pipe_barrier(PIPE_ALL);
          auto first = tile(0x000), second = tile(0x100);
          twice ? (comm::TGET(back, to, first, second), 0) : (comm::TGET(back, to, other), 0);
          pipe_barrier(PIPE_ALL);
        });
        for (int i = 0; i < 500; ++i) {
          const bool inside = i / 50 < rows && i % 50 < cols;
          CHECK(put[i] == (inside ? in[i / 50 * 40 + i % 50] : -1) && get[i] == put[i]);
        }
      }
}

// Flags order units through others; what the scalar unit has waited for is behind all that it issues then.
void orders() {
  float in[32], out[32];
  for (int i = 0; i < 32; ++i) in[i] = static_cast<float>(i);
  auto from = matrix(in, 1, 32, 32), to = matrix(out, 1, 32, 32);
  Part<float, 1, 32> x(1, 32), y(1, 32);
  TASSIGN(x, 0x000);
  TASSIGN(y, 0x100);
  const auto order = [](pipe_t before, pipe_t behind) {
    set_flag(before, behind, EVENT_ID0);
    wait_flag(before, behind, EVENT_ID0);
  };
  kernel([&] {
    TLOAD(x, from);
    order(PIPE_MTE2, PIPE_V);
    TADDS(y, x, 1.0f);
    order(PIPE_V, PIPE_MTE3);
    TSTORE(to, y);
    // x was read behind the load: what comes behind the store comes behind both.
    order(PIPE_MTE3, PIPE_S);
    TLOAD(x, to);
    order(PIPE_MTE2, PIPE_S);
    TMULS(x, x, 2.0f);
    order(PIPE_V, PIPE_MTE3);
    TSTORE(to, x);
    pipe_barrier(PIPE_ALL);
  });
  for (int i = 0; i < 32; ++i) CHECK(out[i] == 2 * (in[i] + 1));
}

void signals() {
  int32_t cell = 5;
  comm::Signal signal(&cell);
  kernel([&] {
    using comm::NotifyOp;
    using comm::WaitCmp;
    comm::TNOTIFY(signal, 3, NotifyOp::AtomicAdd);
    CHECK(cell == 8);
    comm::TNOTIFY(signal, -4, NotifyOp::Set);
    CHECK(cell == -4);
    const WaitCmp all[] = {WaitCmp::EQ, WaitCmp::NE, WaitCmp::GT, WaitCmp::GE, WaitCmp::LT, WaitCmp::LE};
    const bool above[] = {false, true, true, true, false, false};
    const bool same[] = {true, false, false, true, false, true};
    const bool below[] = {false, true, false, false, true, true};
    for (int i = 0; i < 6; ++i) {
      CHECK(comm::TTEST(signal, -5, all[i]) == above[i]);
      CHECK(comm::TTEST(signal, -4, all[i]) == same[i]);
      CHECK(comm::TTEST(signal, -3, all[i]) == below[i]);
    }
    comm::TWAIT(signal, -4, WaitCmp::EQ);
  });
}

int main() {
  ALL(float);
  ALL(half);
  ALL(int32_t);
  ALL(int16_t);
#if PTO_SIM_GENERATION == 5
  ALL(bfloat16_t);
  ALL(int64_t);
#endif
  TILES(float, TDIV, static_cast<float>(a) / static_cast<float>(b));
  SCALAR(float, TDIVS, static_cast<float>(a) / static_cast<float>(b));
  conversions();
  reductions<float>();
  reductions<half>();
  regions();
  transfers();
  orders();
  signals();
  std::puts("all is as it should be");
}
