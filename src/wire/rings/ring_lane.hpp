#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

#include "headrace/serve/client.hpp"
#include "wire/counters.hpp"
#include "wire/front.hpp"
#include "wire/infer_reply.hpp"
#include "wire/late_margin.hpp"
#include "wire/queue_rate.hpp"
#include "wire/served_model.hpp"

namespace headrace::wire::rings {

/// One thread's connection to one model, for all of the model's ring clients. Waiting queries stay in their rings.
class RingLane {
 public:
  /// Throws UsageError if the engine has no lane left.
  RingLane(ServedModel& served, ModelCounters& counters)
      : served_(served), counters_(counters), client_(served.model.engine->connect()) {}

  [[nodiscard]] ServedModel& served() const noexcept { return served_; }
  [[nodiscard]] serve::Client& client() noexcept { return client_; }

  /// Calls done(completion) for completed queries. Returns their number.
  template <class Done>
  std::size_t collect(Done done, Time now) {
    constexpr std::size_t kAtOnce = 64;
    constexpr std::size_t kMost = 16 * kAtOnce;  // then others get their turn
    if (client_.in_flight() == 0) return 0;
    std::size_t back = 0;
    std::size_t served = 0;
    const auto count_and_tell = [&](const serve::Completion& one) {
      served += was_served(one.status) ? 1 : 0;
      done(one);
    };
    while (back < kMost) {
      const std::size_t some = client_.poll(count_and_tell, kAtOnce);
      back += some;
      if (some < kAtOnce) break;
    }
    rate_.add(served, client_.in_flight() + back, now);
    if (client_.in_flight() == 0) rate_.pause(now);
    return back;
  }
  /// Whether a query with this deadline would be late at the present rate of completed queries, computed as in Asker.
  [[nodiscard]] Outlook outlook(Time deadline, Time now) noexcept {
    if (deadline == Time::max()) return Outlook::early;
    return margin_.outlook(rate_.time_of(client_.in_flight(), 0, margin_.stretch()), deadline - now, now);
  }
  /// A query goes to the engine.
  void begin(Time now) noexcept { rate_.begin(now); }
  /// A query that was taken as Outlook::close has ended; see LateMargin.
  void ended(Duration took, Duration allowed, Time now) noexcept { margin_.ended(took, allowed, now); }
  /// Counts a query that has ended.
  void count(ReplyCounters& replies, RequestOutcome outcome, Duration duration) noexcept {
    counters_.of(Protocol::shm).add(outcome, 1, duration);
    answered_ = answered_ || outcome == RequestOutcome::answered;
    if (outcome != RequestOutcome::cancelled) {
      replies.protocols[static_cast<std::size_t>(Protocol::shm)].add(outcome, 1);
    }
  }
  /// Publishes counters that change with every query, once for many queries.
  void publish(Time now) noexcept {
    // The lane of a replaced model of the same name may use the same counter.
    const std::size_t in_flight = client_.in_flight();
    counters_.queries_in_flight.add(in_flight - std::exchange(published_in_flight_, in_flight));
    constexpr Duration kEvery = std::chrono::milliseconds(1);
    if (!answered_ || now - told_at_ < kEvery) return;
    answered_ = false;
    told_at_ = now;
    counters_.last_inference.set(static_cast<std::uint64_t>(wall_milliseconds()));
  }

  bool full = false;     ///< The engine had no free slot at the last attempt.
  std::size_t used = 0;  ///< Number of clients on this lane.

 private:
  ServedModel& served_;
  ModelCounters& counters_;
  serve::Client client_;
  QueueRate rate_;
  LateMargin margin_;
  std::size_t published_in_flight_ = 0;
  Time told_at_{};         ///< When publish() last read the wall clock.
  bool answered_ = false;  ///< A query was answered since then.
};

/// How a query ended.
[[nodiscard]] inline RequestOutcome outcome_of_query(Status status) noexcept {
  if (status.ok()) return RequestOutcome::answered;
  const Errc code = status.error().code;
  return code == Errc::cancelled ? RequestOutcome::cancelled : outcome_of(http_status(status.error()));
}

}  // namespace headrace::wire::rings
