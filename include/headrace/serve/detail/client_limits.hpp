#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "headrace/base/detail/clock.hpp"
#include "headrace/serve/plan.hpp"

namespace headrace::serve::detail {

/// The limits of an engine that every submission respects. Engine::change() writes them while clients read. They are
/// independent of each other and guard nothing else, so their order does not matter.
class ClientLimits {
 public:
  explicit ClientLimits(const Plan& plan) noexcept : slots_(plan.slots) { set(plan); }

  void set(const Plan& plan) noexcept {
    in_flight_max_.store(plan.in_flight_max, std::memory_order_relaxed);
    latency_max_.store(plan.latency_max, std::memory_order_relaxed);
  }
  /// Writes them into a plan.
  void put_into(Plan& plan) const noexcept {
    plan.in_flight_max = in_flight_max_.load(std::memory_order_relaxed);
    plan.latency_max = latency_max_.load(std::memory_order_relaxed);
  }
  /// Queries that a client may have in flight: 1 to Plan::slots.
  [[nodiscard]] std::uint32_t in_flight_max() const noexcept {
    const std::uint32_t most = in_flight_max_.load(std::memory_order_relaxed);
    return most == 0 ? slots_ : most;
  }
  /// The deadline of a query that has waited since `began` and was given `deadline`.
  [[nodiscard]] Time deadline(Time deadline, Time began) const noexcept {
    const Duration most = latency_max_.load(std::memory_order_relaxed);
    return most == Duration::zero() ? deadline : std::min(deadline, began + most);
  }
  /// The same for a query that is submitted now. Reads the clock only if there is a bound.
  [[nodiscard]] Time deadline(Time deadline) const noexcept {
    const Duration most = latency_max_.load(std::memory_order_relaxed);
    return most == Duration::zero() ? deadline : std::min(deadline, SteadyClock::now() + most);
  }

 private:
  const std::uint32_t slots_;
  std::atomic<std::uint32_t> in_flight_max_;
  std::atomic<Duration> latency_max_;
};

}  // namespace headrace::serve::detail
