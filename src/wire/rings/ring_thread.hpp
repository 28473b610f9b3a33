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

/// A thread of a server that answers clients through shared memory. It polls their rings in turn, and sleeps after it
/// found nothing for a while.
class RingThread final : public RingHost {
 public:
  /// Throws SystemError if the system lacks a resource.
  /// @param number  the thread's number within the server; threads for HTTP and gRPC come first
  RingThread(Shared& shared, std::size_t number);
  /// Shared::stopping must be set before.
  ~RingThread();
  RingThread(const RingThread&) = delete;
  RingThread& operator=(const RingThread&) = delete;

  /// Accepts clients on `listener`, and passes each to `hand_out`. Call it before start().
  void listen(FileDescriptor listener, std::function<void(FileDescriptor)> hand_out);
  /// Throws std::system_error if the system cannot start a thread.
  void start();
  /// Makes the thread check Shared::news, Shared::draining and Shared::stopping.
  void wake() noexcept { signal_event(wake_.get()); }
  /// Takes over a connected client. Any thread. Throws std::bad_alloc.
  void adopt(FileDescriptor socket);
  /// Number of clients that it serves or has taken over. Any thread.
  [[nodiscard]] std::size_t clients() const noexcept { return clients_.load(std::memory_order_relaxed); }

  // As in FrontThread, for lanes.
  void expect() { arriving_.reserve(arriving_.size() + 1); }
  void bring(std::unique_ptr<RingLane> lane) noexcept { arriving_.push_back(std::move(lane)); }
  [[nodiscard]] std::uint64_t has_seen() const noexcept { return seen_.load(std::memory_order_acquire); }
  [[nodiscard]] std::size_t number() const noexcept { return number_; }

  [[nodiscard]] RingLane& lane_of(std::string_view model) override;

 private:
  /// Calls a function for the events of a watched descriptor.
  struct Call final : Watched {
    std::function<void()> act;
    void ready(std::uint32_t /*events*/) override { act(); }
  };

  void run();
  /// Takes in answers, and submits queries from all rings. Returns whether there were any.
  [[nodiscard]] bool go_round(Time now);
  void take_in(RingLane& lane, Time now);
  /// Takes at most kTurnQueries queries of a client, so that others get their turn. Returns their number.
  [[nodiscard]] std::size_t feed(RingLink& link, Time now);
  void wake_clients() noexcept;
  /// Checks sockets, published changes, and clients that are about to end.
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
  std::vector<std::unique_ptr<RingLink>> links_;     ///< By number; null for a free number.
  std::size_t turn_ = 0;                             ///< The number of the client that comes first in the next round.
  std::shared_ptr<const Models> models_;
  std::atomic<std::uint64_t> seen_{0};
  std::atomic<std::size_t> clients_{0};
  std::size_t back_ = 0;  ///< Queries completed in this round.
  Time looked_at_{};
  bool retiring_ = false;  ///< Some lane belongs to a model that is no longer served.
  bool drains_ = false;
  std::mutex adopting_;
  std::vector<FileDescriptor> adopted_;  ///< Guarded by `adopting_`.
  std::thread thread_;
};

}  // namespace headrace::wire::rings
