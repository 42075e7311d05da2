/// @file tensor.hpp
/// Tensors and windows of a program, their places, elements and parts.
#ifndef PLD_TENSOR_HPP
#define PLD_TENSOR_HPP

#include <pld.h>
#include <pld/location.hpp>
#include <pld/scalar.hpp>
#include <pld/shape.hpp>

#include <string>

namespace pld {

class Element;
class Place;

/// What is done with a tensor.
enum class Direction : pld_direction_t {
  in = PLD_IN,
  out = PLD_OUT,
  inout = PLD_INOUT,
};

/// A tensor of a program: a parameter, a window view, or a part of either. A small value that lives as long as the
/// program; copies name the same tensor.
class Tensor {
 public:
  /// No tensor.
  Tensor() noexcept = default;
  /// A tensor of the C interface, of this program.
  Tensor(pld_program_t *program, pld_tensor_t raw) noexcept : program_(program), raw_(raw) {}

  /// The place that begins at these offsets, in elements, one for each dimension.
  Place at(Operand i0, Operand i1 = {}, Operand i2 = {}, Operand i3 = {}, Operand i4 = {}, Operand i5 = {},
           Operand i6 = {}, Operand i7 = {}) const;

  /// The element at these offsets, one for each dimension: a scalar where it is read, `x(i, j) = value` to write it.
  /// Inside a task; ordering and errors as with `pld_read` and `pld_write`.
  Element operator()(Operand i0, Operand i1 = {}, Operand i2 = {}, Operand i3 = {}, Operand i4 = {}, Operand i5 = {},
                     Operand i6 = {}, Operand i7 = {}) const;

  /// Rank `rank`'s part of a tensor of the host driver, without the leading axis.
  Tensor operator[](Operand rank) const {
    const pld_scalar_t r = rank.in(program_);
    return Tensor(program_, (pld_slice_rank)(detail::at(program_, rank.location()), raw_, r));
  }

  /// The program; nullptr of no tensor.
  pld_program_t *program() const noexcept { return program_; }
  /// The tensor as the C interface has it.
  pld_tensor_t capi() const noexcept { return raw_; }

 private:
  pld_program_t *program_ = nullptr;
  pld_tensor_t raw_ = {0};
};

/// A tensor and where in it something begins: `x.at(t, 0)`.
class Place {
 public:
  /// Offsets in a tensor.
  Place(Tensor tensor, Offsets offsets) noexcept : tensor_(tensor), offsets_(offsets) {}

  /// The tensor.
  const Tensor &tensor() const noexcept { return tensor_; }
  /// Where in it.
  const Offsets &offsets() const noexcept { return offsets_; }
  /// The program.
  pld_program_t *program() const noexcept { return tensor_.program(); }

 private:
  Tensor tensor_;
  Offsets offsets_;
};

/// An element of a tensor, where it is named. It is read when it becomes a scalar, so `Scalar x = t(i)` reads it once;
/// `auto x = t(i)` gives a thing of no use.
class Element {
 public:
  Element(const Element &) = delete;

  /// Writes it; see `pld_write`.
  void operator=(Operand value) && { write(value); }
  /// Writes the value of another one.
  void operator=(Element &&value) && { write(Operand(std::move(value), value.at_)); }
  /// Adds to it: a read and a write.
  void operator+=(Operand value) && { write(detail::binary(pld_add, {read(at_), at_}, value)); }
  /// Subtracts from it: a read and a write.
  void operator-=(Operand value) && { write(detail::binary(pld_sub, {read(at_), at_}, value)); }

  /// Reads it; see `pld_read`.
  Scalar scalar(Location at) && { return read(at); }

 private:
  friend class Tensor;

  Element(Place place, Location at) noexcept : place_(place), at_(at) {}

  Scalar read(Location at) const {
    pld_program_t *p = place_.program();
    const Offsets &o = place_.offsets();
    return Scalar(p, (pld_read)(detail::at(p, at), place_.tensor().capi(), o.data(), o.size()));
  }

  void write(const Operand &value) const {
    pld_program_t *p = place_.program();
    const Offsets &o = place_.offsets();
    const pld_scalar_t x = value.in(p);
    (pld_write)(detail::at(p, at_), place_.tensor().capi(), o.data(), o.size(), x);
  }

  Place place_;
  Location at_;
};

inline Place Tensor::at(Operand i0, Operand i1, Operand i2, Operand i3, Operand i4, Operand i5, Operand i6,
                        Operand i7) const {
  Offsets offsets{};
  for (const Operand *i : {&i0, &i1, &i2, &i3, &i4, &i5, &i6, &i7})
    if (i->given()) offsets.add(*i);
  return Place(*this, offsets);
}

inline Element Tensor::operator()(Operand i0, Operand i1, Operand i2, Operand i3, Operand i4, Operand i5, Operand i6,
                                  Operand i7) const {
  return Element(at(i0, i1, i2, i3, i4, i5, i6, i7), i0.location());
}

/// The part that begins at a place and has this shape, in elements, as a tensor of its own over the same memory; see
/// `pld_slice`.
inline Tensor slice(const Place &from, Shape shape, Location at = Location::here()) {
  pld_program_t *p = from.program();
  const Offsets &o = from.offsets();
  return Tensor(p,
                (pld_slice)(detail::at(p, at), from.tensor().capi(), o.data(), o.size(), shape.data(), shape.size()));
}

/// All elements in one dimension, over the same memory; see `pld_flatten`.
inline Tensor flatten(const Tensor &tensor, Location at = Location::here()) {
  return Tensor(tensor.program(), (pld_flatten)(detail::at(tensor.program(), at), tensor.capi()));
}

/// This rank's number in the window's domain, an I32; in entries. For a window of the whole world: the rank.
inline Scalar rank(const Tensor &window, Location at = Location::here()) {
  return Scalar(window.program(), (pld_rank)(detail::at(window.program(), at), window.capi()));
}

/// The number of ranks of the window's domain, an I32.
inline Scalar nranks(const Tensor &window, Location at = Location::here()) {
  return Scalar(window.program(), (pld_nranks)(detail::at(window.program(), at), window.capi()));
}

/// The slice or view under a name, which the program's text and all messages show.
inline Tensor let(const std::string &name, const Tensor &tensor, Location at = Location::here()) {
  (pld_tensor_name)(detail::at(tensor.program(), at), tensor.capi(), name.c_str());
  return tensor;
}

}  // namespace pld

#endif
