// Physical memory, addresses for it, and handles by which other processes get at it. The memory is a file without a
// name; who has its number and its process opens it.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "memory.hpp"

namespace cann_sim {
namespace {

constexpr size_t HUGE_PAGE = 2 << 20, NORMAL_PAGE = 64 << 10;

// The file's first page: what importers must know.
struct Header {
  uint64_t magic, size;
  uint32_t serial;
  bool huge;
  std::atomic<bool> exported;  // to every process
};
constexpr uint64_t MAGIC = 0x6d6973206e6e6163;
constexpr size_t HEADER = 4096;
static_assert(sizeof(Header) <= HEADER);

struct Physical {
  // Owner is the process that allocated it, or 0 for this one.
  Physical(int file, Header *header, Device &device, int owner)
      : file(file), header(header), device(device), owner(owner) {}
  ~Physical() {
    if (!owner) return_memory(device, header->size);
    munmap(header, HEADER);
    close(file);
  }
  Physical(const Physical &) = delete;

  const int file;
  Header *const header;
  Device &device;  // for which it was allocated or imported
  const int owner;
  int mappings = 0;
};

struct Reservation {
  size_t size;
  bool huge;
  std::shared_ptr<Physical> mapped;
};

// A handle for others: the same in both forms.
struct Share {
  uint64_t magic;
  int32_t process, file;
  uint32_t serial;
};

Handles<Physical> &physicals = *new Handles<Physical>("physical memory");
std::mutex &mutex = *new std::mutex;
std::map<uintptr_t, Reservation> &reservations = *new std::map<uintptr_t, Reservation>;

Header *map_header(int file) {
  void *page = mmap(nullptr, HEADER, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return page == MAP_FAILED ? nullptr : static_cast<Header *>(page);
}

// Null, when the host has no memory.
Header *make_file(int file, size_t size) {
  if (ftruncate(file, static_cast<off_t>(HEADER + size)) != 0) return nullptr;
  void *all = mmap(nullptr, HEADER + size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (all == MAP_FAILED) return nullptr;
  std::memset(static_cast<char *>(all) + HEADER, GARBAGE, size);
  munmap(all, HEADER + size);
  return map_header(file);
}

uint64_t pack(const Share &share) {
  return static_cast<uint64_t>(share.process) << 40 | static_cast<uint64_t>(share.file) << 20 |
         (share.serial & 0xfffff);
}

int check_prop(const aclrtPhysicalMemProp *prop, const Device &device) {
  if (!prop) return fail(INVALID_PARAM, "a null pointer for the properties");
  if (prop->handleType != ACL_MEM_HANDLE_TYPE_NONE || prop->allocationType != ACL_MEM_ALLOCATION_TYPE_PINNED)
    return fail(RT_PARAM_INVALID, "handle type %d, allocation type %d; both must be 0", prop->handleType,
                prop->allocationType);
  if (prop->memAttr != ACL_HBM_MEM_HUGE && prop->memAttr != ACL_HBM_MEM_NORMAL)
    return fail(RT_PARAM_INVALID, "memory attribute %d; HBM has 4, with huge pages, and 5", prop->memAttr);
  if (prop->location.type != ACL_MEM_LOCATION_TYPE_DEVICE || static_cast<int>(prop->location.id) != device.number)
    return fail(RT_PARAM_INVALID, "location type %d, device %u; this thread works on device %d", prop->location.type,
                prop->location.id, device.number);
  if (prop->reserve != 0) return fail(RT_PARAM_INVALID, "the reserved field is not 0");
  return 0;
}

// What aclrtReserveMemAddress gave; null after a message, when the address is none.
Reservation *find_reservation(const void *address) {
  const auto found = reservations.find(reinterpret_cast<uintptr_t>(address));
  if (found != reservations.end()) return &found->second;
  fail(RT_PARAM_INVALID, "%p is not what aclrtReserveMemAddress gave, or it was released before", address);
  return nullptr;
}

int export_share(aclrtDrvMemHandle handle, uint64_t flags, Share &share) {
  const auto memory = physicals.find(handle);
  if (!memory) return RT_INVALID_HANDLE;
  if (memory->owner) return fail(RT_PARAM_INVALID, "only who allocated the memory can export it");
  if (flags != ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION)
    return fail(RT_PARAM_INVALID, "flags are %#lx; only 1 is here, so that every process may import",
                static_cast<unsigned long>(flags));
  if (memory->header->exported.exchange(true)) return fail(RT_PARAM_INVALID, "the memory was exported before");
  share = {MAGIC, getpid(), memory->file, memory->header->serial};
  return 0;
}

int import_share(const Share &share, Device &device, aclrtDrvMemHandle *handle) {
  if (share.magic == MAGIC && share.process == getpid())
    return fail(RT_PARAM_INVALID, "the memory is this process's own: who exports a handle cannot import it");
  const std::string path = "/proc/" + std::to_string(share.process) + "/fd/" + std::to_string(share.file);
  const int file = share.magic == MAGIC ? open(path.c_str(), O_RDWR | O_CLOEXEC) : -1;
  struct stat about {};
  Header *header =
      file >= 0 && fstat(file, &about) == 0 && about.st_size > static_cast<off_t>(HEADER) ? map_header(file) : nullptr;
  if (!header || header->magic != MAGIC || (header->serial & 0xfffff) != (share.serial & 0xfffff)) {
    if (header) munmap(header, HEADER);
    if (file >= 0) close(file);
    return fail(RT_DRV_INTERNAL_ERROR, "no such memory: the handle is none, or the memory of process %d was freed",
                share.process);
  }
  auto memory = std::make_shared<Physical>(file, header, device, share.process);
  bool known = false;
  physicals.each([&](const std::shared_ptr<Physical> &other) {
    known |= other->owner == share.process && other->header->serial == header->serial;
  });
  if (known) return fail(RT_PARAM_INVALID, "this process has imported the memory of process %d before", share.process);
  *handle = physicals.add(std::move(memory));
  return 0;
}

Share unpack(uint64_t packed) {
  return {MAGIC, static_cast<int32_t>(packed >> 40), static_cast<int32_t>(packed >> 20 & 0xfffff),
          static_cast<uint32_t>(packed & 0xfffff)};
}

}  // namespace
}  // namespace cann_sim

using namespace cann_sim;

EXPORTED aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp *prop, aclrtMemGranularityOptions,
                                                   size_t *granularity) {
  if (int code = enter(__func__)) return code;
  const auto context = current_context();
  if (!context) return RT_CONTEXT_NULL;
  if (!granularity) return fail(INVALID_PARAM, "a null pointer for the granularity");
  if (int code = check_prop(prop, context->device)) return code;
  *granularity = prop->memAttr == ACL_HBM_MEM_HUGE ? HUGE_PAGE : NORMAL_PAGE;
  return 0;
}

EXPORTED aclError aclrtMallocPhysical(aclrtDrvMemHandle *handle, size_t size, const aclrtPhysicalMemProp *prop,
                                      uint64_t flags) {
  if (int code = enter(__func__)) return code;
  const auto context = current_context();
  if (!context) return RT_CONTEXT_NULL;
  if (!handle || flags)
    return fail(INVALID_PARAM, "flags %#lx, for a handle at %p", static_cast<unsigned long>(flags),
                static_cast<void *>(handle));
  Device &device = context->device;
  if (int code = check_prop(prop, device)) return code;
  const bool huge = prop->memAttr == ACL_HBM_MEM_HUGE;
  const size_t page = huge ? HUGE_PAGE : NORMAL_PAGE;
  if (size == 0 || size % page)
    return fail(RT_PARAM_INVALID, "%zu bytes are no multiple of the granularity, %zu", size, page);
  if (!reserve_memory(device, size)) return RT_MEMORY_ALLOCATION;
  const int file = memfd_create("cann_sim", MFD_CLOEXEC);
  Header *header = file >= 0 ? make_file(file, size) : nullptr;
  if (!header) {
    const int reason = errno;
    if (file >= 0) close(file);
    return_memory(device, size);
    return fail(RT_MEMORY_ALLOCATION, "the host has no %zu bytes: %s", size, std::strerror(reason));
  }
  static std::atomic<uint32_t> serial{0};
  header->magic = MAGIC;
  header->size = size;
  header->serial = ++serial;
  header->huge = huge;
  *handle = physicals.add(std::make_shared<Physical>(file, header, device, 0));
  return 0;
}

EXPORTED aclError aclrtFreePhysical(aclrtDrvMemHandle handle) {
  if (int code = enter(__func__)) return code;
  const auto memory = physicals.find(handle);
  if (!memory) return RT_INVALID_HANDLE;
  {
    std::scoped_lock lock(mutex);
    if (memory->mappings)
      return fail(RT_PARAM_INVALID, "the memory is mapped at %d places; unmap it first", memory->mappings);
  }
  physicals.remove(handle);
  return 0;
}

EXPORTED aclError aclrtReserveMemAddress(void **result, size_t size, size_t alignment, void *expected, uint64_t flags) {
  if (int code = enter(__func__)) return code;
  if (!current_context()) return RT_CONTEXT_NULL;
  if (!result || alignment || expected || flags > 1)
    return fail(INVALID_PARAM, "alignment %zu, address %p and flags %#lx; they must be 0, null, and 0 or 1", alignment,
                expected, static_cast<unsigned long>(flags));
  const size_t page = flags ? HUGE_PAGE : NORMAL_PAGE;
  if (size == 0 || size % page) return fail(RT_PARAM_INVALID, "%zu bytes are no multiple of a page, %zu", size, page);
  // A page more at each end would be of nobody, so that an access beyond is found out.
  void *addresses = mmap(nullptr, size + 2 * HEADER, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (addresses == MAP_FAILED) return fail(RT_MEMORY_ALLOCATION, "no %zu addresses", size);
  *result = static_cast<char *>(addresses) + HEADER;
  std::scoped_lock lock(mutex);
  reservations[reinterpret_cast<uintptr_t>(*result)] = {size, flags == 1, nullptr};
  count_object("addresses", 1);
  return 0;
}

EXPORTED aclError aclrtReleaseMemAddress(void *address) {
  if (int code = enter(__func__)) return code;
  std::scoped_lock lock(mutex);
  const Reservation *reservation = find_reservation(address);
  if (!reservation) return RT_PARAM_INVALID;
  if (reservation->mapped) return fail(RT_PARAM_INVALID, "memory is mapped at %p; unmap it first", address);
  munmap(static_cast<char *>(address) - HEADER, reservation->size + 2 * HEADER);
  reservations.erase(reinterpret_cast<uintptr_t>(address));
  count_object("addresses", -1);
  return 0;
}

EXPORTED aclError aclrtMapMem(void *address, size_t size, size_t offset, aclrtDrvMemHandle handle, uint64_t flags) {
  if (int code = enter(__func__)) return code;
  const auto memory = physicals.find(handle);
  if (!memory) return RT_INVALID_HANDLE;
  std::scoped_lock lock(mutex);
  Reservation *reservation = find_reservation(address);
  if (!reservation) return RT_PARAM_INVALID;
  if (offset || flags)
    return fail(RT_PARAM_INVALID, "offset %zu and flags %#lx; both must be 0", offset,
                static_cast<unsigned long>(flags));
  if (size != memory->header->size || size > reservation->size)
    return fail(RT_PARAM_INVALID, "%zu bytes to map, of memory of %zu, to %zu addresses", size, memory->header->size,
                reservation->size);
  if (reservation->mapped) return fail(RT_PARAM_INVALID, "memory is mapped at %p already", address);
  if (reservation->huge != memory->header->huge)
    return fail(RT_PARAM_INVALID, "memory with %s pages, for addresses with %s",
                memory->header->huge ? "huge" : "normal", reservation->huge ? "huge" : "normal");
  if (mmap(address, size, PROT_NONE, MAP_SHARED | MAP_FIXED, memory->file, HEADER) == MAP_FAILED)
    return fail(RT_DRV_INTERNAL_ERROR, "mmap: %s", std::strerror(errno));
  reservation->mapped = memory;
  ++memory->mappings;
  count_object("mapping", 1);
  return 0;
}

EXPORTED aclError aclrtMemSetAccess(void *address, size_t size, aclrtMemAccessDesc *descriptions, size_t count) {
  if (int code = enter(__func__)) return code;
  std::scoped_lock lock(mutex);
  Reservation *reservation = find_reservation(address);
  if (!reservation) return RT_PARAM_INVALID;
  if (!reservation->mapped) return fail(RT_PARAM_INVALID, "nothing is mapped at %p", address);
  if (!descriptions || count == 0 || size != reservation->mapped->header->size)
    return fail(RT_PARAM_INVALID, "%zu descriptions of %zu bytes, where %lu are mapped", count, size,
                static_cast<unsigned long>(reservation->mapped->header->size));
  Devices devices = 0;
  for (size_t i = 0; i < count; ++i) {
    const auto &[flags, location, _] = descriptions[i];
    const Device *device = find_driver_device(static_cast<int>(location.id));
    if (location.type != ACL_MEM_LOCATION_TYPE_DEVICE || !device)
      return fail(RT_DRV_INTERNAL_ERROR,
                  "access for location type %d, id %u, which is no device that the driver knows here", location.type,
                  location.id);
    if (flags != ACL_RT_MEM_ACCESS_FLAGS_READWRITE)
      return fail(RT_PARAM_INVALID, "access %d; only 3, to read and write, is here", flags);
    devices |= only(*device);
  }
  mprotect(address, size, PROT_READ | PROT_WRITE);
  add_region(reinterpret_cast<uintptr_t>(address), size, devices, "aclrtMapMem");
  return 0;
}

EXPORTED aclError aclrtUnmapMem(void *address) {
  if (int code = enter(__func__)) return code;
  std::scoped_lock lock(mutex);
  Reservation *reservation = find_reservation(address);
  if (!reservation) return RT_PARAM_INVALID;
  if (!reservation->mapped) return fail(RT_PARAM_INVALID, "nothing is mapped at %p", address);
  remove_region(reinterpret_cast<uintptr_t>(address));
  mmap(address, reservation->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  --reservation->mapped->mappings;
  reservation->mapped = nullptr;
  count_object("mapping", -1);
  return 0;
}

EXPORTED aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle handle, aclrtMemHandleType type, uint64_t flags,
                                                  uint64_t *shareable) {
  if (int code = enter(__func__)) return code;
  if (!shareable || type != ACL_MEM_HANDLE_TYPE_NONE) return fail(INVALID_PARAM, "handle type %d; it must be 0", type);
  Share share;
  if (int code = export_share(handle, flags, share)) return code;
  *shareable = pack(share);
  return 0;
}

EXPORTED aclError aclrtMemExportToShareableHandleV2(aclrtDrvMemHandle handle, uint64_t flags,
                                                    aclrtMemSharedHandleType type, void *shareable) {
  if (int code = enter(__func__)) return code;
  if (!shareable) return fail(INVALID_PARAM, "a null pointer for the handle");
  if (type != ACL_MEM_SHARE_HANDLE_TYPE_FABRIC)
    return fail(RT_PARAM_INVALID, "handle type %d; only 2, fabric, is here", type);
  if (!number("CANN_SIM_FABRIC", 1)) return fail(RT_FEATURE_NOT_SUPPORT, "these cards have no fabric handles");
  Share share;
  if (int code = export_share(handle, flags, share)) return code;
  std::memset(shareable, 0, sizeof(aclrtMemFabricHandle));
  std::memcpy(shareable, &share, sizeof share);
  return 0;
}

EXPORTED aclError aclrtMemImportFromShareableHandle(uint64_t shareable, int32_t number, aclrtDrvMemHandle *handle) {
  if (int code = enter(__func__)) return code;
  const auto context = current_context();
  if (!context) return RT_CONTEXT_NULL;
  if (!handle) return fail(INVALID_PARAM, "a null pointer for the handle");
  if (number != context->device.number)
    return fail(RT_INVALID_DEVICEID, "for device %d; this thread works on device %d", number, context->device.number);
  return import_share(unpack(shareable), context->device, handle);
}

EXPORTED aclError aclrtMemImportFromShareableHandleV2(void *shareable, aclrtMemSharedHandleType type, uint64_t flags,
                                                      aclrtDrvMemHandle *handle) {
  if (int code = enter(__func__)) return code;
  const auto context = current_context();
  if (!context) return RT_CONTEXT_NULL;
  if (!shareable || !handle || flags)
    return fail(INVALID_PARAM, "flags %#lx; they must be 0", static_cast<unsigned long>(flags));
  if (type != ACL_MEM_SHARE_HANDLE_TYPE_FABRIC)
    return fail(RT_PARAM_INVALID, "handle type %d; only 2, fabric, is here", type);
  Share share;
  std::memcpy(&share, shareable, sizeof share);
  return import_share(share, context->device, handle);
}
