/// @file span.hpp
/// A view of elements that lie behind each other.
#ifndef PLD_SPAN_HPP
#define PLD_SPAN_HPP

#include <cstddef>
#include <initializer_list>
#include <type_traits>
#include <utility>

namespace pld {

/// Elements that lie behind each other, in somebody else's memory: what std::span is in C++20. It is made of anything
/// that has `data()` and `size()`, an array, or for constant elements a list in braces, which lives until the end of
/// the full expression.
template <class T>
class Span {
 public:
  /// No elements.
  constexpr Span() noexcept = default;

  /// `size` elements from `data` on.
  constexpr Span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}

  /// The elements of an array.
  template <std::size_t n>
  constexpr Span(T (&array)[n]) noexcept : data_(array), size_(n) {}

  /// The elements of a container, such as a std::vector or a std::span.
  template <class Container, class Data = decltype(std::declval<Container &>().data()),
            class = decltype(std::declval<Container &>().size()),
            class = std::enable_if_t<std::is_convertible_v<std::remove_pointer_t<Data> (*)[], T (*)[]>>>
  constexpr Span(Container &&elements) noexcept : data_(elements.data()), size_(elements.size()) {}

  /// A list in braces.
  template <class U = T, class = std::enable_if_t<std::is_const_v<U>>>
  constexpr Span(std::initializer_list<std::remove_const_t<T>> list) noexcept
      : data_(list.begin()), size_(list.size()) {}

  /// The first element.
  constexpr T *data() const noexcept { return data_; }
  /// Their number.
  constexpr std::size_t size() const noexcept { return size_; }
  /// Whether there are none.
  constexpr bool empty() const noexcept { return size_ == 0; }
  /// The first element, for loops.
  constexpr T *begin() const noexcept { return data_; }
  /// Behind the last element, for loops.
  constexpr T *end() const noexcept { return data_ + size_; }
  /// An element; `index` is less than `size()`.
  constexpr T &operator[](std::size_t index) const noexcept { return data_[index]; }

 private:
  T *data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace pld

#endif
