/// @file info.hpp
/// The library that runs: its version, and what it finds on this machine.
#ifndef PLD_INFO_HPP
#define PLD_INFO_HPP

#include <pld.h>
#include <pld/error.hpp>

#include <cstdint>
#include <string>

namespace pld {

/// The version of the library that runs, as `major * 10000 + minor * 100 + patch`; PLD_VERSION is the headers'.
inline std::uint32_t version() noexcept { return pld_version(); }

/// The same as text, such as `0.1.0`. Static.
inline const char *version_string() noexcept { return pld_version_string(); }

/// What to send along with a question, for people: version, CPUs, transports and why one cannot be used here, and every
/// environment variable with its value, where that comes from, and what it means.
inline Result<std::string> try_info() noexcept {
  return detail::written([](std::string *to) { return pld_info(detail::append, to); });
}

#if PLD_EXCEPTIONS
/// As `try_info`, but throws.
inline std::string info() { return try_info().value(); }
#endif

}  // namespace pld

#endif
