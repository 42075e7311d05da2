// What a kernel asks the device that it runs on, in the simulation. A simulated runtime that loads the kernel sets the
// pointer; without one everything is allowed.
#pragma once

#include <cstddef>

namespace pto_sim {

struct Device {
  // Returns if these bytes are memory of the device; else ends the kernel with an error.
  void (*check)(const void *address, size_t bytes);
  // Called while the kernel waits; ends it, if it is to end.
  void (*poll)();
};

}  // namespace pto_sim

extern "C" {
__attribute__((visibility("default"))) inline const pto_sim::Device *pto_sim_device = nullptr;
}
