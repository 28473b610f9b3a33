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

/// How tune() uses the cache of plans that earlier searches found.
enum class CacheUse : std::uint8_t {
  use,      ///< Takes a cached plan that fits, and adds what it finds.
  refresh,  ///< Searches anew, and adds what it finds.
  ignore,   ///< Neither reads nor writes the file.
};

/// What tune() searches, and for how long.
struct TunerOptions : PlanSpaceOptions {
  /// Once this time has passed, no new plan is tried; the current trial is finished.
  Duration budget = std::chrono::seconds(60);
  std::vector<Schedule> schedules;   ///< To choose from; empty means all.
  CacheUse cache = CacheUse::use;    ///< How the cache is used.
  std::filesystem::path cache_file;  ///< Empty means plan_cache_file().
  bool measure_cached = true;        ///< Measures a plan from the cache again.
};

/// The plan that tune() found, and its figures.
struct TunedPlan {
  Plan plan;                                ///< The plan; meaningless if per_second is 0.
  std::uint32_t generators = 1;             ///< Generator threads that offered the load.
  double per_second = 0;                    ///< Sustained with p99 within the bound; 0 when no plan was found.
  Duration p99{};                           ///< The 99th percentile of latency at that rate.
  std::optional<measure::LoadResult> load;  ///< Empty when the plan comes from the cache and was not measured.
  StageTimes stages;                        ///< Mean times of the stages at that rate.
  Duration took{};                          ///< Duration of the search.
  std::uint32_t space = 0;                  ///< Plans to choose from.
  std::uint32_t looked_at = 0;              ///< Plans whose capacity was measured.
  std::uint32_t searched = 0;               ///< Plans whose highest rate was searched for.
  bool cached = false;                      ///< The plan comes from the cache.
  bool interrupted = false;                 ///< The search was stopped by request.
  std::string note;                         ///< Why there is no plan.
};

/// What a tuner is doing.
struct TunerProgress {
  std::string_view phase;      ///< "coarse", "fine", "rates" or "exhaustive".
  std::uint32_t done = 0;      ///< Plans of this phase that have been tried.
  std::uint32_t of = 0;        ///< Plans of this phase; 0 if not known.
  Plan plan;                   ///< The plan being tried.
  double best_per_second = 0;  ///< The best rate so far.
};

/// Searches for the plan that sustains the highest rate with p99 within the bound, answers verified: over schedules,
/// threads, streams, batches, slots, groups and workers, from parallelism near what the device can hold
/// (Device::resident_blocks_max). Coarse to fine: short capacity runs of a coarse grid, the better third going on to
/// runs three times as long (successive halving: Jamieson & Talwalkar, AISTATS 2016), then the neighbours of the best,
/// then the rate search on a few. Throws UsageError for options that are out of range.
[[nodiscard]] TunedPlan tune(Device device, const Operator& op, const TunerOptions& options = {},
                             const std::function<void(const TunerProgress&)>& progress = {});

/// Runs the rate search on every plan of the same space, as a reference for the tuner. Ignores the cache and the
/// budget.
[[nodiscard]] TunedPlan tune_exhaustively(Device device, const Operator& op, const TunerOptions& options = {},
                                          const std::function<void(const TunerProgress&)>& progress = {});

/// $XDG_CACHE_HOME/headrace/plans.json, or the same under ~/.cache; empty if neither is known.
[[nodiscard]] std::filesystem::path plan_cache_file();

}  // namespace headrace::serve
