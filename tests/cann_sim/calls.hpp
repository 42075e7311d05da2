// What all functions share: they are counted, can be ordered to fail, leave a text with an error, and give out handles
// that are known as long as they live.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "abi.hpp"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace cann_sim {

// CANN's codes, by its names.
enum Code : int {
  INVALID_PARAM = 100000,
  UNINITIALIZE = 100001,
  REPEAT_INITIALIZE = 100002,
  INVALID_FILE = 100003,
  RT_PARAM_INVALID = 107000,
  RT_INVALID_DEVICEID = 107001,
  RT_CONTEXT_NULL = 107002,
  RT_STREAM_CONTEXT = 107003,
  RT_EVENT_TIMESTAMP_INVALID = 107006,
  RT_INVALID_MEMORY_TYPE = 107016,
  RT_INVALID_HANDLE = 107017,
  RT_FEATURE_NOT_SUPPORT = 207000,
  RT_MEMORY_ALLOCATION = 207001,
  RT_AICPU_EXCEPTION = 507018,
  RT_KERNEL_LOOKUP = 507027,
  RT_VECTOR_CORE_EXCEPTION = 507035,
  RT_STREAM_SYNC_TIMEOUT = 507046,
  RT_EVENT_SYNC_TIMEOUT = 507047,
  RT_DRV_INTERNAL_ERROR = 507899,
};

// The first statement of every function: counts the call, and gives the code with which CANN_SIM_FAIL orders it to
// fail, or 0.
int enter(const char *function);

// Keeps the text for aclGetRecentErrMsg, with the function in front, and gives the code back.
[[gnu::format(printf, 2, 3)]] int fail(int code, const char *format, ...);
// The same for HCCL's functions.
template <class... Values>
HcclResult fail(HcclResult code, const char *format, Values... values) {
  return static_cast<HcclResult>(fail(static_cast<int>(code), format, values...));
}

// A number from the environment, or this one.
int64_t number(const char *variable, int64_t otherwise);

// Objects are counted by kind for the report.
void count_object(const char *kind, int change);

// What handles of one kind have above their 48 lower bits: no address of a program begins so.
uint64_t next_kind();

// Live objects of a kind. Handles are numbers that no address is like and that never come again: one of another kind,
// or one whose object is gone, is found out.
template <class T>
class Handles {
 public:
  explicit Handles(const char *kind) : kind_(kind), last_(next_kind() << 48) {}

  void *add(std::shared_ptr<T> object) {
    std::scoped_lock lock(mutex_);
    void *handle = reinterpret_cast<void *>(last_ += 16);
    live_[handle] = std::move(object);
    count_object(kind_, 1);
    return handle;
  }
  // Null after a message, when there is none.
  std::shared_ptr<T> find(const void *handle) {
    std::scoped_lock lock(mutex_);
    const auto found = live_.find(const_cast<void *>(handle));
    if (found != live_.end()) return found->second;
    fail(RT_INVALID_HANDLE, "%p is no %s, or it was destroyed", handle, kind_);
    return nullptr;
  }
  std::shared_ptr<T> remove(const void *handle) {
    std::scoped_lock lock(mutex_);
    const auto found = live_.find(const_cast<void *>(handle));
    if (found == live_.end()) {
      fail(RT_INVALID_HANDLE, "%p is no %s, or it was destroyed before", handle, kind_);
      return nullptr;
    }
    auto object = std::move(found->second);
    live_.erase(found);
    count_object(kind_, -1);
    return object;
  }
  // Calls this with every object.
  template <class F>
  void each(F visit) {
    std::scoped_lock lock(mutex_);
    for (auto &[handle, object] : live_) visit(object);
  }

 private:
  const char *kind_;
  std::mutex mutex_;
  std::map<void *, std::shared_ptr<T>> live_;
  uint64_t last_;
};

}  // namespace cann_sim
