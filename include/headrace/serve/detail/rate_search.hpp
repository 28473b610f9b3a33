#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>

#include "headrace/base/detail/clock.hpp"
#include "headrace/measure/detail/arrivals.hpp"

namespace headrace::serve {

/// Options of every search for the highest rate that is sustained within a bound: climb(), tune() and search_plan().
struct RateSearchOptions {
  Duration bound = std::chrono::microseconds(500);  ///< On p99.
  measure::ArrivalKind arrivals = measure::ArrivalKind::poisson;
  std::uint64_t seed = 1;
  /// Generator threads, each with its own client. If the clients are the only threads (Schedule::dispatched), a search
  /// over plans also tries more.
  std::uint32_t generators = 1;
  Duration window =
      std::chrono::milliseconds(100);  ///< Shortest window; low rates take longer ones, for their samples.
  double rank_tolerance = 0.002;       ///< Required precision of p99's rank; see samples_needed().
  std::stop_token stop{};              ///< Ends the search, which returns what it has found so far.
};

/// Further options of a search over plans.
struct PlanSpaceOptions : RateSearchOptions {
  bool single_thread = false;     ///< One engine thread in every plan, and one generator.
  std::uint32_t threads_max = 0;  ///< Most engine threads; 0: the processors left by the generators, at least 2.
};

}  // namespace headrace::serve
