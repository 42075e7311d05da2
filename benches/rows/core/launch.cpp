// The same through the C++ layer, as C++ is written: with a list, and with the arguments one by one.
#include <pld/pld.hpp>

// Launches `times` times as `launch` does; the executable stays the caller's.
template <class Launch>
static std::int32_t repeat(pld_executable_t *raw, std::uint32_t times, Launch launch) {
  pld::Executable x(raw);
  std::int32_t status = PLD_OK;
  try {
    for (std::uint32_t epoch = 1; epoch <= times; epoch++) launch(x, epoch);
  } catch (const pld::Error &error) {
    status = capi(error.status());
  }
  x.release();
  return status;
}

extern "C" std::int32_t pld_bench_launch_cpp(pld_executable_t *raw, const pld_arg_t *tensor, std::uint32_t times) {
  pld::Arg args[] = {pld::Arg(*tensor), 0};
  return repeat(raw, times, [&](pld::Executable &x, std::uint32_t epoch) {
    args[1] = epoch;
    x.launch(args);
  });
}

extern "C" std::int32_t pld_bench_launch_cpp_args(pld_executable_t *raw, const pld_arg_t *tensor, std::uint32_t times) {
  const pld::Arg given(*tensor);
  return repeat(raw, times, [&](pld::Executable &x, std::uint32_t epoch) { x.launch(given, epoch); });
}
