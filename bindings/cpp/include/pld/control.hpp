/// @file control.hpp
/// Loops, branches, and what changes while a program runs.
#ifndef PLD_CONTROL_HPP
#define PLD_CONTROL_HPP

#include <pld.h>
#include <pld/location.hpp>
#include <pld/scalar.hpp>
#include <pld/shape.hpp>
#include <pld/tensor.hpp>

#include <string>
#include <type_traits>
#include <utility>

namespace pld {

/// Calls `body(index)` once, to build what runs for the integers from `first` up to, but without, `end`; the index is
/// an I64 that is valid inside.
template <class Body>
std::enable_if_t<std::is_invocable_v<Body, Scalar>> for_range(Operand first, Operand end, Body &&body,
                                                              Location at = Location::here()) {
  pld_program_t *p = detail::program_of(first, end);
  const pld_scalar_t from = first.in(p), to = end.in(p);
  std::forward<Body>(body)(Scalar(p, (pld_for_begin)(detail::at(p, at), from, to)));
  (pld_for_end)(detail::at(p, at));
}

/// The same in steps. A step that is not positive ends the launch with Status::arithmetic.
template <class Body>
std::enable_if_t<std::is_invocable_v<Body, Scalar>> for_range(Operand first, Operand end, Operand step, Body &&body,
                                                              Location at = Location::here()) {
  pld_program_t *p = first.program() != nullptr ? first.program() : detail::program_of(end, step);
  const pld_scalar_t from = first.in(p), to = end.in(p), by = step.in(p);
  std::forward<Body>(body)(Scalar(p, (pld_for_step_begin)(detail::at(p, at), from, to, by)));
  (pld_for_end)(detail::at(p, at));
}

/// A loop whose index has a name, which the program's text and all messages show.
template <class Body>
std::enable_if_t<std::is_invocable_v<Body, Scalar>> for_range(const std::string &name, Operand first, Operand end,
                                                              Body &&body, Location at = Location::here()) {
  for_range(
      first, end, [&](const Scalar &index) { std::forward<Body>(body)(let(name, Operand(index, at))); }, at);
}

/// The same in steps.
template <class Body>
std::enable_if_t<std::is_invocable_v<Body, Scalar>> for_range(const std::string &name, Operand first, Operand end,
                                                              Operand step, Body &&body,
                                                              Location at = Location::here()) {
  for_range(
      first, end, step, [&](const Scalar &index) { std::forward<Body>(body)(let(name, Operand(index, at))); }, at);
}

/// Calls `then()` once, to build what runs where the condition holds.
template <class Then>
std::enable_if_t<std::is_invocable_v<Then>> if_(Operand condition, Then &&then, Location at = Location::here()) {
  pld_program_t *p = detail::or_open(condition.program());
  const pld_scalar_t c = condition.in(p);
  (pld_if_begin)(detail::at(p, at), c);
  std::forward<Then>(then)();
  (pld_if_end)(detail::at(p, at));
}

/// The same, and `otherwise()` for what runs where it does not.
template <class Then, class Else>
std::enable_if_t<std::is_invocable_v<Then> && std::is_invocable_v<Else>> if_(Operand condition, Then &&then,
                                                                             Else &&otherwise,
                                                                             Location at = Location::here()) {
  const auto both = [&] {
    std::forward<Then>(then)();
    (pld_else)(detail::at(detail::or_open(condition.program()), at));
    std::forward<Else>(otherwise)();
  };
  if_(condition, both, at);
}

/// How two scalars are compared, where the library must know both.
enum class Cmp : pld_cmp_t {
  eq = PLD_CMP_EQ,
  ne = PLD_CMP_NE,
  lt = PLD_CMP_LT,
  le = PLD_CMP_LE,
  gt = PLD_CMP_GT,
  ge = PLD_CMP_GE,
};

/// Requires that the comparison holds: otherwise the launch ends on every rank with Status::out_of_bounds naming both
/// values, and `peer`, the rank that it is about, if there is one. Inside a task; see `pld_require`.
inline void require(Operand a, Cmp cmp, Operand b, Operand peer = {}, Location at = Location::here()) {
  pld_program_t *p = detail::program_of(a, b);
  const pld_scalar_t x = a.in(p), y = b.in(p), z = peer.in(p);
  (pld_require)(detail::at(p, at), x, static_cast<pld_cmp_t>(cmp), y, z);
}

/// A mutable scalar: its value where it stands in an expression, changed by assignments as the program runs. Copies of
/// the C++ value name the same variable.
class Var {
 public:
  /// A variable of the C interface, of this program.
  Var(pld_program_t *program, pld_var_t raw) noexcept : program_(program), raw_(raw) {}
  /// The same variable.
  Var(const Var &) noexcept = default;

  /// Changes the value.
  void operator=(Operand value) {
    const pld_scalar_t x = value.in(program_);
    (pld_var_set)(detail::at(program_, value.location()), raw_, x);
  }
  /// Takes the value of another one: write `a = +b`.
  void operator=(const Var &) = delete;
  /// Adds to it.
  void operator+=(Operand value) { change(pld_add, value); }
  /// Subtracts from it.
  void operator-=(Operand value) { change(pld_sub, value); }

  /// The present value.
  Scalar scalar(Location at) const { return Scalar(program_, (pld_var_get)(detail::at(program_, at), raw_)); }
  /// The variable as the C interface has it.
  pld_var_t capi() const noexcept { return raw_; }

 private:
  void change(detail::Binary op, const Operand &value) {
    const Location at = value.location();
    *this = Operand(detail::binary(op, {*this, at}, value), at);
  }

  pld_program_t *program_;
  pld_var_t raw_;
};

/// The present value.
inline Scalar operator+(Operand value) { return value.scalar(value.location()); }

/// A variable of type I32, I64, F32 or BOOL, which begins as `init`.
inline Var var(const std::string &name, DType dtype, Operand init, Location at = Location::here()) {
  pld_program_t *p = detail::or_open(init.program());
  const pld_scalar_t x = init.in(p);
  return Var(p, (pld_var)(detail::at(p, at), name.empty() ? nullptr : name.c_str(), capi(dtype), x));
}

/// The same without a name.
inline Var var(DType dtype, Operand init, Location at = Location::here()) { return var({}, dtype, init, at); }

/// An element of a local array, where it is named. It is read when it becomes a scalar, so `Scalar x = a[i]` reads it
/// once; `auto x = a[i]` gives a thing of no use.
class ArrayElement {
 public:
  ArrayElement(const ArrayElement &) = delete;

  /// Changes it.
  void operator=(Operand value) && { set(value); }
  /// Changes it to the value of another one.
  void operator=(ArrayElement &&value) && { set(Operand(std::move(value), value.at_)); }
  /// Adds to it.
  void operator+=(Operand value) && { set(detail::binary(pld_add, {get(at_), at_}, value)); }
  /// Subtracts from it.
  void operator-=(Operand value) && { set(detail::binary(pld_sub, {get(at_), at_}, value)); }

  /// Its value.
  Scalar scalar(Location at) && { return get(at); }

 private:
  friend class Array;

  ArrayElement(pld_program_t *program, pld_array_t array, pld_scalar_t index, Location at) noexcept
      : program_(program), array_(array), index_(index), at_(at) {}

  Scalar get(Location at) const { return Scalar(program_, (pld_array_get)(detail::at(program_, at), array_, index_)); }

  void set(const Operand &value) const {
    const pld_scalar_t x = value.in(program_);
    (pld_array_set)(detail::at(program_, at_), array_, index_, x);
  }

  pld_program_t *program_;
  pld_array_t array_;
  pld_scalar_t index_;
  Location at_;
};

/// A small local array of scalars: `slot[dst] += 1`. Copies of the C++ value name the same array.
class Array {
 public:
  /// An array of the C interface, of this program.
  Array(pld_program_t *program, pld_array_t raw) noexcept : program_(program), raw_(raw) {}

  /// An element. An index that is outside ends the launch with Status::out_of_bounds.
  ArrayElement operator[](Operand index) const {
    return ArrayElement(program_, raw_, index.in(program_), index.location());
  }

  /// The array as the C interface has it.
  pld_array_t capi() const noexcept { return raw_; }

 private:
  pld_program_t *program_;
  pld_array_t raw_;
};

/// An array of `length` scalars of type I32, I64, F32 or BOOL, which all begin as `fill`. The length is known when the
/// program is compiled.
inline Array array(const std::string &name, DType dtype, Dim length, Operand fill = 0, Location at = Location::here()) {
  pld_program_t *p = detail::or_open(fill.program());
  const pld_scalar_t x = fill.in(p);
  return Array(p, (pld_array)(detail::at(p, at), name.empty() ? nullptr : name.c_str(), capi(dtype), length.capi(), x));
}

/// The same without a name.
inline Array array(DType dtype, Dim length, Operand fill = 0, Location at = Location::here()) {
  return array({}, dtype, length, fill, at);
}

}  // namespace pld

#endif
