#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/event_descriptor.hpp"
#include "base/file_descriptor.hpp"
#include "wire/connection.hpp"
#include "wire/front.hpp"

namespace headrace::wire {

/// A socket that listens, and what its clients speak.
struct Listener {
  FileDescriptor socket;
  Protocol protocol = Protocol::http;
};

/// A thread of a server: a loop, sockets that listen, the connections that it has accepted, and a client of every
/// engine.
class FrontThread {
 public:
  /// Throws SystemError where the system lacks something.
  /// @param number  among those of the server
  FrontThread(Shared& shared, std::size_t number, std::vector<Listener> listeners);
  /// Shared::stopping has been set before.
  ~FrontThread();
  FrontThread(const FrontThread&) = delete;
  FrontThread& operator=(const FrontThread&) = delete;

  /// Takes a connection that the program itself has made, and speaks HTTP over it without TLS. Before start(). Throws
  /// as connections do.
  void adopt(FileDescriptor socket);
  /// Throws std::system_error where the system gives no thread.
  void start();
  /// Has it look at Shared::news, Shared::draining and Shared::stopping.
  void wake() noexcept { signal_event(wake_.get()); }
  /// What an Asker of this thread has to wake.
  [[nodiscard]] int wake_descriptor() const noexcept { return wake_.get(); }
  /// Makes room for one more bring(). Throws std::bad_alloc. Shared::publishing is held, as for bring().
  void expect() { arriving_.reserve(arriving_.size() + 1); }
  /// An asker of a model that is published next.
  void bring(std::unique_ptr<Asker> asker) noexcept { arriving_.push_back(std::move(asker)); }
  /// The Shared::news that it has taken in.
  [[nodiscard]] std::uint64_t has_seen() const noexcept { return seen_.load(std::memory_order_acquire); }

 private:
  /// Calls a function for what a Loop watches.
  struct Call final : Watched {
    std::function<void()> act;
    void ready(std::uint32_t /*events*/) override { act(); }
  };

  void run();
  void turn(Time until);
  /// Takes in what has been published, and ends calls.
  void take_news();
  /// Destroys askers of models that have been replaced or unloaded, once nothing of theirs is under way.
  void retire() noexcept;
  /// Watches the listeners, or does not.
  void listen(bool on);
  void accept(const Listener& listener);
  /// A connection whose client is silent, and since when.
  struct Silent {
    Connection* connection;
    Time since;
  };

  /// Whether there is room for another connection: where there is none, one gives way.
  [[nodiscard]] bool make_room() noexcept;
  /// Closes the connection whose client has been silent for longest, so that silent clients cannot shut others out.
  /// False where every client waits for an answer.
  [[nodiscard]] bool close_most_silent() noexcept;
  void find_most_silent() noexcept;
  void check(Time now);
  void bury();
  [[nodiscard]] Time next_turn(Time now) const noexcept;

  Shared& shared_;
  Loop loop_;
  std::vector<Listener> listeners_;  ///< None once the server drains.
  EventDescriptor wake_;
  std::vector<std::unique_ptr<Asker>> askers_;
  std::vector<std::unique_ptr<Asker>> arriving_;  ///< Guarded by Shared::publishing.
  std::atomic<std::uint64_t> seen_{0};
  bool retiring_ = false;  ///< An asker is of a model that is served no more.
  std::vector<char> buffer_;
  Front front_;
  std::vector<std::unique_ptr<Connection>> connections_;
  /// Those that had been silent for longest when they were looked for last, the one for longest at the back. All others
  /// have been heard of since, or are younger.
  std::vector<Silent> most_silent_;
  std::deque<Call> on_accept_;  ///< For each of the listeners.
  Call on_wake_;
  Time checked_at_{};
  bool listening_ = false;  ///< The loop watches the listeners.
  std::thread thread_;
};

}  // namespace headrace::wire
