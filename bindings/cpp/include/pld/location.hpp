/// @file location.hpp
/// Where a builder call stands in the user's source.
#ifndef PLD_LOCATION_HPP
#define PLD_LOCATION_HPP

#include <pld.h>

#include <cstdint>

#if defined(__has_include)
#if __has_include(<version>)
#include <version>
#endif
#endif

#if defined(__GNUC__) || defined(__clang__) || (defined(_MSC_VER) && _MSC_VER >= 1926)
#define PLD_LOCATION_BUILTINS 1
#elif defined(__cpp_lib_source_location)
#include <source_location>
#endif

namespace pld {

/// A line of the user's source. Every builder call and every operand of an operator takes one as its last argument,
/// which is the caller's line unless it is given: a function that wraps builder calls may take one itself and pass it
/// on, so that mistakes are reported where the wrapper is called.
struct Location {
  /// The file; nullptr if unknown.
  const char *file = nullptr;
  /// The line, from 1; 0 if unknown.
  std::uint32_t line = 0;

#if defined(PLD_LOCATION_BUILTINS)
  /// The line that this call stands on, or, as a default argument, that of the call which it completes.
  static constexpr Location here(const char *file = __builtin_FILE(), unsigned line = __builtin_LINE()) noexcept {
    return Location{file, line};
  }
#elif defined(__cpp_lib_source_location)
  static constexpr Location here(std::source_location at = std::source_location::current()) noexcept {
    return Location{at.file_name(), at.line()};
  }
#else
  static constexpr Location here() noexcept { return Location{}; }
#endif
};

#if !defined(PLD_LOCATION_BUILTINS) && !defined(__cpp_lib_source_location)
/// For compilers that do not tell functions where they are called: the last argument of a builder call.
#define PLD_HERE (::pld::Location{__FILE__, __LINE__})
#endif

namespace detail {

/// The program of a builder call, told where the call stands. The parentheses keep the C macros away.
inline pld_program_t *at(pld_program_t *program, Location where) noexcept {
  return (pld_loc)(program, where.file, where.line);
}

}  // namespace detail
}  // namespace pld

#endif
