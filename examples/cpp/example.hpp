// What the examples share: numbers to compute with, results that are compared, and the walk from a program to a launch.
#ifndef EXAMPLE_HPP
#define EXAMPLE_HPP

#include <pld/pld.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <vector>

namespace example {

// Numbers that depend on rank and place, as if random, between -1 and 1.
inline float value(std::uint32_t rank, std::size_t place) {
  const std::uint32_t x = (rank * 7919u + static_cast<std::uint32_t>(place)) * 2654435761u;
  return static_cast<float>(x >> 8) / 8388608.0f - 1.0f;
}

inline int wrong = 0;

// Counts a wrong result, and shows the first ones.
inline void is_wrong(const char *what, std::uint32_t rank, std::size_t place, double got, double expected) {
  if (wrong++ < 5) std::fprintf(stderr, "%s: rank %u, element %zu is %g, not %g\n", what, rank, place, got, expected);
}

// The result is right but for rounding.
inline void check(const char *what, std::uint32_t rank, std::size_t place, double got, double expected) {
  if (!(std::fabs(got - expected) <= 1e-8 + 1e-5 * std::fabs(expected))) is_wrong(what, rank, place, got, expected);
}

// The example's last line and exit code.
inline int result(const char *what) {
  std::printf("%s: %s\n", what, wrong == 0 ? "right on every rank" : "WRONG");
  return wrong == 0 ? 0 : 1;
}

// Nothing can go wrong in a launch with these arguments, in any of some orders of its ranks.
inline void explore(const pld::Program &program, std::uint32_t nranks, const std::vector<pld::Arg> &args) {
  pld::CheckOptions options;
  options.nranks = nranks;
  options.schedules = 50;
  options.args = args;
  pld::check(program, options);
}

// Runs an example: an error ends it with the library's message.
template <class Body>
int main(const char *name, Body &&body) {
  try {
    body();
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return result(name);
}

}  // namespace example

#endif
