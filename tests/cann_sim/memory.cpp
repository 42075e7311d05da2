#include "memory.hpp"

#include <sys/mman.h>

#include <bit>
#include <cstring>
#include <shared_mutex>

#include "stream.hpp"

namespace cann_sim {
namespace {

struct Region {
  size_t size;
  Devices devices;
  const char *origin;  // the function that it comes from
};

std::shared_mutex &mutex = *new std::shared_mutex;
std::map<uintptr_t, Region> &regions = *new std::map<uintptr_t, Region>;

// Host memory of aclrtMallocHost.
std::mutex &host_mutex = *new std::mutex;
std::map<void *, size_t> &host = *new std::map<void *, size_t>;

// The last region that begins at or before the address.
auto region_before(uintptr_t address) {
  auto next = regions.upper_bound(address);
  return next == regions.begin() ? regions.end() : std::prev(next);
}

// How the two sides of a copy must look.
struct Sides {
  bool device_to, device_from;
};

int check_copy(const void *to, size_t room, const void *from, size_t count, aclrtMemcpyKind kind,
               const Device &device) {
  if (!to || !from) return fail(RT_PARAM_INVALID, "a null pointer to copy %s", to ? "from" : "to");
  if (count == 0) return fail(RT_PARAM_INVALID, "a copy of 0 bytes");
  if (count > room) return fail(RT_PARAM_INVALID, "a copy of %zu bytes to where %zu have room", count, room);
  Sides sides{};
  switch (kind) {
    case ACL_MEMCPY_HOST_TO_HOST: break;
    case ACL_MEMCPY_HOST_TO_DEVICE: sides.device_to = true; break;
    case ACL_MEMCPY_DEVICE_TO_HOST: sides.device_from = true; break;
    case ACL_MEMCPY_DEVICE_TO_DEVICE: sides = {true, true}; break;
    default: return fail(RT_PARAM_INVALID, "a copy of kind %d; say which side is the device's", kind);
  }
  for (const bool destination : {true, false}) {
    const void *address = destination ? to : from;
    const char *side = destination ? "destination" : "source";
    std::string why;
    if (destination ? sides.device_to : sides.device_from) {
      if (!is_device_memory(address, count, device, why))
        return fail(RT_INVALID_MEMORY_TYPE, "the %s of a copy of kind %d: %s", side, kind, why.c_str());
    } else if (touches_device_memory(address, count)) {
      return fail(RT_INVALID_MEMORY_TYPE, "the %s of a copy of kind %d, %p, is device memory", side, kind, address);
    }
  }
  return 0;
}

int check_set(void *address, size_t room, size_t count, const Device &device) {
  if (count == 0 || count > room) return fail(RT_PARAM_INVALID, "%zu bytes to set, where %zu have room", count, room);
  std::string why;
  if (!is_device_memory(address, count, device, why)) return fail(RT_INVALID_MEMORY_TYPE, "%s", why.c_str());
  return 0;
}

}  // namespace

void add_region(uintptr_t base, size_t size, Devices devices, const char *origin) {
  std::unique_lock lock(mutex);
  regions[base] = {size, devices, origin};
}

bool remove_region(uintptr_t base) {
  std::unique_lock lock(mutex);
  return regions.erase(base) != 0;
}

bool is_device_memory(const void *pointer, size_t bytes, const Device &device, std::string &why) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  char text[256];
  std::shared_lock lock(mutex);
  const auto found = region_before(address);
  if (found == regions.end() || address >= found->first + found->second.size) {
    std::snprintf(text, sizeof text, "%p is no device memory", pointer);
  } else if (bytes > found->first + found->second.size - address) {
    std::snprintf(text, sizeof text, "%zu bytes at %p end beyond the %zu of %s at %p", bytes, pointer,
                  found->second.size, found->second.origin, reinterpret_cast<void *>(found->first));
  } else if (!(found->second.devices & only(device))) {
    std::snprintf(text, sizeof text, "%p is memory of device %d, not of device %d", pointer,
                  std::countr_zero(found->second.devices), device.number);
  } else {
    return true;
  }
  why = text;
  return false;
}

bool touches_device_memory(const void *pointer, size_t bytes) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  std::shared_lock lock(mutex);
  const auto found = region_before(address + bytes - 1);
  return found != regions.end() && address < found->first + found->second.size;
}

}  // namespace cann_sim

using namespace cann_sim;

EXPORTED aclError aclrtMalloc(void **result, size_t size, aclrtMemMallocPolicy) {
  if (int code = enter(__func__)) return code;
  if (!result || size == 0)
    return fail(INVALID_PARAM, "%zu bytes, for a result at %p", size, static_cast<void *>(result));
  const auto context = current_context();
  if (!context) return RT_CONTEXT_NULL;
  if (!reserve_memory(context->device, size)) return RT_MEMORY_ALLOCATION;
  void *memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return_memory(context->device, size);
    return fail(RT_MEMORY_ALLOCATION, "the host has no %zu bytes", size);
  }
  std::memset(memory, GARBAGE, size);
  add_region(reinterpret_cast<uintptr_t>(memory), size, only(context->device), "aclrtMalloc");
  count_object("memory", 1);
  *result = memory;
  return 0;
}

EXPORTED aclError aclrtFree(void *memory) {
  if (int code = enter(__func__)) return code;
  const auto context = current_context();
  if (!context) return RT_CONTEXT_NULL;
  size_t size;
  {
    std::unique_lock lock(mutex);
    const auto found = regions.find(reinterpret_cast<uintptr_t>(memory));
    if (found == regions.end() || std::strcmp(found->second.origin, "aclrtMalloc") != 0)
      return fail(RT_PARAM_INVALID, "%p is not what aclrtMalloc gave, or it was freed before", memory);
    if (found->second.devices != only(context->device))
      return fail(RT_PARAM_INVALID, "%p is memory of device %d, not of device %d", memory,
                  std::countr_zero(found->second.devices), context->device.number);
    size = found->second.size;
    regions.erase(found);
  }
  munmap(memory, size);
  return_memory(context->device, size);
  count_object("memory", -1);
  return 0;
}

EXPORTED aclError aclrtMallocHost(void **result, size_t size) {
  if (int code = enter(__func__)) return code;
  if (!result || size == 0)
    return fail(INVALID_PARAM, "%zu bytes, for a result at %p", size, static_cast<void *>(result));
  if (!current_context()) return RT_CONTEXT_NULL;
  *result = std::aligned_alloc(64, (size + 63) / 64 * 64);
  if (!*result) return fail(RT_MEMORY_ALLOCATION, "the host has no %zu bytes", size);
  std::scoped_lock lock(host_mutex);
  host[*result] = size;
  count_object("host memory", 1);
  return 0;
}

EXPORTED aclError aclrtFreeHost(void *memory) {
  if (int code = enter(__func__)) return code;
  std::scoped_lock lock(host_mutex);
  if (!host.erase(memory))
    return fail(RT_PARAM_INVALID, "%p is not what aclrtMallocHost gave, or it was freed before", memory);
  std::free(memory);
  count_object("host memory", -1);
  return 0;
}

EXPORTED aclError aclrtMemcpy(void *to, size_t room, const void *from, size_t count, aclrtMemcpyKind kind) {
  if (int code = enter(__func__)) return code;
  const auto context = current_context();
  if (!context) return RT_CONTEXT_NULL;
  if (int code = check_copy(to, room, from, count, kind, context->device)) return code;
  std::memmove(to, from, count);
  return 0;
}

EXPORTED aclError aclrtMemcpyAsync(void *to, size_t room, const void *from, size_t count, aclrtMemcpyKind kind,
                                   aclrtStream handle) {
  if (int code = enter(__func__)) return code;
  std::shared_ptr<Stream> stream;
  if (int code = find_stream(handle, stream)) return code;
  Device &device = stream->device();
  if (int code = check_copy(to, room, from, count, kind, device)) return code;
  stream->submit([=, &device](std::string &why) {
    const bool to_device = kind == ACL_MEMCPY_HOST_TO_DEVICE || kind == ACL_MEMCPY_DEVICE_TO_DEVICE;
    const bool from_device = kind == ACL_MEMCPY_DEVICE_TO_HOST || kind == ACL_MEMCPY_DEVICE_TO_DEVICE;
    if (to_device && !is_device_memory(to, count, device, why)) return RT_INVALID_MEMORY_TYPE;
    if (from_device && !is_device_memory(from, count, device, why)) return RT_INVALID_MEMORY_TYPE;
    std::memmove(to, from, count);
    return Code{};
  });
  return 0;
}

EXPORTED aclError aclrtMemset(void *address, size_t room, int32_t value, size_t count) {
  if (int code = enter(__func__)) return code;
  const auto context = current_context();
  if (!context) return RT_CONTEXT_NULL;
  if (int code = check_set(address, room, count, context->device)) return code;
  std::memset(address, value, count);
  return 0;
}

EXPORTED aclError aclrtMemsetAsync(void *address, size_t room, int32_t value, size_t count, aclrtStream handle) {
  if (int code = enter(__func__)) return code;
  std::shared_ptr<Stream> stream;
  if (int code = find_stream(handle, stream)) return code;
  Device &device = stream->device();
  if (int code = check_set(address, room, count, device)) return code;
  stream->submit([=, &device](std::string &why) {
    if (!is_device_memory(address, count, device, why)) return RT_INVALID_MEMORY_TYPE;
    std::memset(address, value, count);
    return Code{};
  });
  return 0;
}

EXPORTED aclError aclrtPointerGetAttributes(const void *pointer, aclrtPtrAttributes *attributes) {
  if (int code = enter(__func__)) return code;
  if (!pointer || !attributes) return fail(INVALID_PARAM, "a null pointer");
  *attributes = {};
  {
    std::scoped_lock lock(host_mutex);
    const auto next = host.upper_bound(const_cast<void *>(pointer));
    attributes->location.type = ACL_MEM_LOCATION_TYPE_UNREGISTERED;
    if (next != host.begin()) {
      const auto [base, size] = *std::prev(next);
      if (static_cast<const char *>(pointer) < static_cast<char *>(base) + size)
        attributes->location.type = ACL_MEM_LOCATION_TYPE_HOST;
    }
  }
  std::shared_lock lock(mutex);
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  const auto found = region_before(address);
  if (found != regions.end() && address < found->first + found->second.size) {
    attributes->location = {static_cast<uint32_t>(std::countr_zero(found->second.devices)),
                            ACL_MEM_LOCATION_TYPE_DEVICE};
    attributes->pageSize = 4096;
  }
  return 0;
}
