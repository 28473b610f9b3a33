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
  /// Loads at a rate of which one must be sustained, for the search and for each confirmation. A machine that stops for
  /// milliseconds every now and then needs more.
  std::uint32_t tries = measure::kTriesPerRate;
  double resolution = 0.03;  ///< Share of the rate by which a good one and a bad one differ in the end.
};

/// The highest rate that one plan sustains. Without `confirmed` there is none, and `note` says why.
struct PlanSearch {
  Plan plan;  ///< As it ran: with a client for each generator thread.
  std::uint32_t generators = 1;
  double capacity = 0;                         ///< Queries per second when nothing bounds latency.
  std::vector<measure::LoadResult> confirmed;  ///< At the highest rate at which all of them were sustained.
  std::uint32_t loads = 0;  ///< The loads that it took to confirm that rate, those not sustained as well.
  std::vector<measure::LoadResult> tried;  ///< Every load, by incoming rate.
  std::string note;
};

/// Searches on one engine for the highest incoming rate that `plan` sustains with p99 within the bound, answers
/// verified: climb() for one plan that the caller has chosen. Throws as Engine does, and UsageError for options out of
/// range.
[[nodiscard]] PlanSearch search_plan(Device device, const Operator& op, const Plan& plan,
                                     const PlanSearchOptions& options);

}  // namespace headrace::serve
