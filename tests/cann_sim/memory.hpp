// Device memory of this process: which addresses are whose, and who may touch them.
#pragma once

#include "device.hpp"

namespace cann_sim {

// What fresh device memory holds: nobody should rely on it.
constexpr int GARBAGE = 0xa5;

// Devices by their numbers, a bit each.
using Devices = uint64_t;
inline Devices only(const Device &device) { return Devices{1} << device.number; }

// Adds addresses that kernels and copies of these devices may touch; if they are there, they become these devices'.
void add_region(uintptr_t base, size_t size, Devices devices, const char *origin);
// False, when none begins there.
bool remove_region(uintptr_t base);

// Whether these bytes are memory of the device; else a sentence that says what they are.
bool is_device_memory(const void *address, size_t bytes, const Device &device, std::string &why);

// Whether any of them is memory of a device.
bool touches_device_memory(const void *address, size_t bytes);

}  // namespace cann_sim
