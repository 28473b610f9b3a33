#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/detail/clock.hpp"
#include "headrace/base/detail/parking.hpp"
#include "headrace/base/result.hpp"
#include "headrace/device/ring.hpp"

namespace headrace::serve::detail {

class EngineState;
class DirectLane;
class Lane;

/// A client's lane: one of the two kinds.
struct LaneRef {
  Lane* queued = nullptr;
  DirectLane* direct = nullptr;
};

/// State of one slot that client and worker share, with each side's fields on separate cache lines.
struct SlotControl {
  // Written by the client before the slot is published.
  alignas(kNoSharing) std::uint64_t tag = 0;
  Time deadline = Time::max();
  Time submitted{};                         ///< Only of sampled queries.
  std::atomic<std::uint64_t> cancelled{0};  ///< Position + 1 of the query that the client no longer wants.
  std::uint64_t given_up = 0;  ///< Position + 1 of the query that came back at its deadline. Only the client uses it.

  // Written by the thread that answers, before `done`.
  alignas(kNoSharing) std::atomic<std::uint64_t> done{0};  ///< Position + 1 of the query last answered in this slot.
  Status status;
  Time finished{};  ///< Only of sampled queries.
};

/// Takes a lane's queries through the device in its client's thread (Schedule::caller).
class LaneRunner {
 public:
  virtual ~LaneRunner() = default;
  /// Answers the waiting queries of the lane, at most a batch. False if none waits.
  virtual bool run() noexcept = 0;
};

/// A client's queries and answers: a Ring of slots, each with a query and its answer.
class Lane {
 public:
  Lane(Device device, MemoryKind kind, std::size_t query_bytes, std::size_t answer_bytes, std::uint32_t slots);

  [[nodiscard]] std::byte* query(std::uint64_t position) const noexcept { return ring.slot(position); }
  [[nodiscard]] std::byte* answer(std::uint64_t position) const noexcept {
    return ring.slot(position) + answer_offset_;
  }
  [[nodiscard]] SlotControl& control(std::uint64_t position) const noexcept { return controls_[position & mask_]; }

  /// Client: the query at `position` has come back; its status and answer may be read.
  [[nodiscard]] bool done(std::uint64_t position) const noexcept {
    return control(position).done.load(std::memory_order_seq_cst) > position;  // pairs with complete()
  }
  // The interface that LateQueries needs.
  [[nodiscard]] bool settled(std::uint64_t position) const noexcept { return done(position); }
  [[nodiscard]] Time deadline(std::uint64_t position) const noexcept { return control(position).deadline; }
  [[nodiscard]] bool given_up(std::uint64_t position) const noexcept {
    return control(position).given_up == position + 1;
  }
  void give_up(std::uint64_t position) noexcept { control(position).given_up = position + 1; }

  /// Worker: publishes the answer of a claimed slot. Sequentially consistent, as Parking requires.
  void complete(std::uint64_t position, Status status) noexcept {
    SlotControl& slot = control(position);
    slot.status = status;
    slot.done.store(position + 1, std::memory_order_seq_cst);
    client_parking.notify_one();
  }

  /// Client: answers a batch of its queries if that is the client's task. False if there is nothing to answer.
  bool run() const noexcept { return runner != nullptr && runner->run(); }

  Ring ring;
  Parking client_parking;  ///< The client sleeps here until its query is done.
  // Counters that only the client writes.
  std::atomic<std::uint64_t> refused{0};
  std::atomic<std::uint64_t> notify_samples{0};
  std::atomic<std::int64_t> notify_ns{0};
  std::unique_ptr<LaneRunner> runner;  ///< Null if engine threads answer.

 private:
  std::size_t answer_offset_;
  std::size_t mask_;
  std::unique_ptr<SlotControl[]> controls_;
};

/// Adds to a counter that has one writer, without the cost of an atomic read-modify-write.
template <class T>
void add_single_writer(std::atomic<T>& counter, T by) noexcept {
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

}  // namespace headrace::serve::detail
