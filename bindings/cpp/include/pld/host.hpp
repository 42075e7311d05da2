/// @file host.hpp
/// The host driver: windows, loops over ranks, and dispatches. Program::host builds it.
#ifndef PLD_HOST_HPP
#define PLD_HOST_HPP

#include <pld.h>
#include <pld/dtype.hpp>
#include <pld/location.hpp>
#include <pld/scalar.hpp>
#include <pld/shape.hpp>
#include <pld/tensor.hpp>

#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace pld {

/// An entry: what every rank runs that it is dispatched to.
class Entry {
 public:
  /// No entry.
  Entry() noexcept = default;
  /// An entry of the C interface, of this program.
  Entry(pld_program_t *program, pld_entry_t raw) noexcept : program_(program), raw_(raw) {}

  /// The program; nullptr of no entry.
  pld_program_t *program() const noexcept { return program_; }
  /// The entry as the C interface has it.
  pld_entry_t capi() const noexcept { return raw_; }

 private:
  pld_program_t *program_ = nullptr;
  pld_entry_t raw_ = {0};
};

/// A comm domain: ranks that share windows, and number each other 0, 1, and so on.
class Domain {
 public:
  /// No domain.
  Domain() noexcept = default;
  /// A domain of the C interface.
  explicit Domain(pld_domain_t raw) noexcept : raw_(raw) {}

  /// The domain as the C interface has it.
  pld_domain_t capi() const noexcept { return raw_; }
  /// Whether it is one.
  explicit operator bool() const noexcept { return raw_.id != 0; }

 private:
  pld_domain_t raw_ = {0};
};

/// A window buffer: symmetric memory of the same size on every rank.
class Buffer {
 public:
  /// A buffer of the C interface, of this program.
  Buffer(pld_program_t *program, pld_buffer_t raw) noexcept : program_(program), raw_(raw) {}
  /// The same, of this element type and shape.
  Buffer(pld_program_t *program, pld_buffer_t raw, DType dtype, Shape shape) noexcept
      : program_(program), raw_(raw), dtype_(pld::capi(dtype)), shape_(shape) {}

  /// A view of all of it, as it was allocated; one of bytes alone needs a type and a shape.
  Tensor view(Location at = Location::here()) const {
    return Tensor(program_, (pld_window)(detail::at(program_, at), raw_, dtype_, shape_.data(), shape_.size()));
  }

  /// A view of it of another type or shape. A view takes the name of the parameter that it is passed to, unless `let`
  /// gives it one.
  Tensor view(DType dtype, Shape shape, Location at = Location::here()) const {
    return Tensor(program_, (pld_window)(detail::at(program_, at), raw_, pld::capi(dtype), shape.data(), shape.size()));
  }

  /// The buffer as the C interface has it.
  pld_buffer_t capi() const noexcept { return raw_; }

 private:
  pld_program_t *program_;
  pld_buffer_t raw_;
  pld_dtype_t dtype_ = 0;
  Shape shape_{};
};

/// Calls `body(rank)` once, to build what is done for the ranks from `first` up to, but without, `end`; the rank is an
/// I32 that is valid inside.
template <class Body>
std::enable_if_t<std::is_invocable_v<Body, Scalar>> ranks(Operand first, Operand end, Body &&body,
                                                          Location at = Location::here()) {
  pld_program_t *p = detail::program_of(first, end);
  const pld_scalar_t from = first.in(p), to = end.in(p);
  std::forward<Body>(body)(Scalar(p, (pld_ranks_begin)(detail::at(p, at), from, to)));
  (pld_ranks_end)(detail::at(p, at));
}

/// The same with a name for the rank, which the program's text and all messages show.
template <class Body>
std::enable_if_t<std::is_invocable_v<Body, Scalar>> ranks(const std::string &name, Operand first, Operand end,
                                                          Body &&body, Location at = Location::here()) {
  ranks(
      first, end, [&](const Scalar &rank) { std::forward<Body>(body)(let(name, Operand(rank, at))); }, at);
}

/// What an entry is given: a tensor, a window view, or a scalar.
class Argument {
 public:
  /// A tensor or window view.
  Argument(const Tensor &tensor) noexcept : raw_(pld_of_tensor(tensor.capi())) {}

  /// A scalar.
  template <class T, class = std::enable_if_t<detail::is_operand<T>>>
  Argument(T &&value, Location at = Location::here())
      : raw_(pld_of_scalar(detail::to_scalar(std::forward<T>(value), at).capi())) {}

  /// The argument as the C interface has it.
  const pld_operand_t &capi() const noexcept { return raw_; }

 private:
  pld_operand_t raw_;
};

/// Runs an entry on rank `device`, with one argument for each of its parameters. The dispatches of one rank run in
/// order; nothing orders those of different ranks.
inline void dispatch(const Entry &entry, Operand device, const std::vector<Argument> &arguments,
                     Location at = Location::here()) {
  pld_program_t *p = entry.program();
  std::vector<pld_operand_t> raw;
  for (const Argument &argument : arguments) raw.push_back(argument.capi());
  const pld_scalar_t rank = device.in(p);
  (pld_dispatch)(detail::at(p, at), entry.capi(), rank, raw.data(), raw.size());
}

}  // namespace pld

#endif
