#include "device.hpp"

#include <cstdlib>
#include <deque>
#include <sstream>

namespace cann_sim {
namespace {

Handles<Context> &contexts = *new Handles<Context>("context");
thread_local void *current = nullptr;
std::mutex init_mutex;
bool initialized = false;

// Those of CANN_SIM_DEVICES that ASCEND_RT_VISIBLE_DEVICES names.
std::deque<Device> &devices() {
  static std::deque<Device> &all = *[] {
    auto *list = new std::deque<Device>;
    const int count = static_cast<int>(number("CANN_SIM_DEVICES", 8));
    const int cores = static_cast<int>(number("CANN_SIM_CORES", 48));
    const char *visible = std::getenv("ASCEND_RT_VISIBLE_DEVICES");
    if (!visible) {
      for (int device = 0; device < count; ++device) list->emplace_back(device, device, cores);
      return list;
    }
    std::stringstream names(visible);
    for (std::string name; std::getline(names, name, ',');) {
      const int driver = std::atoi(name.c_str());
      if (driver < 0 || driver >= count) break;  // as on a card: those before it count
      list->emplace_back(static_cast<int>(list->size()), driver, cores);
    }
    return list;
  }();
  return all;
}

size_t memory_limit() { return static_cast<size_t>(number("CANN_SIM_MEMORY", int64_t{8} << 30)); }

}  // namespace

Device *find_device(int number) {
  if (number >= 0 && static_cast<size_t>(number) < devices().size()) return &devices()[static_cast<size_t>(number)];
  fail(RT_INVALID_DEVICEID, "there is no device %d; this process sees %zu", number, devices().size());
  return nullptr;
}

Device *find_driver_device(int driver) {
  for (Device &device : devices())
    if (device.driver == driver) return &device;
  return nullptr;
}

std::shared_ptr<Context> current_context() {
  if (current) {
    if (auto context = contexts.find(current)) return context;
    fail(RT_CONTEXT_NULL, "the context of this thread was destroyed, or its device was reset");
  } else {
    fail(RT_CONTEXT_NULL, "this thread has no context; call aclrtSetDevice on it first");
  }
  return nullptr;
}

void *make_context(Device &device) { return contexts.add(std::make_shared<Context>(device)); }
void enter_context(void *context) { current = context; }
void end_context(void *context) { contexts.remove(context); }

bool reserve_memory(Device &device, size_t bytes) {
  std::scoped_lock lock(device.mutex);
  if (bytes > memory_limit() - device.allocated) {
    fail(RT_MEMORY_ALLOCATION, "device %d has %zu bytes left of %zu; %zu are asked for", device.number,
         memory_limit() - device.allocated, memory_limit(), bytes);
    return false;
  }
  device.allocated += bytes;
  return true;
}

void return_memory(Device &device, size_t bytes) {
  std::scoped_lock lock(device.mutex);
  device.allocated -= bytes;
}

}  // namespace cann_sim

using namespace cann_sim;

EXPORTED aclError aclInit(const char *) {
  if (int code = enter(__func__)) return code;
  std::scoped_lock lock(init_mutex);
  if (initialized) return fail(REPEAT_INITIALIZE, "this process is initialized");
  initialized = true;
  return 0;
}

EXPORTED aclError aclrtGetVersion(int32_t *major, int32_t *minor, int32_t *patch) {
  if (int code = enter(__func__)) return code;
  if (!major || !minor || !patch) return fail(INVALID_PARAM, "a null pointer for a result");
  const char *version = std::getenv("CANN_SIM_VERSION");
  *major = *minor = *patch = 0;
  if (std::sscanf(version ? version : "1.17.0", "%d.%d.%d", major, minor, patch) != 3) std::abort();
  return 0;
}

EXPORTED const char *aclrtGetSocName() {
  if (enter(__func__)) return nullptr;
  const char *name = std::getenv("CANN_SIM_SOC");
  return name ? name : "Ascend910_9391";
}

EXPORTED aclError aclrtGetDeviceCount(uint32_t *count) {
  if (int code = enter(__func__)) return code;
  if (!count) return fail(INVALID_PARAM, "a null pointer for the count");
  *count = static_cast<uint32_t>(devices().size());
  return 0;
}

EXPORTED aclError aclrtSetDevice(int32_t number) {
  if (int code = enter(__func__)) return code;
  {
    std::scoped_lock lock(init_mutex);
    if (!initialized) return fail(UNINITIALIZE, "call aclInit first");
  }
  Device *device = find_device(number);
  if (!device) return RT_INVALID_DEVICEID;
  std::scoped_lock lock(device->mutex);
  if (device->users++ == 0) device->primary = contexts.add(std::make_shared<Context>(*device));
  current = device->primary;
  return 0;
}

EXPORTED aclError aclrtResetDevice(int32_t number) {
  if (int code = enter(__func__)) return code;
  Device *device = find_device(number);
  if (!device) return RT_INVALID_DEVICEID;
  std::scoped_lock lock(device->mutex);
  if (device->users == 0) return fail(RT_CONTEXT_NULL, "device %d is not in use", number);
  if (--device->users == 0) {
    contexts.remove(device->primary);
    device->primary = nullptr;
  }
  return 0;
}

EXPORTED aclError aclrtGetDevice(int32_t *number) {
  if (int code = enter(__func__)) return code;
  if (!number) return fail(INVALID_PARAM, "a null pointer for the device");
  const auto context = current_context();
  if (!context) return RT_CONTEXT_NULL;
  *number = context->device.number;
  return 0;
}

EXPORTED aclError aclrtGetCurrentContext(aclrtContext *context) {
  if (int code = enter(__func__)) return code;
  if (!context) return fail(INVALID_PARAM, "a null pointer for the context");
  if (!current_context()) return RT_CONTEXT_NULL;
  *context = current;
  return 0;
}

EXPORTED aclError aclrtSetCurrentContext(aclrtContext context) {
  if (int code = enter(__func__)) return code;
  if (!contexts.find(context)) return RT_INVALID_HANDLE;
  current = context;
  return 0;
}

EXPORTED aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *free, size_t *total) {
  if (int code = enter(__func__)) return code;
  if (!free || !total) return fail(INVALID_PARAM, "a null pointer for a result");
  if (attr != ACL_HBM_MEM && attr != ACL_HBM_MEM_HUGE && attr != ACL_HBM_MEM_NORMAL)
    return fail(RT_PARAM_INVALID, "memory attribute %d; only HBM is here", attr);
  const auto context = current_context();
  if (!context) return RT_CONTEXT_NULL;
  std::scoped_lock lock(context->device.mutex);
  *total = memory_limit();
  *free = *total - context->device.allocated;
  return 0;
}

EXPORTED aclError aclrtDeviceEnablePeerAccess(int32_t peer, uint32_t flags) {
  if (int code = enter(__func__)) return code;
  const auto context = current_context();
  if (!context) return RT_CONTEXT_NULL;
  if (flags != 0) return fail(RT_PARAM_INVALID, "flags are %u; they must be 0", flags);
  if (!find_device(peer)) return RT_INVALID_DEVICEID;
  if (peer == context->device.number) return fail(RT_INVALID_DEVICEID, "device %d is no peer of itself", peer);
  std::scoped_lock lock(context->device.mutex);
  context->device.peers.insert(peer);
  return 0;
}

EXPORTED aclError aclrtDevicePeerAccessStatus(int32_t number, int32_t peer, int32_t *status) {
  if (int code = enter(__func__)) return code;
  if (!status) return fail(INVALID_PARAM, "a null pointer for the status");
  Device *device = find_device(number);
  if (!device || !find_device(peer)) return RT_INVALID_DEVICEID;
  std::scoped_lock lock(device->mutex);
  *status = device->peers.contains(peer);
  return 0;
}

EXPORTED aclError aclrtGetLogicDevIdByUserDevId(const int32_t number, int32_t *const driver) {
  if (int code = enter(__func__)) return code;
  if (!driver) return fail(INVALID_PARAM, "a null pointer for the number");
  const Device *device = find_device(number);
  if (!device) return RT_INVALID_DEVICEID;
  *driver = device->driver;
  return 0;
}

EXPORTED aclError aclrtGetUserDevIdByLogicDevId(const int32_t driver, int32_t *const number) {
  if (int code = enter(__func__)) return code;
  if (!number) return fail(INVALID_PARAM, "a null pointer for the number");
  const Device *device = find_driver_device(driver);
  if (!device) return fail(RT_INVALID_DEVICEID, "the driver's device %d is not one of this process", driver);
  *number = device->number;
  return 0;
}
