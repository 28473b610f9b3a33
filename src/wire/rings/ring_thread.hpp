#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "base/event_descriptor.hpp"
#include "base/file_descriptor.hpp"
#include "wire/front.hpp"
#include "wire/loop.hpp"
#include "wire/rings/ring_lane.hpp"
#include "wire/rings/ring_link.hpp"

namespace headrace::wire::rings {

/// A thread of a server that answers clients through shared memory: it goes round their rings, and sleeps once nothing
/// has come for a while.
class RingThread final : public RingHost {
 public:
  /// Throws SystemError where the system lacks something.
  /// @param number  among all threads of the server, those for HTTP and gRPC first
  RingThread(Shared& shared, std::size_t number);
  /// Shared::stopping has been set before.
  ~RingThread();
  RingThread(const RingThread&) = delete;
  RingThread& operator=(const RingThread&) = delete;

  /// Before start(): accepts clients on `listener`, and gives each to whom `hand_out` chooses.
  void listen(FileDescriptor listener, std::function<void(FileDescriptor)> hand_out);
  /// Throws std::system_error where the system gives no thread.
  void start();
  /// Has it look at Shared::news, Shared::draining and Shared::stopping.
  void wake() noexcept { signal_event(wake_.get()); }
  /// Serves a client that has connected, soon. Any thread. Throws std::bad_alloc.
  void adopt(FileDescriptor socket);
  /// Clients that it serves or is about to. Any thread.
  [[nodiscard]] std::size_t clients() const noexcept { return clients_.load(std::memory_order_relaxed); }

  // As FrontThread has them, for lanes.
  void expect() { arriving_.reserve(arriving_.size() + 1); }
  void bring(std::unique_ptr<RingLane> lane) noexcept { arriving_.push_back(std::move(lane)); }
  [[nodiscard]] std::uint64_t has_seen() const noexcept { return seen_.load(std::memory_order_acquire); }
  [[nodiscard]] std::size_t number() const noexcept { return number_; }

  [[nodiscard]] RingLane& lane_of(std::string_view model) override;

 private:
  /// Calls a function for what a Loop watches.
  struct Call final : Watched {
    std::function<void()> act;
    void ready(std::uint32_t /*events*/) override { act(); }
  };

  void run();
  /// Takes in answers, and takes queries from all rings; whether there was anything.
  [[nodiscard]] bool go_round(Time now);
  void take_in(RingLane& lane, Time now);
  /// Takes at most so many queries of a client that the others have their turn; how many.
  [[nodiscard]] std::size_t feed(RingLink& link, Time now);
  void wake_clients() noexcept;
  /// Looks at sockets, at what has been published, and at clients that are to end.
  void look(Time now);
  void sleep();
  void take_news();
  void retire() noexcept;
  void accept();
  void take_adopted();
  void bury() noexcept;

  Shared& shared_;
  std::size_t number_;
  ReplyCounters& replies_;
  Loop loop_;
  EventDescriptor wake_;
  Call on_wake_;
  Call on_accept_;
  FileDescriptor listener_;
  std::function<void(FileDescriptor)> hand_out_;
  std::vector<std::unique_ptr<RingLane>> lanes_;
  std::vector<std::unique_ptr<RingLane>> arriving_;  ///< Guarded by Shared::publishing.
  std::vector<std::unique_ptr<RingLink>> links_;     ///< By number; null where there is none.
  std::size_t turn_ = 0;                             ///< The number of the client whose turn is first.
  std::shared_ptr<const Models> models_;
  std::atomic<std::uint64_t> seen_{0};
  std::atomic<std::size_t> clients_{0};
  std::size_t back_ = 0;  ///< Queries that have come back in this round.
  Time looked_at_{};
  bool retiring_ = false;  ///< A lane is of a model that is served no more.
  bool drains_ = false;
  std::mutex adopting_;
  std::vector<FileDescriptor> adopted_;  ///< Guarded by `adopting_`.
  std::thread thread_;
};

}  // namespace headrace::wire::rings
