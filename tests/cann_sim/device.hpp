// Devices and contexts. A thread works in one context at a time, and what is made there belongs to it.
#pragma once

#include <semaphore>
#include <set>

#include "calls.hpp"

namespace cann_sim {

// A card as this process sees it.
struct Device {
  Device(int number, int driver, int cores) : number(number), driver(driver), cores(cores), idle_cores(cores) {}

  const int number;                          // here
  const int driver;                          // on the host: ASCEND_RT_VISIBLE_DEVICES names it so
  const int cores;                           // blocks of kernels that run at once
  std::counting_semaphore<1024> idle_cores;  // how many more can begin
  std::mutex mutex;                          // of what follows
  int users = 0;                             // aclrtSetDevice without aclrtResetDevice
  void *primary = nullptr;                   // the context that aclrtSetDevice enters
  std::set<int> peers;                       // whose memory it may reach
  size_t allocated = 0;
};

struct Context {
  Device &device;
};

// The device with this number; null after a message, when there is none.
Device *find_device(int number);
// The one that the driver knows by this number, or null.
Device *find_driver_device(int driver);

// The context of the calling thread; null after a message (RT_CONTEXT_NULL), when it has none.
std::shared_ptr<Context> current_context();

// Contexts of HCCL's own: it leaves threads there.
void *make_context(Device &device);
void enter_context(void *context);
void end_context(void *context);

// Bytes against the device's memory, and back.
bool reserve_memory(Device &device, size_t bytes);
void return_memory(Device &device, size_t bytes);

}  // namespace cann_sim
