// The part of CANN's C interface that this library has, in our own words; or the vendor's own headers, with which every
// definition must compile too (`make test-hccl-sys`).
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef CANN_SIM_VENDOR_HEADERS

#include <acl/acl.h>
#include <third_party/hccl/inc/hccl/hccl.h>

#else

using aclError = int;
using aclrtStream = void *;
using aclrtEvent = void *;
using aclrtContext = void *;
using aclrtDrvMemHandle = void *;
using aclrtBinHandle = void *;
using aclrtFuncHandle = void *;
using aclrtHostFunc = void (*)(void *);

enum aclrtMemcpyKind {
  ACL_MEMCPY_HOST_TO_HOST,
  ACL_MEMCPY_HOST_TO_DEVICE,
  ACL_MEMCPY_DEVICE_TO_HOST,
  ACL_MEMCPY_DEVICE_TO_DEVICE,
  ACL_MEMCPY_DEFAULT,
};
enum aclrtMemMallocPolicy { ACL_MEM_MALLOC_HUGE_FIRST, ACL_MEM_MALLOC_HUGE_ONLY, ACL_MEM_MALLOC_NORMAL_ONLY };
enum aclrtMemAttr { ACL_DDR_MEM, ACL_HBM_MEM, ACL_HBM_MEM_HUGE = 4, ACL_HBM_MEM_NORMAL = 5 };
enum aclrtMemLocationType {
  ACL_MEM_LOCATION_TYPE_HOST,
  ACL_MEM_LOCATION_TYPE_DEVICE,
  ACL_MEM_LOCATION_TYPE_UNREGISTERED,
};
enum aclrtMemHandleType { ACL_MEM_HANDLE_TYPE_NONE };
enum aclrtMemAllocationType { ACL_MEM_ALLOCATION_TYPE_PINNED };
enum aclrtMemGranularityOptions { ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED };
enum aclrtMemAccessFlags {
  ACL_RT_MEM_ACCESS_FLAGS_NONE = 0,
  ACL_RT_MEM_ACCESS_FLAGS_READ = 1,
  ACL_RT_MEM_ACCESS_FLAGS_READWRITE = 3,
};
enum aclrtMemSharedHandleType { ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT = 1, ACL_MEM_SHARE_HANDLE_TYPE_FABRIC = 2 };
enum aclrtEventRecordedStatus { ACL_EVENT_RECORDED_STATUS_NOT_READY, ACL_EVENT_RECORDED_STATUS_COMPLETE };
enum aclrtStreamStatus { ACL_STREAM_STATUS_COMPLETE, ACL_STREAM_STATUS_NOT_READY };
enum aclrtBinaryLoadOptionType {
  ACL_RT_BINARY_LOAD_OPT_LAZY_LOAD = 1,
  ACL_RT_BINARY_LOAD_OPT_MAGIC = 2,
  ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE = 3,
};

#define ACL_EVENT_SYNC 0x1U
#define ACL_EVENT_TIME_LINE 0x8U
#define ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION 0x1UL
#define ACL_RT_BINARY_MAGIC_ELF_AICORE 0x43554245U
#define ACL_RT_BINARY_MAGIC_ELF_VECTOR_CORE 0x41415246U
#define ACL_RT_BINARY_MAGIC_ELF_CUBE_CORE 0x41494343U

struct aclrtMemLocation {
  uint32_t id;
  aclrtMemLocationType type;
};
struct aclrtPtrAttributes {
  aclrtMemLocation location;
  uint32_t pageSize;
  uint32_t rsv[4];
};
struct aclrtPhysicalMemProp {
  aclrtMemHandleType handleType;
  aclrtMemAllocationType allocationType;
  aclrtMemAttr memAttr;
  aclrtMemLocation location;
  uint64_t reserve;
};
struct aclrtMemAccessDesc {
  aclrtMemAccessFlags flags;
  aclrtMemLocation location;
  uint8_t rsv[12];
};
struct aclrtMemFabricHandle {
  uint8_t data[128];
};
struct aclrtLaunchKernelCfg;
struct aclrtPlaceHolderInfo;
union aclrtBinaryLoadOptionValue {
  uint32_t isLazyLoad;
  uint32_t magic;
  int32_t cpuKernelMode;
  uint32_t rsv[4];
};
struct aclrtBinaryLoadOption {
  aclrtBinaryLoadOptionType type;
  aclrtBinaryLoadOptionValue value;
};
struct aclrtBinaryLoadOptions {
  aclrtBinaryLoadOption *options;
  size_t numOpt;
};

enum HcclResult {
  HCCL_SUCCESS,
  HCCL_E_PARA,
  HCCL_E_PTR,
  HCCL_E_MEMORY,
  HCCL_E_INTERNAL,
  HCCL_E_NOT_SUPPORT,
  HCCL_E_NOT_FOUND,
  HCCL_E_UNAVAIL,
  HCCL_E_SYSCALL,
  HCCL_E_TIMEOUT,
  HCCL_E_RUNTIME = 15,
  HCCL_E_REMOTE = 21,
};
using HcclComm = void *;
constexpr uint32_t HCCL_ROOT_INFO_BYTES = 4108;
struct HcclRootInfo {
  char internal[HCCL_ROOT_INFO_BYTES];
};

#endif
