/// @file callback.hpp
/// The engine's own functions as tasks: what they are called with, and how lambdas become them.
#ifndef PLD_CALLBACK_HPP
#define PLD_CALLBACK_HPP

#include <pld.h>
#include <pld/dtype.hpp>
#include <pld/error.hpp>
#include <pld/scalar.hpp>
#include <pld/span.hpp>
#include <pld/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace pld {

/// Memory as a function of the engine sees it: elements of one C++ type, with extents and distances between neighbours
/// in each dimension, in elements.
template <class T>
class View {
 public:
  /// Elements, extents and distances, as many as there are dimensions.
  View(T *data, Span<const std::int64_t> shape, const std::int64_t *strides) noexcept
      : data_(data), shape_(shape), strides_(strides) {}

  /// The first element.
  T *data() const noexcept { return data_; }
  /// The extents, outermost first.
  Span<const std::int64_t> shape() const noexcept { return shape_; }
  /// The distances between neighbours, in elements.
  Span<const std::int64_t> strides() const noexcept { return {strides_, shape_.size()}; }

  /// An element, by one index for each dimension. Indices are not checked.
  template <class... Index>
  T &operator()(Index... indices) const noexcept {
    const std::int64_t at[] = {static_cast<std::int64_t>(indices)...};
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < sizeof...(indices); i++) offset += at[i] * strides_[i];
    return data_[offset];
  }

 private:
  T *data_;
  Span<const std::int64_t> shape_;
  const std::int64_t *strides_;
};

/// What a call of a function of the engine is about. It lives until the function returns.
class TaskContext {
 public:
  /// The context of the C interface.
  explicit TaskContext(const pld_task_context_t *raw) noexcept : raw_(raw) {}

  /// The rank; for a host task the first rank of the process.
  std::uint32_t rank() const noexcept { return raw_->rank; }
  /// Number of ranks of the world.
  std::uint32_t nranks() const noexcept { return raw_->nranks; }
  /// Which of the rank's cores makes the call, from 0.
  std::uint32_t core() const noexcept { return raw_->core; }
  /// The block, from 0.
  std::int64_t block() const noexcept { return raw_->block; }
  /// Number of blocks.
  std::int64_t blocks() const noexcept { return raw_->blocks; }
  /// The launch of the executable, from 1.
  std::uint64_t launch() const noexcept { return raw_->launch; }
  /// Where ranks are cards, the `aclrtStream` on which an extern task queues its work; nullptr on CPUs and for host tasks.
  void *stream() const noexcept { return raw_->stream; }
  /// Name of the function in the program.
  const char *name() const noexcept { return raw_->name; }

  /// Number of tensors among the arguments.
  std::size_t tensors() const noexcept { return raw_->ntensors; }
  /// Number of values among the arguments.
  std::size_t values() const noexcept { return raw_->nscalars; }

  /// Tensor number `index`, counted without the values, as elements of type T, or Status::invalid_argument if there is
  /// none or it holds another type.
  template <class T>
  Result<View<T>> try_tensor(std::size_t index) const noexcept {
    const pld_task_tensor_t *t = pld_context_tensor(raw_, index);
    if (t == nullptr || t->dtype != pld::capi(dtype_of<T>())) return mismatch(index, t, dtype_of<T>());
    return View<T>(static_cast<T *>(t->data), {t->shape, t->ndims}, t->strides);
  }

#if PLD_EXCEPTIONS
  /// As `try_tensor`, but throws the error, which ends the launch.
  template <class T>
  View<T> tensor(std::size_t index) const {
    return try_tensor<T>(index).value();
  }
#endif

  /// Value number `index`, counted without the tensors, of type I32, I64 or BOOL; 0 if there is none.
  std::int64_t integer(std::size_t index) const noexcept { return pld_context_int(raw_, index); }
  /// Value number `index`, counted without the tensors, of type F32; 0 if there is none.
  double real(std::size_t index) const noexcept { return pld_context_float(raw_, index); }

  /// The context as the C interface has it.
  const pld_task_context_t *capi() const noexcept { return raw_; }

 private:
  Error mismatch(std::size_t index, const pld_task_tensor_t *tensor, DType wanted) const {
    const std::string number = "number " + std::to_string(index), name = raw_->name;
    if (tensor != nullptr)
      return Error(Status::invalid_argument, "of the tensors of '" + name + "' " + number + " is " +
                                                 pld::name(static_cast<DType>(tensor->dtype)) + ", not " +
                                                 pld::name(wanted));
    return Error(Status::invalid_argument,
                 "'" + name + "' is given " + std::to_string(tensors()) + " tensors, and there is no " + number);
  }

  const pld_task_context_t *raw_;
};

/// An argument of a function of the engine: a tensor with what is done to it, or a value.
class CallbackArg {
 public:
  /// A value.
  template <class T, class = std::enable_if_t<detail::is_operand<T>>>
  CallbackArg(T &&value, Location at = Location::here())
      : raw_(pld_value(detail::to_scalar(std::forward<T>(value), at).capi())) {}

  /// A tensor; `in`, `out` and `inout` make them.
  CallbackArg(Direction direction, const Tensor &tensor) noexcept
      : raw_(pld_callback_tensor(static_cast<pld_direction_t>(direction), tensor.capi())) {}

  /// The argument as the C interface has it.
  const pld_callback_arg_t &capi() const noexcept { return raw_; }

 private:
  pld_callback_arg_t raw_;
};

/// A tensor that the function reads.
inline CallbackArg reads(const Tensor &tensor) noexcept { return CallbackArg(Direction::in, tensor); }
/// A tensor that the function writes.
inline CallbackArg writes(const Tensor &tensor) noexcept { return CallbackArg(Direction::out, tensor); }
/// A tensor that the function reads and writes.
inline CallbackArg updates(const Tensor &tensor) noexcept { return CallbackArg(Direction::inout, tensor); }

/// A function of the engine: a C function with its `user_data`, or anything that can be called with a TaskContext (or
/// nothing) and returns nothing, a Status, or what a `pld_callback_fn` returns. What is called may be called by several
/// threads at once; what it throws ends the launch with Status::callback.
class Callback {
 public:
  /// No function: it is given when the program is compiled.
  Callback() noexcept = default;

  /// A C function.
  Callback(pld_callback_fn c_function, void *passed) noexcept : function_(c_function), user_data_(passed) {}

  /// A lambda, a std::function, a C++ function: it is copied, once, and called without an indirection of its own.
  template <class F,
            class = std::enable_if_t<!std::is_same_v<std::decay_t<F>, Callback> &&
                                     (std::is_invocable_v<F &, const TaskContext &> || std::is_invocable_v<F &>)>>
  Callback(F &&f) {
    using Kept = std::decay_t<F>;
    auto kept = std::make_shared<Kept>(std::forward<F>(f));
    user_data_ = kept.get();
    kept_ = std::move(kept);
    function_ = [](const pld_task_context_t *context, void *passed) noexcept -> std::int32_t {
      return call(*static_cast<Kept *>(passed), TaskContext(context));
    };
  }

  /// The function as the C interface has it; nullptr for none.
  pld_callback_fn function() const noexcept { return function_; }
  /// What it is passed.
  void *user_data() const noexcept { return user_data_; }
  /// What must live as long as it may be called.
  const std::shared_ptr<void> &kept() const noexcept { return kept_; }

 private:
  template <class F>
  static std::int32_t call(F &f, const TaskContext &context) noexcept {
    std::int32_t result = 0;
    const auto run = [&]() -> decltype(auto) {
      if constexpr (std::is_invocable_v<F &, const TaskContext &>) {
        return f(context);
      } else {
        return f();
      }
    };
    const bool whole = detail::guarded([&] {
      if constexpr (std::is_void_v<decltype(run())>) {
        run();
      } else {
        result = static_cast<std::int32_t>(run());
      }
    });
    return whole ? result : PLD_ERR_CALLBACK;
  }

  pld_callback_fn function_ = nullptr;
  void *user_data_ = nullptr;
  std::shared_ptr<void> kept_;
};

namespace detail {

/// Functions that must live as long as what calls them.
using Kept = std::vector<std::shared_ptr<void>>;

}  // namespace detail
}  // namespace pld

#endif
