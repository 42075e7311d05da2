/// @file handle.hpp
/// What owns an object of the C interface.
#ifndef PLD_HANDLE_HPP
#define PLD_HANDLE_HPP

#include <pld.h>

#include <memory>
#include <utility>

namespace pld {

/// Owns an object of the C interface, and destroys it. Moved, never copied; a handle that was moved from owns nothing.
template <class Raw, void (*destroy)(Raw *)>
class Handle {
 public:
  /// Takes over an object of the C interface. `kept` is what the object points to: it goes after the object.
  explicit Handle(Raw *raw, std::shared_ptr<void> kept = nullptr) noexcept : kept_(std::move(kept)), raw_(raw) {}

  /// Takes over what another one owns.
  Handle(Handle &&other) noexcept : kept_(std::move(other.kept_)), raw_(std::exchange(other.raw_, nullptr)) {}
  /// Takes over what another one owns, in place of its own object, which is destroyed.
  Handle &operator=(Handle &&other) noexcept {
    Handle taken(std::move(other));
    std::swap(kept_, taken.kept_);
    std::swap(raw_, taken.raw_);
    return *this;
  }
  Handle(const Handle &) = delete;
  Handle &operator=(const Handle &) = delete;
  ~Handle() {
    if (raw_ != nullptr) destroy(raw_);
  }

  /// The object, for calls of the C interface; it stays owned.
  Raw *capi() const noexcept { return raw_; }
  /// Gives the object away: the caller destroys it. C++ functions that it calls are gone with this handle and those
  /// made of it.
  Raw *release() noexcept { return std::exchange(raw_, nullptr); }
  /// Whether it owns an object.
  explicit operator bool() const noexcept { return raw_ != nullptr; }
  /// What the object points to, for handles of objects that are made of this one.
  const std::shared_ptr<void> &kept() const noexcept { return kept_; }

 protected:
  /// What the object points to.
  std::shared_ptr<void> kept_;

 private:
  Raw *raw_;
};

}  // namespace pld

#endif
