#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/measure/detail/search.hpp"
#include "headrace/serve/detail/ladder.hpp"

namespace headrace::serve {

struct PlanSearchOptions : RateSearchOptions {
  double start_per_second = 0;      ///< Where to begin; 0 means at 0.7 of the capacity.
  double most_per_second = 1e12;    ///< Never try above this, e.g. the generator's ceiling.
  std::uint32_t confirmations = 1;  ///< Loads that must be sustained at the rate found, each with all samples.
  /// Number of loads per rate of which one must be sustained, for the search and for each confirmation. A machine that
  /// occasionally stalls for milliseconds needs more.
  std::uint32_t tries = measure::kTriesPerRate;
  double resolution = 0.03;  ///< Relative difference between a good and a bad rate at which the search ends.
};

/// The highest rate that one plan sustains. If `confirmed` is empty there is none, and `note` says why.
struct PlanSearch {
  Plan plan;  ///< The plan as it ran, with a client for each generator thread.
  std::uint32_t generators = 1;
  double capacity = 0;                         ///< Queries per second without a bound on latency.
  std::vector<measure::LoadResult> confirmed;  ///< Loads at the highest rate at which all of them were sustained.
  std::uint32_t loads = 0;                 ///< Loads that it took to confirm that rate, including those not sustained.
  std::vector<measure::LoadResult> tried;  ///< Every load, by incoming rate.
  std::string note;
};

/// Searches on one engine for the highest incoming rate that `plan` sustains with p99 within the bound, answers
/// verified: like climb(), for one plan that the caller has chosen. Throws as Engine does, and UsageError for options
/// out of range.
[[nodiscard]] PlanSearch search_plan(Device device, const Operator& op, const Plan& plan,
                                     const PlanSearchOptions& options);

}  // namespace headrace::serve
