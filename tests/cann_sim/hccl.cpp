// Communicators: ranks meet in shared memory, which who makes the root info makes, and to which that leads.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <set>

#include "stream.hpp"

namespace cann_sim {
namespace {

using Clock = std::chrono::steady_clock;
constexpr uint32_t MOST_RANKS = 256;
constexpr uint64_t MAGIC = 0x6d69736c63636833;

struct Meeting {
  uint64_t magic;
  std::atomic<uint32_t> ranks;  // 0 until the first rank says how many
  std::atomic<uint32_t> joined, failed;
  std::atomic<int64_t> member[MOST_RANKS];    // the card of each rank by its number on the host, plus 1
  std::atomic<uint64_t> entered[MOST_RANKS];  // barriers that each rank came to
};

// What the root info holds.
struct Root {
  uint64_t magic;
  int32_t process, file;
};

struct Comm {
  Comm(Meeting *meeting, uint32_t ranks, uint32_t rank, Device &device)
      : meeting(meeting), ranks(ranks), rank(rank), device(device), context(make_context(device)) {}
  ~Comm() {
    end_context(context);
    munmap(meeting, sizeof(Meeting));
  }
  Comm(const Comm &) = delete;

  Meeting *const meeting;
  const uint32_t ranks, rank;
  Device &device;
  void *const context;
};

Handles<Comm> &comms = *new Handles<Comm>("communicator");

// Files of root infos that this process has made.
std::mutex &roots_mutex = *new std::mutex;
std::set<int> &roots = *new std::set<int>;

// Looks every millisecond, for these seconds.
template <class F>
bool wait(int64_t seconds, F so) {
  const auto end = Clock::now() + std::chrono::seconds(seconds);
  while (!so()) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

Meeting *map_meeting(int file) {
  void *page = mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return page == MAP_FAILED ? nullptr : static_cast<Meeting *>(page);
}

// Takes the rank's place; a sentence when that cannot be.
std::string join(Meeting &meeting, uint32_t ranks, uint32_t rank, const Device &device) {
  uint32_t expected = 0;
  if (!meeting.ranks.compare_exchange_strong(expected, ranks) && expected != ranks)
    return "rank " + std::to_string(rank) + " says that there are " + std::to_string(ranks) + " ranks, another " +
           std::to_string(expected);
  int64_t nobody = 0;
  if (!meeting.member[rank].compare_exchange_strong(nobody, device.driver + 1))
    return "there are two ranks " + std::to_string(rank);
  for (uint32_t other = 0; other < ranks; ++other)
    if (other != rank && meeting.member[other] == device.driver + 1)
      return "ranks " + std::to_string(rank) + " and " + std::to_string(other) + " have the same card, " +
             std::to_string(device.driver);
  ++meeting.joined;
  return "";
}

HcclResult init(uint32_t ranks, const HcclRootInfo *info, uint32_t rank, HcclComm *result) {
  const auto context = current_context();
  if (!context) return HCCL_E_RUNTIME;
  if (!info || !result) return fail(HCCL_E_PTR, "a null pointer");
  if (ranks == 0 || ranks > MOST_RANKS || rank >= ranks) return fail(HCCL_E_PARA, "rank %u of %u", rank, ranks);
  Root root;
  std::memcpy(&root, info->internal, sizeof root);
  const std::string path = "/proc/" + std::to_string(root.process) + "/fd/" + std::to_string(root.file);
  const int file = root.magic == MAGIC ? open(path.c_str(), O_RDWR | O_CLOEXEC) : -1;
  Meeting *meeting = file >= 0 ? map_meeting(file) : nullptr;
  if (file >= 0) close(file);
  if (!meeting || meeting->magic != MAGIC)
    return fail(HCCL_E_PARA, "this root info is none that HcclGetRootInfo gave, or its process %d has ended",
                root.process);
  auto comm = std::make_shared<Comm>(meeting, ranks, rank, context->device);
  if (const std::string why = join(*meeting, ranks, rank, context->device); !why.empty()) {
    meeting->failed = 1;
    return fail(HCCL_E_PARA, "%s", why.c_str());
  }
  const int64_t seconds = number("HCCL_CONNECT_TIMEOUT", 120);
  if (!wait(seconds, [&] { return meeting->joined == ranks || meeting->failed; }))
    return fail(HCCL_E_TIMEOUT, "%u of %u ranks came in %ld s (HCCL_CONNECT_TIMEOUT)", meeting->joined.load(), ranks,
                static_cast<long>(seconds));
  if (meeting->failed) return fail(HCCL_E_REMOTE, "another rank could not join");
  if (root.process == getpid()) {
    // All are here: nobody will need the root info again.
    std::scoped_lock lock(roots_mutex);
    if (roots.erase(root.file)) ::close(root.file);
  }
  *result = comms.add(std::move(comm));
  return HCCL_SUCCESS;
}

}  // namespace
}  // namespace cann_sim

using namespace cann_sim;

EXPORTED HcclResult HcclGetRootInfo(HcclRootInfo *info) {
  if (int code = enter(__func__)) return static_cast<HcclResult>(code);
  if (!info) return fail(HCCL_E_PTR, "a null pointer for the root info");
  if (!current_context()) return HCCL_E_RUNTIME;
  const int file = memfd_create("cann_sim_root", MFD_CLOEXEC);
  Meeting *meeting = file >= 0 && ftruncate(file, sizeof(Meeting)) == 0 ? map_meeting(file) : nullptr;
  if (!meeting) return fail(HCCL_E_SYSCALL, "no memory to meet in");
  meeting->magic = MAGIC;
  munmap(meeting, sizeof(Meeting));
  {
    std::scoped_lock lock(roots_mutex);
    roots.insert(file);
  }
  const Root root = {MAGIC, getpid(), file};
  std::memset(info, 0, sizeof *info);
  std::memcpy(info->internal, &root, sizeof root);
  return HCCL_SUCCESS;
}

EXPORTED HcclResult HcclCommInitRootInfo(uint32_t ranks, const HcclRootInfo *info, uint32_t rank, HcclComm *comm) {
  if (int code = enter(__func__)) return static_cast<HcclResult>(code);
  return init(ranks, info, rank, comm);
}

EXPORTED HcclResult HcclCommDestroy(HcclComm comm) {
  if (int code = enter(__func__)) return static_cast<HcclResult>(code);
  return comms.remove(comm) ? HCCL_SUCCESS : HCCL_E_PARA;
}

EXPORTED HcclResult HcclGetRankSize(HcclComm handle, uint32_t *size) {
  if (int code = enter(__func__)) return static_cast<HcclResult>(code);
  if (!size) return fail(HCCL_E_PTR, "a null pointer for the size");
  const auto comm = comms.find(handle);
  if (!comm) return HCCL_E_PARA;
  *size = comm->ranks;
  return HCCL_SUCCESS;
}

EXPORTED HcclResult HcclGetRankId(HcclComm handle, uint32_t *rank) {
  if (int code = enter(__func__)) return static_cast<HcclResult>(code);
  if (!rank) return fail(HCCL_E_PTR, "a null pointer for the rank");
  const auto comm = comms.find(handle);
  if (!comm) return HCCL_E_PARA;
  *rank = comm->rank;
  return HCCL_SUCCESS;
}

// Submits the barrier to the stream, and leaves the thread in a context of its own: as on a card, who goes on with the
// stream must enter its context again.
EXPORTED HcclResult HcclBarrier(HcclComm handle, aclrtStream in) {
  if (int code = enter(__func__)) return static_cast<HcclResult>(code);
  const auto comm = comms.find(handle);
  if (!comm) return HCCL_E_PARA;
  std::shared_ptr<Stream> stream;
  if (find_stream(in, stream)) return HCCL_E_RUNTIME;
  if (&stream->device() != &comm->device)
    return fail(HCCL_E_PARA, "the communicator has device %d, the stream device %d", comm->device.number,
                stream->device().number);
  const int64_t seconds = number("HCCL_EXEC_TIMEOUT", 1836);
  stream->submit([comm, seconds](std::string &why) {
    Meeting &meeting = *comm->meeting;
    const uint64_t barrier = ++meeting.entered[comm->rank];
    const auto all_came = [&] {
      for (uint32_t rank = 0; rank < comm->ranks; ++rank)
        if (meeting.entered[rank] < barrier) return false;
      return true;
    };
    if (wait(seconds, all_came)) return Code{};
    why = "not all ranks came to barrier " + std::to_string(barrier) + " in " + std::to_string(seconds) +
          " s (HCCL_EXEC_TIMEOUT)";
    return RT_AICPU_EXCEPTION;
  });
  enter_context(comm->context);
  return HCCL_SUCCESS;
}

EXPORTED const char *HcclGetErrorString(HcclResult code) {
  switch (code) {
    case HCCL_SUCCESS: return "no error";
    case HCCL_E_PARA: return "parameter error";
    case HCCL_E_PTR: return "empty pointer";
    case HCCL_E_MEMORY: return "memory error";
    case HCCL_E_INTERNAL: return "internal error";
    case HCCL_E_NOT_SUPPORT: return "feature not supported";
    case HCCL_E_NOT_FOUND: return "resource not found";
    case HCCL_E_UNAVAIL: return "resource unavailable";
    case HCCL_E_SYSCALL: return "system call error";
    case HCCL_E_TIMEOUT: return "timeout";
    case HCCL_E_RUNTIME: return "runtime error";
    case HCCL_E_REMOTE: return "error of a remote rank";
    default: return "unknown error";
  }
}
