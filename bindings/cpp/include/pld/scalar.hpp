/// @file scalar.hpp
/// Scalars of a program, and their arithmetic.
#ifndef PLD_SCALAR_HPP
#define PLD_SCALAR_HPP

#include <pld.h>
#include <pld/dtype.hpp>
#include <pld/location.hpp>
#include <pld/scope.hpp>

#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace pld {

class Operand;
class Scalar;

/// The type of `world_size`.
struct WorldSize {};

/// The number of ranks of the world: an extent, and a scalar of type `i64`.
inline constexpr WorldSize world_size{};

namespace detail {

/// Types with a `Scalar scalar(Location) const` (or `&&`) may stand where an operand is expected: Dim, Var, Element.
template <class T, class = void>
struct IsScalarLike : std::false_type {};
template <class T>
struct IsScalarLike<T, std::void_t<decltype(std::declval<T>().scalar(Location{}))>> : std::true_type {};

/// Values that become scalars of whichever program needs them.
template <class T>
constexpr bool is_literal = std::is_arithmetic_v<std::decay_t<T>> || std::is_same_v<std::decay_t<T>, WorldSize>;

/// All that may stand where an operand is expected.
template <class T>
constexpr bool is_operand = is_literal<T> || IsScalarLike<T>::value;

}  // namespace detail

/// A value of a program, or an integer that stands in it. It never changes: assigning to the C++ variable makes it name
/// another value. What changes while a program runs is a Var, an Array or a Tile.
///
/// Operators take scalars, numbers, extents, variables and elements in any mix, with the types and errors of `pld_add`
/// and its neighbours: integers wrap, `i32` with `i64` gives `i64`, a C++ integer takes the other operand's type, a
/// C++ floating-point number is an `f32`, and a C++ bool a `bool`. `&&` and `||` evaluate both operands.
class Scalar {
 public:
  /// No value.
  Scalar() noexcept = default;

  /// A value of the C interface. Without a program it is none, which is reported where it is used.
  Scalar(pld_program_t *program, pld_scalar_t raw) noexcept : program_(program) {
    if (program != nullptr || raw.is_int != 0) raw_ = raw;
  }

  /// A number, an extent, the value of a variable or an element at this point.
  template <class T, class = std::enable_if_t<detail::is_operand<T> && !std::is_same_v<std::decay_t<T>, Scalar>>>
  Scalar(T &&value, Location at = Location::here());

  /// The program; nullptr for an integer.
  pld_program_t *program() const noexcept { return program_; }
  /// The value as the C interface has it.
  pld_scalar_t capi() const noexcept { return raw_; }

  /// Itself.
  const Scalar &scalar(Location) const noexcept { return *this; }

 private:
  pld_program_t *program_ = nullptr;
  pld_scalar_t raw_ = {0, 0, 0};
};

/// A scalar as an operand of a builder call: made of all that can be one, with the line that it stands on. It is a
/// parameter type only.
class Operand {
 public:
  /// None, where one is not needed.
  Operand() noexcept = default;

  /// A scalar, an extent, the value of a variable or an element at this point.
  template <class T, class = std::enable_if_t<std::conjunction_v<std::negation<std::is_same<std::decay_t<T>, Operand>>,
                                                                 detail::IsScalarLike<T>>>>
  Operand(T &&value, Location at = Location::here()) : Operand(Scalar(std::forward<T>(value).scalar(at)), at, true) {}

  /// A number, or the number of ranks.
  template <class T, class = std::enable_if_t<detail::is_literal<T>>, class = void>
  Operand(T value, Location at = Location::here()) noexcept : at_(at) {
    if constexpr (std::is_same_v<T, WorldSize>) {
      literal_ = Literal::ranks;
    } else if constexpr (std::is_same_v<T, bool>) {
      literal_ = Literal::boolean;
      raw_.imm = value;
    } else if constexpr (std::is_floating_point_v<T>) {
      literal_ = Literal::real;
      real_ = static_cast<float>(value);
    } else {
      raw_ = pld_int(static_cast<std::int64_t>(value));
    }
  }

  /// The program, if the operand tells it.
  pld_program_t *program() const noexcept { return program_; }
  /// Where it stands.
  Location location() const noexcept { return at_; }
  /// Whether there is one.
  bool given() const noexcept { return literal_ != Literal::none || raw_.id != 0 || raw_.is_int != 0; }

  /// The value as the C interface has it, in this program.
  pld_scalar_t in(pld_program_t *program) const noexcept {
    switch (literal_) {
      case Literal::real: return (pld_float)(detail::at(program, at_), real_);
      case Literal::boolean: return (pld_bool)(detail::at(program, at_), static_cast<std::int32_t>(raw_.imm));
      case Literal::ranks: return (pld_world_size)(detail::at(program, at_));
      default: return raw_;
    }
  }

  /// The value, in the program that this thread builds if the operand does not tell one.
  Scalar scalar(Location) const noexcept {
    if (literal_ == Literal::none) return Scalar(program_, raw_);
    pld_program_t *program = detail::or_open(program_);
    return Scalar(program, in(program));
  }

 private:
  enum class Literal { none, real, boolean, ranks };

  Operand(const Scalar &value, Location at, bool) noexcept : program_(value.program()), raw_(value.capi()), at_(at) {}

  pld_program_t *program_ = nullptr;
  pld_scalar_t raw_ = {0, 0, 0};
  Location at_;
  Literal literal_ = Literal::none;
  float real_ = 0;
};

namespace detail {

/// Whatever may stand where an operand is expected, as a scalar.
template <class T>
Scalar to_scalar(T &&value, Location at) {
  if constexpr (is_literal<T>) {
    return Operand(value, at).scalar(at);
  } else {
    return std::forward<T>(value).scalar(at);
  }
}

/// The program of a call with these operands.
inline pld_program_t *program_of(const Operand &a, const Operand &b) noexcept {
  return or_open(a.program() != nullptr ? a.program() : b.program());
}

using Unary = pld_scalar_t (*)(pld_program_t *, pld_scalar_t);
using Binary = pld_scalar_t (*)(pld_program_t *, pld_scalar_t, pld_scalar_t);

inline Scalar unary(Unary op, const Operand &a) noexcept {
  pld_program_t *p = or_open(a.program());
  const pld_scalar_t x = a.in(p);
  return Scalar(p, op(at(p, a.location()), x));
}

inline Scalar binary(Binary op, const Operand &a, const Operand &b) noexcept {
  pld_program_t *p = program_of(a, b);
  const pld_scalar_t x = a.in(p), y = b.in(p);
  return Scalar(p, op(at(p, a.location()), x, y));
}

}  // namespace detail

template <class T, class>
Scalar::Scalar(T &&value, Location at) : Scalar(detail::to_scalar(std::forward<T>(value), at)) {}

/// The sum.
inline Scalar operator+(Operand a, Operand b) { return detail::binary(pld_add, a, b); }
/// The difference.
inline Scalar operator-(Operand a, Operand b) { return detail::binary(pld_sub, a, b); }
/// The product.
inline Scalar operator*(Operand a, Operand b) { return detail::binary(pld_mul, a, b); }
/// The quotient; see `pld_div`.
inline Scalar operator/(Operand a, Operand b) { return detail::binary(pld_div, a, b); }
/// The remainder; see `pld_mod`.
inline Scalar operator%(Operand a, Operand b) { return detail::binary(pld_mod, a, b); }
/// Whether both are equal.
inline Scalar operator==(Operand a, Operand b) { return detail::binary(pld_eq, a, b); }
/// Whether they differ.
inline Scalar operator!=(Operand a, Operand b) { return detail::binary(pld_ne, a, b); }
/// Whether `a` is less.
inline Scalar operator<(Operand a, Operand b) { return detail::binary(pld_lt, a, b); }
/// Whether `a` is less or equal.
inline Scalar operator<=(Operand a, Operand b) { return detail::binary(pld_le, a, b); }
/// Whether `a` is greater.
inline Scalar operator>(Operand a, Operand b) { return detail::binary(pld_gt, a, b); }
/// Whether `a` is greater or equal.
inline Scalar operator>=(Operand a, Operand b) { return detail::binary(pld_ge, a, b); }
/// Whether both hold. Both are evaluated.
inline Scalar operator&&(Operand a, Operand b) { return detail::binary(pld_and, a, b); }
/// Whether one of them holds. Both are evaluated.
inline Scalar operator||(Operand a, Operand b) { return detail::binary(pld_or, a, b); }
/// The negative.
inline Scalar operator-(Operand a) { return detail::unary(pld_neg, a); }
/// The opposite.
inline Scalar operator!(Operand a) { return detail::unary(pld_not, a); }

/// The smaller one; NaN if one is NaN.
inline Scalar min(Operand a, Operand b) { return detail::binary(pld_min, a, b); }
/// The larger one; NaN if one is NaN.
inline Scalar max(Operand a, Operand b) { return detail::binary(pld_max, a, b); }

/// The sum of all values, from the first to the last; 0 if there are none.
inline Scalar sum(std::initializer_list<Operand> values, Location at = Location::here()) {
  pld_program_t *p = nullptr;
  for (const Operand &value : values)
    if (p == nullptr) p = value.program();
  p = detail::or_open(p);
  std::vector<pld_scalar_t> raw;
  for (const Operand &value : values) raw.push_back(value.in(p));
  return Scalar(p, (pld_sum_n)(detail::at(p, at), raw.data(), raw.size()));
}

/// `x` where it lies between `low` and `high`, else the nearer one; `high` if `low` is greater.
inline Scalar clamp(Operand x, Operand low, Operand high) {
  pld_program_t *p = x.program() != nullptr ? x.program() : detail::program_of(low, high);
  const pld_scalar_t value = x.in(p), from = low.in(p), to = high.in(p);
  return Scalar(p, (pld_clamp)(detail::at(p, x.location()), value, from, to));
}

/// `then` where `condition` holds, else `otherwise`. Both are evaluated.
inline Scalar select(Operand condition, Operand then, Operand otherwise) {
  pld_program_t *p = condition.program() != nullptr ? condition.program() : detail::program_of(then, otherwise);
  const pld_scalar_t c = condition.in(p), a = then.in(p), b = otherwise.in(p);
  return Scalar(p, (pld_select)(detail::at(p, condition.location()), c, a, b));
}

/// The value as I32, I64, F32 or BOOL; see `pld_cast`.
inline Scalar cast(Operand value, DType dtype) {
  pld_program_t *p = detail::or_open(value.program());
  const pld_scalar_t x = value.in(p);
  return Scalar(p, (pld_cast)(detail::at(p, value.location()), x, capi(dtype)));
}

/// The value under a name, which the program's text and all messages show. The name of a loop's index names the index.
inline Scalar let(const std::string &name, Operand value) {
  pld_program_t *p = detail::or_open(value.program());
  const pld_scalar_t x = value.in(p);
  return Scalar(p, (pld_let)(detail::at(p, value.location()), name.c_str(), x));
}

}  // namespace pld

#endif
