#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "headrace/measure/detail/load.hpp"
#include "headrace/serve/detail/rate_search.hpp"
#include "headrace/serve/detail/rungs.hpp"
#include "headrace/serve/engine.hpp"

namespace headrace::serve {

/// The limits that the hardware sets for one operator, each measured alone on the same machine, in queries per second.
struct Roofs {
  double link_in = 0;    ///< Queries copied to the device at the bandwidth of a large copy.
  double link_out = 0;   ///< Answers copied back likewise.
  double compute = 0;    ///< Queries in device memory, answered by consecutive saturating launches of the best shape.
  double generator = 0;  ///< Arrivals of one generator thread against an engine that does nothing.
  std::uint32_t generators = 1;

  /// The lowest roof, with all generator threads counted.
  [[nodiscard]] double lowest() const noexcept;
  /// The name of the lowest roof: "link to device", "link to host", "compute" or "generator".
  [[nodiscard]] std::string lowest_name() const;
};

/// Measures all roofs; about half a second.
[[nodiscard]] Roofs measure_roofs(Device device, const Operator& op, std::uint32_t generators = 1);

/// The higher values of two measurements of the same roofs, because a disturbance lowers a roof.
[[nodiscard]] Roofs higher(const Roofs& one, const Roofs& other);
/// Why two measurements of the same roofs cannot be trusted: they differ by more than kRoofsDiffer, such as "the
/// compute roof was 1.2e+06 queries/s before the measurement and 8e+05 after it". Empty if they agree.
[[nodiscard]] std::string why_disturbed(const Roofs& before, const Roofs& after);
inline constexpr double kRoofsDiffer = 0.15;  ///< As a share of the higher one.

struct LadderOptions : PlanSpaceOptions {
  std::vector<int> rungs;  ///< Numbers; empty means all.
  /// Ends the climb like `stop` after this time; the current trial is finished.
  Duration budget = Duration::max();
};

/// Queries per second that a plan answers without a bound on latency, with this many threads.
struct Capacity {
  std::uint32_t threads = 0;  ///< Engine threads; generator threads under Schedule::dispatched.
  std::uint32_t streams_per_thread = 1;
  std::uint32_t batch_max = 1;
  double per_second = 0;
};

/// One rung's figures. Without `load` there are none, and `note` says why.
struct RungResult {
  Rung rung;
  Plan plan;  ///< With the best thread count.
  std::optional<measure::LoadResult> load;
  std::uint32_t generators = 1;            ///< Generator threads of `load`.
  std::vector<measure::LoadResult> tried;  ///< Every load put on `plan`, by incoming rate: latency against throughput.
  StageTimes stages;
  std::vector<StageSample> samples;  ///< Some queries of `load`, for a timeline.
  std::vector<Capacity> capacities;  ///< The capacity of every tried thread count.
  std::string note;
};

struct LadderResult {
  Roofs roofs;  ///< The higher of the roofs measured before and after the climb.
  /// Why the roofs cannot be trusted; empty if both measurements agree. Each load has its own such reason.
  std::string roofs_disturbed;
  std::vector<RungResult> rungs;
  bool interrupted = false;
};

/// What a climb is doing, for live progress.
struct LadderProgress {
  int rung = 0;  ///< Number, 0 while roofs are measured.
  std::uint32_t threads = 0;
  double rate_per_second = 0;  ///< Incoming rate being tried; 0 while measuring capacity.
  double measured_per_second = 0;
  Duration p99{};
  double best_per_second = 0;  ///< The best of this rung so far.
};

/// Climbs: for each rung, finds the highest incoming rate that is sustained with p99 within the bound. Every answer of
/// every run is compared with the host's. `progress` is called from the calling thread, `finished` after each rung.
[[nodiscard]] LadderResult climb(Device device, const Operator& op, const LadderOptions& options,
                                 const std::function<void(const LadderProgress&)>& progress = {},
                                 const std::function<void(const RungResult&)>& finished = {});

/// What one plan did under one load.
struct PlanLoad {
  measure::LoadResult load;
  StageTimes stages;
  Roofs roofs;  ///< As in LadderResult, like the next member.
  std::string roofs_disturbed;
};

/// Puts one load on one plan, answers verified. Throws UsageError if the rate is beyond the generator's ceiling.
[[nodiscard]] PlanLoad load(Device device, const Operator& op, const Plan& plan, const measure::LoadOptions& options,
                            std::uint32_t generators = 1);

}  // namespace headrace::serve
