#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include "base/event_descriptor.hpp"
#include "base/file_descriptor.hpp"
#include "wire/counters.hpp"

namespace headrace::wire {

/// A socket that some thread has accepted, and the protocol of its client.
struct NewConnection {
  FileDescriptor socket;
  Protocol protocol = Protocol::http;
};

/// Connections that other threads have accepted for a thread, and the number that it has. The kernel picks the thread
/// that accepts by a hash of the client's address, which gives some threads several times as many connections as
/// others. Handing them on keeps the numbers equal. Any thread.
class Inbox {
 public:
  /// Hands a connection to the thread, and wakes it. Returns false if the thread has ended, and throws std::bad_alloc;
  /// then the socket is closed.
  [[nodiscard]] bool add(NewConnection connection) {
    {
      const std::lock_guard locked(mutex_);
      if (closed_) return false;
      arrived_.push_back(std::move(connection));
      count(1);
    }
    signal_event(wake_.get());
    return true;
  }
  /// The sockets that have been handed over since the last call. They are counted already.
  [[nodiscard]] std::vector<NewConnection> take() {
    const std::lock_guard locked(mutex_);
    return std::exchange(arrived_, {});
  }
  /// Closes the sockets that have not been taken, and takes no more: the thread ends. Returns their number.
  std::size_t close() {
    const std::lock_guard locked(mutex_);
    closed_ = true;
    return std::exchange(arrived_, {}).size();
  }

  /// Connections of the thread, with those that it has not taken yet.
  [[nodiscard]] std::size_t connections() const noexcept { return connections_.load(std::memory_order_relaxed); }
  void count(std::size_t more) noexcept { connections_.fetch_add(more, std::memory_order_relaxed); }
  void discount(std::size_t fewer) noexcept { connections_.fetch_sub(fewer, std::memory_order_relaxed); }

  /// Wakes the thread's loop. It lives here so that no thread signals a descriptor of one that has ended.
  [[nodiscard]] EventDescriptor& wake() noexcept { return wake_; }

 private:
  EventDescriptor wake_;
  std::mutex mutex_;
  std::vector<NewConnection> arrived_;
  bool closed_ = false;
  std::atomic<std::size_t> connections_{0};
};

}  // namespace headrace::wire
