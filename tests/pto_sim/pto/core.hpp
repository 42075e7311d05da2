// A vector core: its block, its unified buffer (UB), and its pipes, which run beside each other.
//
// Instructions take effect at once, in program order. What orders them on a card is checked: two accesses to the same
// bytes, one of which changes them, need a flag or a barrier between them, or the kernel ends with an error.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "device.hpp"
#include "region.hpp"
#include "types.hpp"

namespace pto_sim {

#ifndef PTO_SIM_UB_BYTES
#define PTO_SIM_UB_BYTES 196608
#endif
constexpr size_t UB_BYTES = PTO_SIM_UB_BYTES, BLOCK_BYTES = 32;

// The pipes that are there: S, V, MTE2 and MTE3.
constexpr int PIPES = 4;
constexpr const char *PIPE_NAMES[PIPES] = {"S", "V", "MTE2", "MTE3"};

[[noreturn, gnu::format(printf, 1, 2)]] inline void fault(const char *format, ...) {
  char text[512];
  va_list values;
  va_start(values, format);
  std::vsnprintf(text, sizeof text, format, values);
  va_end(values);
  throw std::runtime_error(text);
}

inline int number(pipe_t pipe) {
  switch (pipe) {
    case PIPE_S: return 0;
    case PIPE_V: return 1;
    case PIPE_MTE2: return 2;
    case PIPE_MTE3: return 3;
    default: fault("pipe %d is none of a vector core", pipe);
  }
}

// How many instructions of each pipe have ended.
struct Clock {
  uint32_t ended[PIPES] = {};

  void join(const Clock &other) {
    for (int pipe = 0; pipe < PIPES; ++pipe)
      if (ended[pipe] < other.ended[pipe]) ended[pipe] = other.ended[pipe];
  }
};

enum class How { Read, Write, Add };

class Core {
 public:
  // A block begins: nothing in UB, no flag set.
  void begin(uint32_t block) {
    block_ = block;
    std::memset(issued_, 0, sizeof issued_);
    for (Clock &clock : now_) clock = {};
    for (auto &from : flags_)
      for (auto &to : from)
        for (Flag &flag : to) flag = {};
    for (Shadow &shadow : shadow_) shadow = {};
    accesses_.clear();
    std::memset(ub_, 0xa5, sizeof ub_);
  }
  // It has ended: a flag that is still set would be there for the next kernel.
  void end() const {
    for (int from = 0; from < PIPES; ++from)
      for (int to = 0; to < PIPES; ++to)
        for (int id = 0; id < 8; ++id)
          if (flags_[from][to][id].set)
            fault("flag %s -> %s, EVENT_ID%d is set at the end", PIPE_NAMES[from], PIPE_NAMES[to], id);
  }

  uint32_t block() const { return block_; }
  unsigned char *ub() { return ub_; }

  // An instruction begins on a pipe. The scalar unit issues it, and so it comes behind what that has waited for.
  void issue(pipe_t pipe, const char *name) {
    pipe_ = number(pipe);
    name_ = name;
    ++issued_[pipe_];
    now_[pipe_].join(now_[number(PIPE_S)]);
  }

  // It touches these bytes of UB.
  void touch(const unsigned char *first, size_t bytes, How how) {
    const size_t begin = static_cast<size_t>(first - ub_);
    if (begin > UB_BYTES || bytes > UB_BYTES - begin)
      fault("%s: bytes %zu to %zu of UB, which has %zu", name_, begin, begin + bytes, UB_BYTES);
    for (size_t block = begin / BLOCK_BYTES; block * BLOCK_BYTES < begin + bytes; ++block) {
      Shadow &shadow = shadow_[block];
      if (how == How::Read) {
        if (shadow.writer < 0) fault("%s reads byte %zu of UB, which nothing has written", name_, block * BLOCK_BYTES);
        order(shadow.writer, shadow.written, "written", block * BLOCK_BYTES);
        shadow.read[pipe_] = issued_[pipe_];
      } else {
        if (shadow.writer >= 0) order(shadow.writer, shadow.written, "written", block * BLOCK_BYTES);
        for (int pipe = 0; pipe < PIPES; ++pipe) order(pipe, shadow.read[pipe], "read", block * BLOCK_BYTES);
        shadow.writer = static_cast<int8_t>(pipe_);
        shadow.written = issued_[pipe_];
      }
    }
  }

  // It touches a region of global memory.
  void touch(const Region &region, How how) {
    if (pto_sim_device) pto_sim_device->check(reinterpret_cast<void *>(region.first()), region.span());
    for (const Access &other : accesses_) {
      const bool conflict = (how != How::Read || other.how != How::Read) && !(how == How::Add && other.how == How::Add);
      if (conflict && !is_ordered(other.pipe, other.time) && overlap(region, other.region))
        fault("%s on %s touches memory at %#zx that %s on %s has touched, and nothing orders the two", name_,
              PIPE_NAMES[pipe_], region.first(), other.name, PIPE_NAMES[other.pipe]);
    }
    if (accesses_.size() >= 64) forget();
    accesses_.push_back({region, how, pipe_, issued_[pipe_], name_});
  }

  // The scalar unit tells another rank something: what was stored before must be there.
  void require_stored(const char *name) const {
    for (const Access &access : accesses_)
      if (access.how != How::Read && access.time > now_[0].ended[access.pipe])
        fault("%s while %s on %s may not have ended; a barrier is missing", name, access.name, PIPE_NAMES[access.pipe]);
  }

  // What begins on the pipe behind this waits for what the pipe has; for ALL, for what any has.
  void barrier(pipe_t pipe) {
    if (pipe != PIPE_ALL) {
      now_[number(pipe)].ended[number(pipe)] = issued_[number(pipe)];
      return;
    }
    for (Clock &clock : now_) std::memcpy(clock.ended, issued_, sizeof issued_);
    accesses_.clear();
  }

  void set_flag(pipe_t from, pipe_t to, int id) {
    Flag &flag = find_flag(from, to, id, "set_flag");
    if (flag.set)
      fault("set_flag(%s, %s, EVENT_ID%d), which is set", PIPE_NAMES[number(from)], PIPE_NAMES[number(to)], id);
    flag.set = true;
    flag.clock = now_[number(from)];
    flag.clock.ended[number(from)] = issued_[number(from)];
  }

  void wait_flag(pipe_t from, pipe_t to, int id) {
    Flag &flag = find_flag(from, to, id, "wait_flag");
    if (!flag.set)
      fault("wait_flag(%s, %s, EVENT_ID%d), which nothing has set", PIPE_NAMES[number(from)], PIPE_NAMES[number(to)],
            id);
    flag.set = false;
    now_[number(to)].join(flag.clock);
  }

 private:
  struct Flag {
    bool set = false;
    Clock clock;
  };
  // Who last touched a block of UB.
  struct Shadow {
    uint32_t written = 0, read[PIPES] = {};
    int8_t writer = -1;
  };
  struct Access {
    Region region;
    How how;
    int pipe;
    uint32_t time;
    const char *name;
  };

  // Whether this has ended for what is at hand. Only some pipes end an instruction before they begin the next one.
  bool is_ordered(int pipe, uint32_t time) const {
    if (time <= now_[pipe_].ended[pipe]) return true;
    return pipe == pipe_ && (time == issued_[pipe_] || pipe == 0 || (is_a5 && pipe == 1));
  }

  void order(int pipe, uint32_t time, const char *done, size_t byte) const {
    if (!is_ordered(pipe, time))
      fault("%s on %s touches byte %zu of UB, which was %s on %s, and nothing orders the two", name_, PIPE_NAMES[pipe_],
            byte, done, PIPE_NAMES[pipe]);
  }

  Flag &find_flag(pipe_t from, pipe_t to, int id, const char *name) {
    if (id < 0 || id > 7) fault("%s: event %d; there are 0 to 7", name, id);
    if (from == to) fault("%s: from pipe %s to itself", name, PIPE_NAMES[number(from)]);
    return flags_[number(from)][number(to)][id];
  }

  // Drops accesses that have ended for every pipe.
  void forget() {
    const auto has_ended = [this](const Access &access) {
      for (const Clock &clock : now_)
        if (access.time > clock.ended[access.pipe]) return false;
      return true;
    };
    accesses_.erase(std::remove_if(accesses_.begin(), accesses_.end(), has_ended), accesses_.end());
  }

  uint32_t block_ = 0;
  int pipe_ = 0;
  const char *name_ = "";
  uint32_t issued_[PIPES] = {};
  Clock now_[PIPES];  // what each pipe knows of all
  Flag flags_[PIPES][PIPES][8];
  Shadow shadow_[UB_BYTES / BLOCK_BYTES];
  std::vector<Access> accesses_;
  alignas(64) unsigned char ub_[UB_BYTES];
};

inline Core &core() {
  thread_local Core core;
  return core;
}

}  // namespace pto_sim

extern "C" {
// For a simulated runtime, when a block has ended.
__attribute__((used, visibility("default"))) inline void pto_sim_end() { pto_sim::core().end(); }
}

namespace pto::cpu_sim {
// Makes this thread a core that begins a block.
inline void set_execution_context(uint32_t block, uint32_t, uint32_t = 1) { pto_sim::core().begin(block); }
}  // namespace pto::cpu_sim

inline uint32_t get_block_idx() { return pto_sim::core().block(); }
inline void pipe_barrier(pipe_t pipe) { pto_sim::core().barrier(pipe); }
inline void set_flag(pipe_t from, pipe_t to, event_t id) { pto_sim::core().set_flag(from, to, id); }
inline void wait_flag(pipe_t from, pipe_t to, event_t id) { pto_sim::core().wait_flag(from, to, id); }

// The cache of the scalar unit, which is coherent here.
struct cache_line_t {
  static constexpr int SINGLE_CACHE_LINE = 0, ENTIRE_DATA_CACHE = 1, CACHELINE_OUT = 0;
};
struct dcci_dst_t {
  static constexpr int CACHELINE_OUT = 0;
};
enum mem_dsb_t { DSB_DDR, DSB_ALL, DSB_UB };
inline void dcci(const volatile void *, int, int = 0) {}
inline void dsb(mem_dsb_t) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
