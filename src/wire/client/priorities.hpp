#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>

#include "headrace/base/detail/clock.hpp"
#include "headrace/measure/detail/latencies.hpp"
#include "headrace/measure/detail/load.hpp"

namespace headrace::wire::client {

/// Results of a thread's requests of one priority.
struct PriorityRecord {
  std::array<std::uint64_t, measure::kOutcomes> outcomes{};  ///< By measure::Outcome.
  measure::Latencies latencies;                              ///< Answered requests.
};

/// Draws the priority of each request of a thread, and records results by priority.
class Priorities {
 public:
  /// @param share  share of requests with high priority, from 0 to 1
  Priorities(double share, std::uint64_t seed) : is_high_(share), generator_(seed) {}

  [[nodiscard]] bool draw() { return is_high_(generator_); }
  void note(bool is_high, Time scheduled, measure::Outcome outcome) {
    PriorityRecord& record = records_[is_high ? 0 : 1];
    ++record.outcomes[static_cast<std::size_t>(outcome)];
    if (outcome == measure::Outcome::right) record.latencies.record(SteadyClock::now() - scheduled);
  }
  [[nodiscard]] const PriorityRecord& record(bool is_high) const noexcept { return records_[is_high ? 0 : 1]; }

 private:
  std::bernoulli_distribution is_high_;
  std::mt19937_64 generator_;
  std::array<PriorityRecord, 2> records_;
};

}  // namespace headrace::wire::client
