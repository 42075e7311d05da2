/// @file resident.hpp
/// Memory that lives with the ranks.
#ifndef PLD_RESIDENT_HPP
#define PLD_RESIDENT_HPP

#include <pld.h>
#include <pld/dtype.hpp>
#include <pld/error.hpp>
#include <pld/handle.hpp>
#include <pld/shape.hpp>
#include <pld/span.hpp>
#include <pld/world.hpp>

#include <cstdint>
#include <type_traits>

namespace pld {

/// Memory that lives with the ranks and that launches use as it is: weights, caches. It begins zeroed. Any number of
/// threads may use it at once, until one destroys it. It ends with its world; then it may only be destroyed.
class Resident : public Handle<pld_resident_t, pld_resident_destroy> {
 public:
  using Handle::Handle;

  /// A tensor of one rank, which this process drives; see `pld_resident_create`.
  static Result<Resident> try_create(World &world, std::uint32_t rank, DType dtype, Extents shape) noexcept {
    pld_resident_t *made = nullptr;
    const Status status =
        detail::status(pld_resident_create(world.capi(), rank, pld::capi(dtype), shape.data(), shape.size(), &made));
    if (status != Status::ok) return Error::last(status);
    return Resident(made);
  }

  /// A tensor of this shape for each rank that this process drives; see `pld_resident_create_stacked`.
  static Result<Resident> try_create_stacked(World &world, DType dtype, Extents shape) noexcept {
    pld_resident_t *made = nullptr;
    const Status status =
        detail::status(pld_resident_create_stacked(world.capi(), pld::capi(dtype), shape.data(), shape.size(), &made));
    if (status != Status::ok) return Error::last(status);
    return Resident(made);
  }

  /// Fills `rank`'s part from memory of as many bytes. Status::busy while a launch or a run uses it; see
  /// `pld_resident_copy_in`.
  template <class T>
  Status try_copy_in(std::uint32_t rank, Span<T> from) noexcept {
    return detail::status(pld_resident_copy_in(capi(), rank, from.data(), from.size() * sizeof(T)));
  }

  /// Copies `rank`'s part to memory of as many bytes. Otherwise as `try_copy_in`.
  template <class T>
  Status try_copy_out(std::uint32_t rank, Span<T> to) const noexcept {
    static_assert(!std::is_const_v<T>, "it is written to");
    return detail::status(pld_resident_copy_out(capi(), rank, to.data(), to.size() * sizeof(T)));
  }

#if PLD_EXCEPTIONS
  /// As `try_create`, but throws.
  static Resident create(World &world, std::uint32_t rank, DType dtype, Extents shape) {
    return try_create(world, rank, dtype, shape).value();
  }
  /// As `try_create_stacked`, but throws.
  static Resident create_stacked(World &world, DType dtype, Extents shape) {
    return try_create_stacked(world, dtype, shape).value();
  }
  /// As `try_copy_in`, but throws.
  template <class T>
  void copy_in(std::uint32_t rank, Span<T> from) {
    detail::check(try_copy_in(rank, from));
  }
  /// As `try_copy_out`, but throws.
  template <class T>
  void copy_out(std::uint32_t rank, Span<T> to) const {
    detail::check(try_copy_out(rank, to));
  }
#endif
};

}  // namespace pld

#endif
