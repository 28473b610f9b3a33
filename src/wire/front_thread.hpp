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

#include "base/file_descriptor.hpp"
#include "wire/connection.hpp"
#include "wire/front.hpp"

namespace headrace::wire {

/// A listening socket, and the protocol of its clients.
struct Listener {
  FileDescriptor socket;
  Protocol protocol = Protocol::http;
};

/// A thread of a server: an event loop, listening sockets, connections, and a client of every engine. It hands a new
/// connection to the thread that has the fewest.
class FrontThread {
 public:
  /// Throws SystemError if the system lacks a resource.
  /// @param number  the thread's number within the server
  FrontThread(Shared& shared, std::size_t number, std::vector<Listener> listeners);
  /// Shared::stopping must be set before.
  ~FrontThread();
  FrontThread(const FrontThread&) = delete;
  FrontThread& operator=(const FrontThread&) = delete;

  /// Takes over a connection that the program has made, and speaks HTTP over it without TLS. Call it before start().
  /// Throws as the constructors of connections do.
  void adopt(FileDescriptor socket);
  /// Throws std::system_error if the system cannot start a thread.
  void start();
  /// Makes the thread check Shared::news, Shared::draining and Shared::stopping.
  void wake() noexcept { signal_event(inbox_.wake().get()); }
  /// The eventfd for an Asker of this thread to signal.
  [[nodiscard]] int wake_descriptor() const noexcept { return inbox_.wake().get(); }
  /// Makes room for one more bring(). Throws std::bad_alloc. The caller holds Shared::publishing, as for bring().
  void expect() { arriving_.reserve(arriving_.size() + 1); }
  /// Adds the asker of a model that is published next.
  void bring(std::unique_ptr<Asker> asker) noexcept { arriving_.push_back(std::move(asker)); }
  /// The value of Shared::news that the thread has taken in.
  [[nodiscard]] std::uint64_t has_seen() const noexcept { return seen_.load(std::memory_order_acquire); }

 private:
  /// Calls a function for the events of a watched descriptor.
  struct Call final : Watched {
    std::function<void()> act;
    void ready(std::uint32_t /*events*/) override { act(); }
  };

  void run();
  void turn(Time until);
  /// Takes in published models and credentials, and completes ended calls.
  void take_news();
  /// Destroys the askers of replaced or unloaded models once they are idle.
  void retire() noexcept;
  /// Starts or stops watching the listeners.
  void listen(bool on);
  void accept(const Listener& listener);
  /// Serves a connection that is counted as this thread's.
  void welcome(NewConnection made);
  void empty_inbox();
  /// A connection whose client is silent, and since when.
  struct Silent {
    Connection* connection;
    Time since;
  };

  /// Makes room for another connection, closing a silent one if necessary. Returns whether there is room.
  [[nodiscard]] bool make_room() noexcept;
  /// Closes the connection whose client has been silent for longest, so that silent clients cannot shut others out.
  /// Returns false if every client waits for an answer.
  [[nodiscard]] bool close_most_silent() noexcept;
  void find_most_silent() noexcept;
  void check(Time now);
  void bury();
  [[nodiscard]] Time next_turn(Time now) const noexcept;

  Shared& shared_;
  Loop loop_;
  std::vector<Listener> listeners_;  ///< Empty once the server drains.
  Inbox& inbox_;
  std::vector<std::unique_ptr<Asker>> askers_;
  std::vector<std::unique_ptr<Asker>> arriving_;  ///< Guarded by Shared::publishing.
  std::atomic<std::uint64_t> seen_{0};
  bool retiring_ = false;  ///< Some asker belongs to a model that is no longer served.
  std::vector<char> buffer_;
  Front front_;
  std::vector<std::unique_ptr<Connection>> connections_;
  /// The connections that were silent for longest at the last search, the longest at the back. All others have been
  /// active since, or are newer.
  std::vector<Silent> most_silent_;
  std::deque<Call> on_accept_;  ///< One for each listener.
  Call on_wake_;
  Time checked_at_{};
  bool listening_ = false;  ///< The loop watches the listeners.
  std::thread thread_;
};

}  // namespace headrace::wire
