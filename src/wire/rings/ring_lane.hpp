#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

#include "headrace/serve/client.hpp"
#include "wire/counters.hpp"
#include "wire/front.hpp"
#include "wire/infer_reply.hpp"
#include "wire/queue_rate.hpp"
#include "wire/served_model.hpp"

namespace headrace::wire::rings {

/// One thread's way to one model, for all its clients with rings. What waits does so in their rings.
class RingLane {
 public:
  /// Throws UsageError where the engine has no lane left.
  RingLane(ServedModel& served, ModelCounters& counters)
      : served_(served), counters_(counters), client_(served.model.engine->connect()) {}

  [[nodiscard]] ServedModel& served() const noexcept { return served_; }
  [[nodiscard]] serve::Client& client() noexcept { return client_; }

  /// Hands out what has come back: done(completion). How many.
  template <class Done>
  std::size_t collect(Done done, Time now) {
    constexpr std::size_t kAtOnce = 64;
    constexpr std::size_t kMost = 16 * kAtOnce;  // then others have their turn
    if (client_.in_flight() == 0) return 0;
    std::size_t back = 0;
    while (back < kMost) {
      const std::size_t some = client_.poll(done, kAtOnce);
      back += some;
      if (some < kAtOnce) break;
    }
    if (client_.in_flight() == 0) {
      rate_.pause();
    } else {
      rate_.add(back, client_.in_flight() + back, now);
    }
    return back;
  }
  /// Whether a query with this deadline would be late, at the rate at which queries come back now. As Asker reckons.
  [[nodiscard]] bool would_be_late(Time deadline, Time now) const noexcept {
    constexpr int kReserve = 4;
    if (deadline == Time::max()) return false;
    const Duration expected = rate_.time_of(client_.in_flight(), 0);
    return expected + expected / kReserve > deadline - now;
  }
  /// Counts a query that has ended.
  void count(ReplyCounters& replies, RequestOutcome outcome, Duration duration) noexcept {
    counters_.of(Protocol::shm).add(outcome, 1, duration);
    answered_ = answered_ || outcome == RequestOutcome::answered;
    if (outcome != RequestOutcome::cancelled) {
      replies.protocols[static_cast<std::size_t>(Protocol::shm)].add(outcome, 1);
    }
  }
  /// Publishes what changes with every query, once for many.
  void publish(Time now) noexcept {
    // Another lane of the same name, of a model that has been replaced, may count there as well.
    const std::size_t in_flight = client_.in_flight();
    counters_.queries_in_flight.add(in_flight - std::exchange(published_in_flight_, in_flight));
    constexpr Duration kEvery = std::chrono::milliseconds(1);
    if (!answered_ || now - told_at_ < kEvery) return;
    answered_ = false;
    told_at_ = now;
    counters_.last_inference.set(static_cast<std::uint64_t>(wall_milliseconds()));
  }

  bool full = false;     ///< The engine had no slot when it was asked last.
  std::size_t used = 0;  ///< Clients that it serves.

 private:
  ServedModel& served_;
  ModelCounters& counters_;
  serve::Client client_;
  QueueRate rate_;
  std::size_t published_in_flight_ = 0;
  Time told_at_{};         ///< When publish() looked at the clock on the wall.
  bool answered_ = false;  ///< Since then.
};

/// How a query ended.
[[nodiscard]] inline RequestOutcome outcome_of_query(Status status) noexcept {
  if (status.ok()) return RequestOutcome::answered;
  const Errc code = status.error().code;
  return code == Errc::cancelled ? RequestOutcome::cancelled : outcome_of(http_status(status.error()));
}

}  // namespace headrace::wire::rings
