#include "stream.hpp"

#include <chrono>
#include <map>

namespace cann_sim {
namespace {

using Clock = std::chrono::steady_clock;

struct Event {
  Event(uint32_t flags, Device &device) : flags(flags), device(device) {}

  const uint32_t flags;
  Device &device;
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t recorded = 0, reached = 0;  // how many records there are, and how many of them streams have come to
  Clock::time_point time;
};

Handles<Stream> &streams = *new Handles<Stream>("stream");
Handles<Event> &events = *new Handles<Event>("event");

// Waits until this is so, for this many milliseconds, or for ever (-1).
template <class F>
bool wait(std::condition_variable &changed, std::unique_lock<std::mutex> &lock, int milliseconds, F so) {
  if (milliseconds < 0) {
    changed.wait(lock, so);
    return true;
  }
  return changed.wait_for(lock, std::chrono::milliseconds(milliseconds), so);
}

int synchronize(aclrtStream handle, int milliseconds) {
  std::shared_ptr<Stream> stream;
  if (int code = find_stream(handle, stream)) return code;
  return stream->synchronize(milliseconds);
}

int synchronize_event(aclrtEvent handle, int milliseconds) {
  const auto event = events.find(handle);
  if (!event) return RT_INVALID_HANDLE;
  if (!current_context()) return RT_CONTEXT_NULL;
  std::unique_lock lock(event->mutex);
  if (event->recorded == 0) return fail(RT_PARAM_INVALID, "the event was never recorded");
  if (wait(event->changed, lock, milliseconds, [&, until = event->recorded] { return event->reached >= until; }))
    return 0;
  return fail(RT_EVENT_SYNC_TIMEOUT, "no stream came to the event in %d ms", milliseconds);
}

}  // namespace

std::shared_ptr<Stream> Stream::start(std::shared_ptr<Context> context) {
  auto stream = std::make_shared<Stream>(std::move(context));
  std::thread([stream] { stream->run(); }).detach();
  return stream;
}

void Stream::submit(Work work, bool even_after_failure) {
  std::scoped_lock lock(mutex_);
  queue_.push_back({std::move(work), even_after_failure});
  changed_.notify_all();
}

void Stream::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) break;
    Entry entry = std::move(queue_.front());
    queue_.pop_front();
    const bool dropped = failure_ && !entry.even_after_failure;
    busy_ = true;
    lock.unlock();
    std::string why;
    const int code = dropped ? 0 : entry.work(why);
    entry.work = nullptr;  // what it holds ends here, not under the lock
    lock.lock();
    busy_ = false;
    if (code && !failure_) {
      failure_ = code;
      why_ = why;
    }
    changed_.notify_all();
  }
  ended_ = true;
  changed_.notify_all();
}

int Stream::synchronize(int milliseconds) {
  std::unique_lock lock(mutex_);
  if (!wait(changed_, lock, milliseconds, [&] { return queue_.empty() && !busy_; }))
    return fail(RT_STREAM_SYNC_TIMEOUT, "the stream was not through in %d ms", milliseconds);
  return failure_ ? fail(failure_, "%s", why_.c_str()) : 0;
}

bool Stream::idle() {
  std::scoped_lock lock(mutex_);
  return queue_.empty() && !busy_;
}

void Stream::stop() {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return ended_; });
}

// The default stream of a context, from its first use to the end of the process.
std::shared_ptr<Stream> default_stream(const std::shared_ptr<Context> &context) {
  static std::mutex &mutex = *new std::mutex;
  static auto &all = *new std::map<Context *, std::shared_ptr<Stream>>;
  std::scoped_lock lock(mutex);
  auto &stream = all[context.get()];
  if (!stream) stream = Stream::start(context);
  return stream;
}

int find_stream(aclrtStream handle, std::shared_ptr<Stream> &stream) {
  const auto context = current_context();
  if (!context) return RT_CONTEXT_NULL;
  if (!handle) {
    stream = default_stream(context);
    return 0;
  }
  stream = streams.find(handle);
  if (!stream) return RT_INVALID_HANDLE;
  if (&stream->context() == context.get()) return 0;
  return fail(RT_STREAM_CONTEXT, "the stream is of another context (of device %d) than this thread's (of device %d)",
              stream->device().number, context->device.number);
}

}  // namespace cann_sim

using namespace cann_sim;

EXPORTED aclError aclrtCreateStream(aclrtStream *stream) {
  if (int code = enter(__func__)) return code;
  if (!stream) return fail(INVALID_PARAM, "a null pointer for the stream");
  auto context = current_context();
  if (!context) return RT_CONTEXT_NULL;
  *stream = streams.add(Stream::start(std::move(context)));
  return 0;
}

EXPORTED aclError aclrtDestroyStream(aclrtStream handle) {
  if (int code = enter(__func__)) return code;
  std::shared_ptr<Stream> stream;
  if (int code = find_stream(handle, stream)) return code;
  streams.remove(handle);
  stream->stop();
  return 0;
}

EXPORTED aclError aclrtSynchronizeStream(aclrtStream stream) {
  if (int code = enter(__func__)) return code;
  return synchronize(stream, -1);
}

EXPORTED aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t milliseconds) {
  if (int code = enter(__func__)) return code;
  if (milliseconds < -1) return fail(INVALID_PARAM, "a timeout of %d ms", milliseconds);
  return synchronize(stream, milliseconds);
}

EXPORTED aclError aclrtStreamQuery(aclrtStream handle, aclrtStreamStatus *status) {
  if (int code = enter(__func__)) return code;
  if (!status) return fail(INVALID_PARAM, "a null pointer for the status");
  std::shared_ptr<Stream> stream;
  if (int code = find_stream(handle, stream)) return code;
  *status = stream->idle() ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
  return *status == ACL_STREAM_STATUS_COMPLETE ? stream->synchronize(-1) : 0;
}

EXPORTED aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flags) {
  if (int code = enter(__func__)) return code;
  if (!event) return fail(INVALID_PARAM, "a null pointer for the event");
  const auto context = current_context();
  if (!context) return RT_CONTEXT_NULL;
  *event = events.add(std::make_shared<Event>(flags, context->device));
  return 0;
}

EXPORTED aclError aclrtDestroyEvent(aclrtEvent event) {
  if (int code = enter(__func__)) return code;
  return events.remove(event) ? 0 : RT_INVALID_HANDLE;
}

EXPORTED aclError aclrtRecordEvent(aclrtEvent handle, aclrtStream in) {
  if (int code = enter(__func__)) return code;
  const auto event = events.find(handle);
  if (!event) return RT_INVALID_HANDLE;
  std::shared_ptr<Stream> stream;
  if (int code = find_stream(in, stream)) return code;
  if (&event->device != &stream->device())
    return fail(RT_PARAM_INVALID, "the event is of device %d, the stream of device %d", event->device.number,
                stream->device().number);
  std::scoped_lock lock(event->mutex);
  stream->submit(
      [event, record = ++event->recorded](std::string &) {
        std::scoped_lock lock(event->mutex);
        event->reached = std::max(event->reached, record);
        event->time = Clock::now();
        event->changed.notify_all();
        return 0;
      },
      true);
  return 0;
}

// The stream waits for the event's last record before this call.
EXPORTED aclError aclrtStreamWaitEvent(aclrtStream in, aclrtEvent handle) {
  if (int code = enter(__func__)) return code;
  const auto event = events.find(handle);
  if (!event) return RT_INVALID_HANDLE;
  std::shared_ptr<Stream> stream;
  if (int code = find_stream(in, stream)) return code;
  std::scoped_lock lock(event->mutex);
  if (event->recorded == 0)
    return fail(RT_PARAM_INVALID, "the event was never recorded: the stream would wait for ever");
  stream->submit([event, record = event->recorded](std::string &) {
    std::unique_lock lock(event->mutex);
    event->changed.wait(lock, [&] { return event->reached >= record; });
    return 0;
  });
  return 0;
}

EXPORTED aclError aclrtQueryEventStatus(aclrtEvent handle, aclrtEventRecordedStatus *status) {
  if (int code = enter(__func__)) return code;
  if (!status) return fail(INVALID_PARAM, "a null pointer for the status");
  const auto event = events.find(handle);
  if (!event) return RT_INVALID_HANDLE;
  if (!current_context()) return RT_CONTEXT_NULL;
  std::scoped_lock lock(event->mutex);
  // One that was never recorded, too.
  const bool complete = event->reached == event->recorded;
  *status = complete ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
  return 0;
}

EXPORTED aclError aclrtSynchronizeEvent(aclrtEvent event) {
  if (int code = enter(__func__)) return code;
  return synchronize_event(event, -1);
}

EXPORTED aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t milliseconds) {
  if (int code = enter(__func__)) return code;
  if (milliseconds < -1) return fail(INVALID_PARAM, "a timeout of %d ms", milliseconds);
  return synchronize_event(event, milliseconds);
}

EXPORTED aclError aclrtEventElapsedTime(float *milliseconds, aclrtEvent first, aclrtEvent second) {
  if (int code = enter(__func__)) return code;
  if (!milliseconds) return fail(INVALID_PARAM, "a null pointer for the result");
  const auto start = events.find(first), end = events.find(second);
  if (!start || !end) return RT_INVALID_HANDLE;
  if (start == end) return fail(RT_PARAM_INVALID, "both events are the same");
  std::scoped_lock lock(start->mutex, end->mutex);
  for (const auto &event : {start, end}) {
    if (!(event->flags & ACL_EVENT_TIME_LINE))
      return fail(RT_EVENT_TIMESTAMP_INVALID, "an event that was made without ACL_EVENT_TIME_LINE");
    if (event->recorded == 0 || event->reached != event->recorded)
      return fail(RT_EVENT_TIMESTAMP_INVALID, "no stream has come to the event");
  }
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return 0;
}

EXPORTED aclError aclrtLaunchHostFunc(aclrtStream in, aclrtHostFunc function, void *data) {
  if (int code = enter(__func__)) return code;
  if (!function) return fail(INVALID_PARAM, "a null pointer for the function");
  std::shared_ptr<Stream> stream;
  if (int code = find_stream(in, stream)) return code;
  stream->submit([=](std::string &) {
    function(data);
    return 0;
  });
  return 0;
}
