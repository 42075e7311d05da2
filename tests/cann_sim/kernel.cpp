// Kernels: shared libraries, made by the toolkit's `ccec` and `ld.lld`. A kernel NAME has a function NAME_sim(args,
// block) beside it, which does one block.
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <vector>

#include "memory.hpp"
#include "pto/device.hpp"
#include "stream.hpp"

namespace cann_sim {
namespace {

struct Binary {
  explicit Binary(Device &device) : device(device) {}
  ~Binary() {
    if (library) dlclose(library);
  }
  Binary(const Binary &) = delete;

  Device &device;
  void *library = nullptr;
  void (*end)() = nullptr;  // of pto_sim: what must hold when a block has ended
  std::atomic<int> running{0};
};

struct Function {
  std::string name;
  std::shared_ptr<Binary> binary;
  void (*block)(const uint64_t *args, uint32_t block);
};

Handles<Binary> &binaries = *new Handles<Binary>("binary");

// Functions live as long as their binary, and have no handle that one destroys.
std::mutex &functions_mutex = *new std::mutex;
std::map<Function *, std::shared_ptr<Function>> &functions = *new std::map<Function *, std::shared_ptr<Function>>;

// One launch, while it runs.
struct Launch {
  const Function &function;
  const std::vector<uint64_t> &args;
  const Stream &stream;
  std::atomic<uint32_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::string why;

  void fail(uint32_t block, const std::string &text) {
    std::scoped_lock lock(mutex);
    if (failed) return;
    why = "kernel " + function.name + ", block " + std::to_string(block) + ": " + text;
    failed = true;
  }
};

// The launch of whose blocks this thread does one.
thread_local Launch *running = nullptr;
thread_local sigjmp_buf escape;
struct sigaction others[3];
constexpr int SIGNALS[3] = {SIGSEGV, SIGBUS, SIGFPE};

// A kernel that touches what is not there ends with an error, as on a card; anybody else goes on to who handled it
// before.
void on_signal(int signal, siginfo_t *info, void *context) {
  if (running) siglongjmp(escape, signal);
  for (int i = 0; i < 3; ++i) {
    if (SIGNALS[i] != signal) continue;
    if (others[i].sa_flags & SA_SIGINFO) return others[i].sa_sigaction(signal, info, context);
    if (others[i].sa_handler != SIG_DFL && others[i].sa_handler != SIG_IGN) return others[i].sa_handler(signal);
    ::signal(signal, SIG_DFL);
  }
}

void install_handlers() {
  static const bool installed = [] {
    struct sigaction action {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    for (int i = 0; i < 3; ++i) sigaction(SIGNALS[i], &action, &others[i]);
    return true;
  }();
  (void)installed;
}

void check_access(const void *address, size_t bytes) {
  std::string why;
  if (running && !is_device_memory(address, bytes, running->stream.device(), why)) throw std::runtime_error(why);
}

void poll_launch() {
  if (running && running->failed) throw std::runtime_error("another block failed");
}

const pto_sim::Device device_of_kernels = {check_access, poll_launch};

void run_block(Launch &launch, uint32_t block) {
  running = &launch;
  // Nothing that a signal jumps over needs a destructor: kernels have none.
  if (const int signal = sigsetjmp(escape, 1)) {
    launch.fail(block, signal == SIGFPE ? "an integer division by zero" : "an access to memory that is not there");
  } else {
    try {
      launch.function.block(launch.args.data(), block);
      if (launch.function.binary->end) launch.function.binary->end();
    } catch (const std::exception &error) {
      launch.fail(block, error.what());
    }
  }
  running = nullptr;
}

int run_launch(const Function &function, uint32_t blocks, const std::vector<uint64_t> &args, const Stream &stream,
               std::string &why) {
  Launch launch{function, args, stream, {}, {}, {}, {}};
  Device &device = stream.device();
  const auto work = [&] {
    for (uint32_t block; (block = launch.next++) < blocks && !launch.failed;) {
      device.idle_cores.acquire();
      run_block(launch, block);
      device.idle_cores.release();
    }
  };
  std::vector<std::thread> helpers;
  for (uint32_t i = 1; i < std::min(blocks, static_cast<uint32_t>(device.cores)); ++i) helpers.emplace_back(work);
  work();
  for (auto &helper : helpers) helper.join();
  why = launch.why;
  return launch.failed ? RT_VECTOR_CORE_EXCEPTION : 0;
}

}  // namespace
}  // namespace cann_sim

using namespace cann_sim;

EXPORTED aclError aclrtBinaryLoadFromData(const void *data, size_t size, const aclrtBinaryLoadOptions *options,
                                          aclrtBinHandle *handle) {
  if (int code = enter(__func__)) return code;
  const auto context = current_context();
  if (!context) return RT_CONTEXT_NULL;
  if (!data || !handle) return fail(INVALID_PARAM, "a null pointer");
  for (size_t i = 0; options && i < options->numOpt; ++i) {
    const aclrtBinaryLoadOption &option = options->options[i];
    if (option.type == ACL_RT_BINARY_LOAD_OPT_LAZY_LOAD) continue;
    if (option.type != ACL_RT_BINARY_LOAD_OPT_MAGIC || (option.value.magic != ACL_RT_BINARY_MAGIC_ELF_VECTOR_CORE &&
                                                        option.value.magic != ACL_RT_BINARY_MAGIC_ELF_AICORE))
      return fail(RT_PARAM_INVALID, "load option %d of %#x; kernels for vector cores are here", option.type,
                  option.value.magic);
  }
  auto binary = std::make_shared<Binary>(context->device);
  // A path of its own for each: a library that could not be closed is found again by its path.
  static std::atomic<unsigned> loaded{0};
  const std::string name = "cann_sim-" + std::to_string(getpid()) + "-" + std::to_string(loaded++) + ".so";
  const std::filesystem::path path = std::filesystem::temp_directory_path() / name;
  std::ofstream file(path, std::ios::binary);
  if (!file.write(static_cast<const char *>(data), static_cast<std::streamsize>(size)).flush())
    return fail(RT_MEMORY_ALLOCATION, "the host has no %zu bytes for the binary", size);
  binary->library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  std::filesystem::remove(path);
  if (!binary->library) return fail(INVALID_FILE, "%s", dlerror());
  // A kernel that was made with PTO-ISA's own headers has neither.
  if (auto *device = static_cast<const pto_sim::Device **>(dlsym(binary->library, "pto_sim_device")))
    *device = &device_of_kernels;
  binary->end = reinterpret_cast<void (*)()>(dlsym(binary->library, "pto_sim_end"));
  install_handlers();
  *handle = binaries.add(std::move(binary));
  return 0;
}

EXPORTED aclError aclrtBinaryGetFunction(const aclrtBinHandle handle, const char *name, aclrtFuncHandle *function) {
  if (int code = enter(__func__)) return code;
  if (!name || !function) return fail(INVALID_PARAM, "a null pointer");
  const auto binary = binaries.find(handle);
  if (!binary) return RT_INVALID_HANDLE;
  void *symbol = dlsym(binary->library, (std::string(name) + "_sim").c_str());
  if (!symbol) return fail(RT_KERNEL_LOOKUP, "the binary has no kernel %s (and so no function %s_sim)", name, name);
  auto made = std::make_shared<Function>(
      Function{name, binary, reinterpret_cast<void (*)(const uint64_t *, uint32_t)>(symbol)});
  std::scoped_lock lock(functions_mutex);
  *function = made.get();
  functions[made.get()] = std::move(made);
  return 0;
}

EXPORTED aclError aclrtBinaryUnLoad(aclrtBinHandle handle) {
  if (int code = enter(__func__)) return code;
  const auto binary = binaries.find(handle);
  if (!binary) return RT_INVALID_HANDLE;
  if (const int count = binary->running)
    return fail(RT_PARAM_INVALID, "%d launches of its kernels have not ended", count);
  binaries.remove(handle);
  std::scoped_lock lock(functions_mutex);
  std::erase_if(functions, [&](const auto &entry) { return entry.second->binary == binary; });
  return 0;
}

EXPORTED aclError aclrtLaunchKernelWithHostArgs(aclrtFuncHandle handle, uint32_t blocks, aclrtStream in,
                                                aclrtLaunchKernelCfg *config, void *data, size_t size,
                                                aclrtPlaceHolderInfo *holders, size_t nholders) {
  if (int code = enter(__func__)) return code;
  std::shared_ptr<Stream> stream;
  if (int code = find_stream(in, stream)) return code;
  std::shared_ptr<Function> function;
  {
    std::scoped_lock lock(functions_mutex);
    const auto found = functions.find(static_cast<Function *>(handle));
    if (found == functions.end()) return fail(RT_INVALID_HANDLE, "%p is no kernel, or its binary was unloaded", handle);
    function = found->second;
  }
  if (&function->binary->device != &stream->device())
    return fail(RT_PARAM_INVALID, "kernel %s was loaded for device %d, the stream is of device %d",
                function->name.c_str(), function->binary->device.number, stream->device().number);
  if (config || holders || nholders)
    return fail(RT_PARAM_INVALID, "a configuration or placeholders; they are not here");
  if (blocks == 0 || blocks > 65535) return fail(RT_PARAM_INVALID, "%u blocks; 1 to 65535 can be launched", blocks);
  if ((size && !data) || size % 8 || size > 32768)
    return fail(RT_PARAM_INVALID, "%zu bytes of arguments; they have 8 each, and 32768 at most", size);
  std::vector<uint64_t> args(size / 8);
  if (size) std::memcpy(args.data(), data, size);
  ++function->binary->running;
  std::shared_ptr<void> until_done(nullptr, [function](void *) { --function->binary->running; });
  stream->submit([function, blocks, args = std::move(args), stream = stream.get(), until_done](std::string &why) {
    return run_launch(*function, blocks, args, *stream, why);
  });
  return 0;
}
