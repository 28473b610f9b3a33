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

/// How loads are put on candidates.
struct TrialOptions : RateSearchOptions {
  int tries = measure::kTriesPerRate;  ///< As measure::SearchOptions has them, as is the next.
  double resolution = 0.03;
  double generator_per_second = 1e9;  ///< The ceiling of one generator thread.
  /// Rate tried, rate measured and p99 so far.
  std::function<void(double, double, Duration)> progress{};
};

/// What the search for the highest rate of one candidate found.
struct TrialResult {
  std::optional<measure::LoadResult> load;
  StageTimes stages;
  std::vector<StageSample> samples;
  std::vector<measure::LoadResult> tried;  ///< In the order of trying, without what was interrupted.
  std::string failure;                     ///< What the last rate that was not sustained did, ": p99 was ...".
  bool fell_behind = false;                ///< It kept p99 within the bound, but not up with what came in.
};

/// How well a load must know p99.
enum class Exactness : std::uint8_t { coarse, exact };

/// One candidate at work: an engine with clients that loads are put on.
class Trial {
 public:
  /// Throws what Engine's constructor throws.
  Trial(Device device, const Operator& op, const QuerySet& queries, Candidate candidate, const TrialOptions& options);

  /// The plan as it runs.
  [[nodiscard]] const Plan& plan() const noexcept { return engine_.plan(); }
  /// Queries per second that come back in a closed loop of that length.
  [[nodiscard]] double capacity(Duration length);
  /// The highest rate sustained within the bound: a search with few samples a rate, begun at `start`, then a
  /// confirmation with all that p99 needs, stepping down until it holds, never below `least`.
  [[nodiscard]] TrialResult search(double start, double least);
  /// The first half of search(): a rate that coarse loads sustained, if any.
  [[nodiscard]] std::optional<double> highest(double start, double least, TrialResult& result);
  /// One load of random arrivals, others than those of the load before.
  measure::LoadResult load(double rate, Exactness exactness, TrialResult& result);
  /// Loads the candidate at a part of the rate that was found, for the curve of latency against throughput.
  void add_lower_rates(TrialResult& result);

 private:
  /// One exact load; when it is sustained, it is the result.
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
