#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/file_descriptor.hpp"
#include "headrace/base/event_descriptor.hpp"
#include "wire/front.hpp"
#include "wire/http/connection.hpp"

namespace headrace::wire {

/// A thread of a server: a loop, a socket that listens, the connections that it has accepted, and a client of every
/// engine.
class FrontThread {
 public:
  /// Throws UsageError where an engine has no lane left, SystemError where the system lacks something.
  FrontThread(Shared& shared, FileDescriptor listener);
  /// Shared::stopping has been set before.
  ~FrontThread();
  FrontThread(const FrontThread&) = delete;
  FrontThread& operator=(const FrontThread&) = delete;

  /// Throws std::system_error where the system gives no thread.
  void start();
  /// Has it look at Shared::draining and Shared::stopping.
  void wake() noexcept { signal_event(wake_.get()); }

 private:
  /// Calls a function for what a Loop watches.
  struct Call final : Watched {
    std::function<void()> act;
    void ready(std::uint32_t /*events*/) override { act(); }
  };

  void run();
  void turn(Time until);
  void accept();
  /// Whether there is room for another connection: where there is none, the one whose client has been silent for
  /// longest gives way, so that silent clients cannot shut others out.
  [[nodiscard]] bool make_room() noexcept;
  /// Accepts no more for a while, since there is no descriptor left.
  void pause_accepting();
  void check(Time now);
  void bury();
  [[nodiscard]] Time next_turn(Time now) const noexcept;

  Shared& shared_;
  Loop loop_;
  FileDescriptor listener_;
  EventDescriptor wake_;
  std::deque<Asker> askers_;
  std::vector<char> buffer_;
  Front front_;
  std::vector<std::unique_ptr<http::Connection>> connections_;
  Call on_accept_;
  Call on_wake_;
  Time checked_at_{};
  bool listening_ = true;  ///< The loop watches the listener.
  std::thread thread_;
};

}  // namespace headrace::wire
