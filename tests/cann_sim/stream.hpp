// Streams: what is submitted to one is done by its thread, one after another. Events: a place in a stream that others
// wait for.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <thread>

#include "device.hpp"

namespace cann_sim {

class Stream {
 public:
  // Done on the stream's thread; a code and why, if it fails.
  using Work = std::function<int(std::string &why)>;

  explicit Stream(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  // The thread keeps the stream alive.
  static std::shared_ptr<Stream> start(std::shared_ptr<Context> context);

  Context &context() const { return *context_; }
  Device &device() const { return context_->device; }

  // Work behind a failure is dropped, except what others may wait for.
  void submit(Work work, bool even_after_failure = false);
  // Waits until all is done, for this many milliseconds (-1: for ever); the stream's failure, if it has one.
  int synchronize(int milliseconds);
  bool idle();
  // Ends the thread when all is done.
  void stop();

 private:
  struct Entry {
    Work work;
    bool even_after_failure;
  };
  void run();

  const std::shared_ptr<Context> context_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Entry> queue_;
  bool busy_ = false, stopping_ = false, ended_ = false;
  int failure_ = 0;
  std::string why_;
};

// The stream of a handle, for work of the calling thread: the thread's context must be the stream's. Null is the default
// stream of the context.
int find_stream(aclrtStream handle, std::shared_ptr<Stream> &stream);

}  // namespace cann_sim
