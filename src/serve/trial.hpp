#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "headrace/measure/detail/search.hpp"
#include "headrace/serve/detail/ladder.hpp"
#include "serve/candidates.hpp"
#include "serve/load_target.hpp"

namespace headrace::serve::detail {

/// How to run loads on candidates.
struct TrialOptions : RateSearchOptions {
  int tries = measure::kTriesPerRate;  ///< As in measure::SearchOptions, like the next member.
  double resolution = 0.03;
  double generator_per_second = 1e9;  ///< The ceiling of one generator thread.
  /// Rate tried, rate measured and p99 so far.
  std::function<void(double, double, Duration)> progress{};
};

/// Result of the search for the highest rate of one candidate.
struct TrialResult {
  std::optional<measure::LoadResult> load;
  StageTimes stages;
  std::vector<StageSample> samples;
  std::vector<measure::LoadResult> tried;  ///< In the order of the trials, without interrupted ones.
  std::string failure;                     ///< Why the last unsustained rate failed, ": p99 was ...".
  bool fell_behind = false;  ///< It kept p99 within the bound, but did not keep up with the incoming rate.
};

/// How precisely a load must determine p99.
enum class Exactness : std::uint8_t { coarse, exact };

/// One candidate at work: an engine with clients that generate loads.
class Trial {
 public:
  /// Throws what Engine's constructor throws.
  Trial(Device device, const Operator& op, const QuerySet& queries, Candidate candidate, const TrialOptions& options);

  /// The plan as it runs.
  [[nodiscard]] Plan plan() const { return engine_.plan(); }
  /// Queries per second that are answered in a closed loop of that length.
  [[nodiscard]] double capacity(Duration length);
  /// The highest rate sustained within the bound: a search with few samples per rate, begun at `start`, then a
  /// confirmation with all samples that p99 needs, stepping down until it holds, never below `least`.
  [[nodiscard]] TrialResult search(double start, double least);
  /// The first half of search(): a rate that coarse loads sustained, if any.
  [[nodiscard]] std::optional<double> highest(double start, double least, TrialResult& result);
  /// Runs one load of random arrivals, which differ from those of the previous load.
  measure::LoadResult load(double rate, Exactness exactness, TrialResult& result);
  /// Runs loads at fractions of the found rate, for the curve of latency against throughput.
  void add_lower_rates(TrialResult& result);

 private:
  /// Runs one exact load. If it is sustained, it becomes the result.
  bool sustained(double rate, TrialResult& result);
  void confirm(double rate, double least, TrialResult& result);
  [[nodiscard]] bool stopped() const { return options_.stop.stop_requested(); }

  const TrialOptions& options_;
  Candidate candidate_;
  Engine engine_;
  std::vector<EngineTarget> targets_;
  std::vector<Processor> processors_;
  std::uint64_t loads_ = 0;
};

/// The mean stage times of the queries between two readings.
[[nodiscard]] StageTimes stages_between(const StageTimes& before, const StageTimes& after);

}  // namespace headrace::serve::detail
