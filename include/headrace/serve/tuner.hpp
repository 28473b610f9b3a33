#pragma once

// tune() searches for the plan that sustains the highest rate of queries within a bound on their latency.
//
//     auto find_plan = [](headrace::Device device, const headrace::serve::Operator& op) {
//       headrace::serve::TunerOptions options;
//       options.bound = std::chrono::milliseconds(2);  // on the 99th percentile
//       headrace::serve::TunedPlan found = headrace::serve::tune(device, op, options);
//       std::printf("%s: %.0f queries per second %s\n", found.plan.name.c_str(), found.per_second, found.note.c_str());
//       return found.plan;
//     };

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "headrace/serve/detail/ladder.hpp"

namespace headrace::serve {

/// What is done about plans that were found before.
enum class CacheUse : std::uint8_t {
  use,      ///< One that fits is taken; what is found is kept.
  refresh,  ///< None is taken; what is found is kept.
  ignore,   ///< The file is neither read nor written.
};

struct TunerOptions : PlanSpaceOptions {
  /// Once it has passed, no new plan is tried; what has begun is finished.
  Duration budget = std::chrono::seconds(60);
  std::vector<Schedule> schedules;  ///< To choose from; empty means all.
  CacheUse cache = CacheUse::use;
  std::filesystem::path cache_file;  ///< Empty means plan_cache_file().
  bool measure_cached = true;        ///< Measure a plan that comes from the cache again.
};

/// A plan that was found, and what it does.
struct TunedPlan {
  Plan plan;
  std::uint32_t generators = 1;
  double per_second = 0;  ///< Sustained with p99 within the bound; 0 when no plan was found.
  Duration p99{};
  std::optional<measure::LoadResult> load;  ///< Empty when the plan comes from the cache and was not measured.
  StageTimes stages;
  Duration took{};
  std::uint32_t space = 0;      ///< Plans that there were to choose from.
  std::uint32_t looked_at = 0;  ///< Plans whose capacity was measured.
  std::uint32_t searched = 0;   ///< Plans whose highest rate was searched for.
  bool cached = false;
  bool interrupted = false;
  std::string note;  ///< Why there is no plan.
};

/// What a tuner is doing.
struct TunerProgress {
  std::string_view phase;  ///< "coarse", "fine", "rates" or "exhaustive".
  std::uint32_t done = 0;  ///< Plans of this phase.
  std::uint32_t of = 0;    ///< 0 where it is not known.
  Plan plan;               ///< Being tried.
  double best_per_second = 0;
};

/// Searches for the plan that sustains the highest rate with p99 within the bound, answers verified: over schedules,
/// threads, streams, batches, slots, groups and workers, from parallelism near what the device can hold
/// (Device::resident_blocks_max). Coarse to fine: short capacity runs of a coarse grid, the better third going on to
/// runs three times as long (successive halving: Jamieson & Talwalkar, AISTATS 2016), then the neighbours of the best,
/// then the rate search on a few. Throws UsageError for options that are out of range.
[[nodiscard]] TunedPlan tune(Device device, const Operator& op, const TunerOptions& options = {},
                             const std::function<void(const TunerProgress&)>& progress = {});

/// The rate search on every plan of the same space: what the tuner is held against. The cache and the budget do not
/// matter.
[[nodiscard]] TunedPlan tune_exhaustively(Device device, const Operator& op, const TunerOptions& options = {},
                                          const std::function<void(const TunerProgress&)>& progress = {});

/// $XDG_CACHE_HOME/headrace/plans.json, or the same under ~/.cache; empty where neither is known.
[[nodiscard]] std::filesystem::path plan_cache_file();

}  // namespace headrace::serve
