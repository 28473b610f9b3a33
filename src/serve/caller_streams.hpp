#pragma once

#include <mutex>
#include <vector>

#include "headrace/device/stream.hpp"

namespace headrace::serve::detail {

/// Work that an engine has enqueued on streams of its callers. It reads the operator's state, which must stay until
/// the work is done, although the streams may be gone by then.
class CallerStreams {
 public:
  explicit CallerStreams(Device device) noexcept : device_(device) {}

  /// Enqueues on `stream` by `enqueue()`, which returns a Status. Errc::stopped after close(). Any thread.
  template <class Enqueue>
  [[nodiscard]] Status run(StreamRef stream, const Enqueue& enqueue) noexcept {
    const std::lock_guard lock(mutex_);
    if (closed_) return Errc::stopped;
    const Status prepared = prepare();
    if (!prepared) return prepared;
    const Status enqueued = enqueue();
    // Part of the work may have been enqueued before a failure.
    const Status recorded = stream.record(events_.back());
    if (!recorded) {
      static_cast<void>(stream.wait());
      events_.pop_back();
    }
    return enqueued ? recorded : enqueued;
  }
  /// Lets nothing more in, and waits until all of it is done.
  void close() noexcept;

 private:
  /// Appends an event: one whose work is done, or a new one.
  [[nodiscard]] Status prepare() noexcept;

  Device device_;
  std::mutex mutex_;
  std::vector<Event> events_;  ///< By the order of the calls.
  bool closed_ = false;
};

}  // namespace headrace::serve::detail
