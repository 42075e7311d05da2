/// @file arg.hpp
/// Arguments of a launch.
#ifndef PLD_ARG_HPP
#define PLD_ARG_HPP

#include <pld.h>
#include <pld/dtype.hpp>
#include <pld/error.hpp>
#include <pld/resident.hpp>
#include <pld/shape.hpp>
#include <pld/span.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace pld {

/// A tensor in the engine's memory, row-major without gaps. It does not own the memory.
class TensorArg {
 public:
  /// Elements of this type and shape. `data` is written only if the parameter is not Direction::in; nullptr stands for
  /// contents that `check` makes up.
  TensorArg(void *data, DType dtype, Extents shape) noexcept
      : raw_(pld_tensor_of(data, pld::capi(dtype), shape.data(), shape.size())) {}

  /// The same, with the element type of the pointer.
  template <class T, class = std::enable_if_t<!std::is_void_v<T>>>
  TensorArg(T *data, Extents shape) noexcept
      : TensorArg(const_cast<std::remove_cv_t<T> *>(data), dtype_of<T>(), shape) {}

  /// A tensor of another library, in CPU memory. It stays the caller's.
  explicit TensorArg(const DLManagedTensor *dlpack) noexcept : raw_(pld_tensor_of_dlpack(dlpack)) {}

  /// The tensor as the C interface has it.
  const pld_tensor_arg_t &capi() const noexcept { return raw_; }

 private:
  pld_tensor_arg_t raw_;
};

/// An argument of a launch. It refers to memory and owns none. In a world of threads a tensor has the leading rank
/// axis; in a world of processes it is this rank's part, without.
class Arg {
 public:
  /// None: `check` makes one up.
  Arg() noexcept : raw_(pld_arg_generated()) {}

  /// An integer, a number or a truth value, by its C++ type.
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  Arg(T value) noexcept : raw_(pld_arg_generated()) {
    *this = value;
  }

  /// Becomes an integer, a number or a truth value, which is cheaper than a new argument: `args[1] = epoch`.
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  Arg &operator=(T value) noexcept {
    if constexpr (std::is_same_v<T, bool>) {
      raw_.kind = PLD_ARG_BOOL;
      raw_.integer = value;
    } else if constexpr (std::is_floating_point_v<T>) {
      raw_.kind = PLD_ARG_FLOAT;
      raw_.real = static_cast<double>(value);
    } else {
      raw_.kind = PLD_ARG_INT;
      raw_.integer = static_cast<std::int64_t>(value);
    }
    return *this;
  }

  /// A tensor.
  Arg(const TensorArg &tensor) noexcept : raw_(pld_arg_generated()) {
    raw_.kind = PLD_ARG_TENSOR;
    raw_.tensor = tensor.capi();
  }

  /// One tensor a rank, without the leading rank axis; the list must live as long as the argument is used. Worlds of
  /// threads only.
  explicit Arg(Span<const TensorArg> parts) noexcept
      : raw_(pld_arg_parts(reinterpret_cast<const pld_tensor_arg_t *>(parts.data()), parts.size())) {}

  /// Memory that lives with the ranks.
  Arg(const Resident &resident) noexcept : raw_(pld_arg_resident(resident.capi())) {}

  /// An argument of the C interface.
  explicit Arg(const pld_arg_t &raw) noexcept : raw_(raw) {}

  /// The argument as the C interface has it.
  const pld_arg_t &capi() const noexcept { return raw_; }

 private:
  pld_arg_t raw_;
};

static_assert(sizeof(TensorArg) == sizeof(pld_tensor_arg_t) && std::is_standard_layout_v<TensorArg>,
              "lists of tensors are passed as they are");
static_assert(sizeof(Arg) == sizeof(pld_arg_t) && std::is_standard_layout_v<Arg>,
              "lists of arguments are passed as they are");

/// A tensor in a container, such as a std::vector: Status::invalid_argument unless it has as many elements as the
/// shape.
template <class Container, class T = std::remove_pointer_t<decltype(std::declval<Container &>().data())>>
Result<Arg> try_arg(Container &elements, Extents shape) noexcept {
  const std::size_t size = elements.size();
  if (shape.elements() < 0 || static_cast<std::size_t>(shape.elements()) != size)
    return Error(Status::invalid_argument, "the shape of an argument spans " + std::to_string(shape.elements()) +
                                               " elements, its memory has " + std::to_string(size));
  return Arg(TensorArg(elements.data(), shape));
}

#if PLD_EXCEPTIONS
/// As `try_arg`, but throws: `arg(inputs, {2, 1, 256})`.
template <class Container, class T = std::remove_pointer_t<decltype(std::declval<Container &>().data())>>
Arg arg(Container &elements, Extents shape) {
  return try_arg(elements, shape).value();
}
#endif

/// A tensor in memory of this type; the caller vouches for its size. Constant memory is for parameters that are only
/// read.
template <class T>
Arg arg(T *data, Extents shape) noexcept {
  return Arg(TensorArg(data, shape));
}

/// A tensor of another library, in CPU memory.
inline Arg arg(const DLManagedTensor *dlpack) noexcept { return Arg(TensorArg(dlpack)); }

}  // namespace pld

#endif
