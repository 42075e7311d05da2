/// @file shape.hpp
/// Extents and shapes.
#ifndef PLD_SHAPE_HPP
#define PLD_SHAPE_HPP

#include <pld.h>
#include <pld/location.hpp>
#include <pld/scalar.hpp>
#include <pld/scope.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

namespace pld {

/// An extent of a tensor, window, tile or transfer, in elements: a number, `world_size`, what Program::dim or
/// Program::constant returned, or a scalar as `pld_dim_of` takes it. It is also a scalar, of type `i64`.
class Dim {
 public:
  /// A number of elements.
  template <class T, class = std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>>
  constexpr Dim(T extent) noexcept : raw_(static_cast<pld_dim_t>(extent)) {}

  /// As many as there are ranks.
  constexpr Dim(WorldSize) noexcept : raw_(PLD_WORLD) {}

  /// A scalar; in a transfer also one that is computed when it runs.
  Dim(const Scalar &value, Location at = Location::here()) noexcept : program_(detail::or_open(value.program())) {
    raw_ = (pld_dim_of)(detail::at(program_, at), value.capi());
  }

  /// An extent of the C interface, of this program.
  Dim(pld_program_t *program, pld_dim_t raw) noexcept : program_(program), raw_(raw) {}

  /// The extent as the C interface has it.
  constexpr pld_dim_t capi() const noexcept { return raw_; }

  /// The extent as a scalar.
  Scalar scalar(Location at) const noexcept {
    pld_program_t *p = detail::or_open(program_);
    return Scalar(p, (pld_dim_value)(detail::at(p, at), raw_));
  }

 private:
  pld_program_t *program_ = nullptr;
  pld_dim_t raw_;
};

namespace detail {

/// A few values, and how many. The library refuses more than PLD_MAX_RANK; one more is kept, to be refused.
template <class T>
class Few {
 public:
  const T *data() const noexcept { return values_; }
  std::size_t size() const noexcept { return size_; }
  void push(T value) noexcept {
    if (size_ <= PLD_MAX_RANK) values_[size_++] = value;
  }

 private:
  T values_[PLD_MAX_RANK + 1];
  std::size_t size_ = 0;
};

}  // namespace detail

/// The extents of something in a program, outermost first: `{world_size, 1, 256}`.
class Shape : public detail::Few<pld_dim_t> {
 public:
  /// These extents.
  Shape(std::initializer_list<Dim> dims) noexcept {
    for (const Dim &dim : dims) push(dim.capi());
  }
};

/// Extents that are numbers, outermost first, of memory: `{2, 1, 256}`.
class Extents : public detail::Few<std::int64_t> {
 public:
  /// One extent, of any integer type.
  struct Extent {
    /// The number of elements.
    std::int64_t value;
    /// That many.
    template <class T, class = std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>>
    constexpr Extent(T elements) noexcept : value(static_cast<std::int64_t>(elements)) {}
  };

  /// These extents.
  Extents(std::initializer_list<Extent> extents) noexcept {
    for (const Extent &extent : extents) push(extent.value);
  }

  /// How many elements they span.
  std::int64_t elements() const noexcept {
    std::int64_t product = 1;
    for (std::size_t i = 0; i < size(); i++) product *= data()[i];
    return product;
  }
};

/// Where something begins, in elements: `{row, 0}`.
class Offsets : public detail::Few<pld_scalar_t> {
 public:
  /// These offsets.
  Offsets(std::initializer_list<Operand> offsets) noexcept {
    for (const Operand &offset : offsets) add(offset);
  }

  /// One more, for the next dimension.
  void add(const Operand &offset) noexcept { push(offset.in(detail::or_open(offset.program()))); }
};

}  // namespace pld

#endif
