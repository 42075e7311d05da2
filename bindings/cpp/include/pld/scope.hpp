/// @file scope.hpp
/// Which program a call belongs to that none of its operands tells.
#ifndef PLD_SCOPE_HPP
#define PLD_SCOPE_HPP

#include <pld.h>

#include <utility>

namespace pld::detail {

/// What of a program is being built.
enum class Part { none, entry, host };

/// While it lives, this thread builds that program: the body of an entry or of the host driver is open.
class Scope {
 public:
  Scope(pld_program_t *program, Part part) noexcept
      : outer_(std::exchange(innermost(), this)), program_(program), part_(part) {}
  Scope(const Scope &) = delete;
  Scope &operator=(const Scope &) = delete;
  ~Scope() { innermost() = outer_; }

  /// The program that this thread builds; nullptr outside of all bodies.
  static pld_program_t *program() noexcept { return innermost() == nullptr ? nullptr : innermost()->program_; }
  /// What of it is being built.
  static Part part() noexcept { return innermost() == nullptr ? Part::none : innermost()->part_; }

 private:
  static Scope *&innermost() noexcept {
    static thread_local Scope *scope = nullptr;
    return scope;
  }

  Scope *outer_;
  pld_program_t *program_;
  Part part_;
};

/// The program that an operand told, or the one that this thread builds.
inline pld_program_t *or_open(pld_program_t *told) noexcept { return told != nullptr ? told : Scope::program(); }

}  // namespace pld::detail

#endif
