#include "headrace/serve/ladder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/base/error.hpp"
#include "headrace/device/topology.hpp"
#include "headrace/measure/search.hpp"
#include "serve/load_target.hpp"

namespace headrace::serve {

namespace {

constexpr double kPercentile = 0.99;

/// The mean stage times of the queries between two readings.
StageTimes between(const StageTimes& before, const StageTimes& after) {
  StageTimes stages;
  stages.samples = after.samples - before.samples;
  if (stages.samples == 0) return stages;
  for (Duration StageTimes::* stage : {&StageTimes::queue, &StageTimes::copy_in, &StageTimes::kernel,
                                       &StageTimes::copy_out, &StageTimes::host, &StageTimes::notify}) {
    const auto total = after.*stage * static_cast<std::int64_t>(after.samples) -
                       before.*stage * static_cast<std::int64_t>(before.samples);
    stages.*stage = std::max(Duration::zero(), total / static_cast<std::int64_t>(stages.samples));
  }
  return stages;
}

/// Climbs one rung.
class Climber {
 public:
  Climber(Device device, const Operator& op, const LadderOptions& options, const Roofs& roofs,
          const detail::QuerySet& queries, const std::function<void(const LadderProgress&)>& report)
      : device_(device), op_(op), options_(options), roofs_(roofs), queries_(queries), report_(report) {}

  RungResult climb(const Rung& rung) {
    RungResult result{rung, rung.plan, {}, {}, {}, {}};
    progress_ = {.rung = rung.number};
    result.capacities = capacities(rung);
    auto by_capacity = result.capacities;
    std::ranges::sort(by_capacity, std::ranges::greater{}, &Capacity::per_second);
    constexpr double kClose = 0.9;
    for (const Capacity& next : by_capacity) {
      // After a thread count that has a rate, only one of about the same capacity is worth the time of another search.
      const bool close = next.per_second >= kClose * by_capacity.front().per_second;
      if (stopped() || next.per_second <= 0 || (result.load && !close)) break;
      try_plan(with_threads(rung, next.threads), next.per_second, result);
    }
    if (!result.load && result.note.empty()) {
      result.note =
          stopped() ? "interrupted" : fmt::format("no rate keeps p99 within {:.3g} ms{}", bound_ms(), last_failure_);
    }
    return result;
  }

 private:
  [[nodiscard]] bool stopped() const { return options_.stop.stop_requested(); }
  [[nodiscard]] double bound_ms() const { return std::chrono::duration<double, std::milli>(options_.bound).count(); }

  [[nodiscard]] std::vector<std::uint32_t> thread_counts(const Rung& rung) const {
    if (!rung.many_threads) return {1};
    const auto processors = static_cast<std::uint32_t>(Topology::machine().processors().size());
    const std::uint32_t left = processors > options_.generators ? processors - options_.generators : 1;
    const std::uint32_t most = options_.threads_max != 0 ? options_.threads_max : std::max(left, 2U);
    std::vector<std::uint32_t> counts;
    for (std::uint32_t count = 1; count < most; count *= 2) counts.push_back(count);
    counts.push_back(most);
    return counts;
  }

  [[nodiscard]] Plan with_threads(const Rung& rung, std::uint32_t threads) const {
    Plan plan = rung.plan;
    plan.threads = threads;
    return detail::beside_generators(plan, options_.generators);
  }

  std::vector<Capacity> capacities(const Rung& rung) {
    std::vector<Capacity> found;
    for (const std::uint32_t threads : thread_counts(rung)) {
      if (stopped()) break;
      found.push_back({threads, capacity(with_threads(rung, threads))});
    }
    return found;
  }

  double capacity(const Plan& plan) {
    Engine engine(device_, op_, plan);
    auto targets = detail::connect_targets(engine, queries_, options_.generators);
    progress_.threads = plan.threads;
    progress_.rate_per_second = 0;
    report();
    measure::LoadOptions load;
    load.bind_to = detail::generator_processors(device_, plan, options_.generators);
    load.stop = options_.stop;
    const std::size_t in_flight = std::max<std::size_t>(2, 2 * plan.threads / options_.generators);
    return measure::closed_loop<detail::EngineTarget>(targets, in_flight, options_.window, load);
  }

  /// Searches with few samples a rate, then confirms what was found with all that p99 needs, stepping down until it
  /// holds.
  void try_plan(const Plan& plan, double capacity, RungResult& result) {
    Engine engine(device_, op_, plan);
    auto targets = detail::connect_targets(engine, queries_, options_.generators);
    constexpr double kCoarse = 2.5;
    const auto probe = [&](double rate) { return run(plan, targets, rate, kCoarse * options_.rank_tolerance); };
    const double least = std::max(1.0, capacity / 32);
    const auto found = measure::search_highest_rate(probe, options_.bound,
                                                    {.start_per_second = 0.7 * capacity,
                                                     .most_per_second = roofs_.generator * options_.generators,
                                                     .least_per_second = least,
                                                     .stop = options_.stop});
    describe_failure(found.last_failure);
    if (found.best) confirm(plan, engine, targets, *found.best, least, result);
  }

  /// Measures at the rate of `found` with all samples, and at lower ones until one is sustained; keeps it if it is the
  /// rung's best.
  void confirm(const Plan& plan, const Engine& engine, std::vector<detail::EngineTarget>& targets,
               const measure::LoadResult& found, double least, RungResult& result) {
    constexpr double kStep = 0.95;
    double rate = found.incoming_per_second;
    int tries = 0;
    while (rate >= least && !stopped()) {
      const StageTimes before = engine.statistics().stages;
      const measure::LoadResult load = run(plan, targets, rate, options_.rank_tolerance);
      if (measure::sustains(load, options_.bound)) {
        if (result.load && result.load->measured_per_second >= load.measured_per_second) return;
        result.stages = between(before, engine.statistics().stages);
        result.plan = plan;
        result.load = load;
        progress_.best_per_second = load.measured_per_second;
        return;
      }
      describe_failure(load);
      if (++tries % measure::kTriesPerRate == 0) rate *= kStep;
    }
  }

  void describe_failure(const measure::LoadResult& failure) {
    if (failure.wrong > 0) {
      last_failure_ = fmt::format(": {} wrong answers", failure.wrong);
    } else if (failure.failed > 0) {
      last_failure_ = fmt::format(": {} queries failed", failure.failed);
    } else if (failure.latency.count > 0 && failure.latency.p99 <= options_.bound) {
      last_failure_ = fmt::format(": {:.0f} of {:.0f} queries/s were answered", failure.measured_per_second,
                                  failure.incoming_per_second);
    } else if (failure.latency.count > 0) {
      last_failure_ = fmt::format(": p99 was {:.3g} ms at {:.0f} queries/s",
                                  std::chrono::duration<double, std::milli>(failure.latency.p99).count(),
                                  failure.incoming_per_second);
    }
  }

  measure::LoadResult run(const Plan& plan, std::vector<detail::EngineTarget>& targets, double rate,
                          double rank_tolerance) {
    measure::LoadOptions load;
    load.rate_per_second = rate;
    load.arrivals = options_.arrivals;
    load.seed = options_.seed;
    load.samples = measure::samples_needed(kPercentile, rank_tolerance);
    const double seconds = static_cast<double>(load.samples) / (rate * load.stable_windows) * 1.05;
    load.window = std::max(options_.window, Duration{static_cast<std::int64_t>(seconds * 1e9)});
    load.windows_max = 2 * load.stable_windows;
    // Twice as many as p99 leaves room for among the queries of the windows that count, each twice as late as it
    // allows.
    constexpr double kFewest = 10;
    const double window_seconds = std::chrono::duration<double>(load.window).count();
    const double most_late = 2 * (1 - kPercentile) * rate * window_seconds * load.stable_windows;
    load.give_up_latency = 2 * options_.bound;
    load.give_up_count = static_cast<std::uint64_t>(std::max(kFewest, most_late)) / options_.generators + 1;
    load.bind_to = detail::generator_processors(device_, plan, options_.generators);
    load.stop = options_.stop;
    load.progress = [&](int, double measured, Duration p99) {
      progress_.rate_per_second = rate;
      progress_.measured_per_second = measured;
      progress_.p99 = p99;
      report();
    };
    return measure::open_loop<detail::EngineTarget>(targets, load);
  }

  void report() const {
    if (report_) report_(progress_);
  }

  Device device_;
  const Operator& op_;
  const LadderOptions& options_;
  const Roofs& roofs_;
  const detail::QuerySet& queries_;
  const std::function<void(const LadderProgress&)>& report_;
  LadderProgress progress_;
  std::string last_failure_;
};

void validate(const LadderOptions& options) {
  if (options.arrivals == measure::ArrivalKind::trace) {
    throw UsageError("a ladder needs poisson or constant arrivals: a trace has a rate of its own");
  }
  if (options.bound <= Duration::zero()) throw UsageError("a latency bound must be above 0");
  if (options.generators < 1 || options.generators > 64) {
    throw UsageError(fmt::format("generators must be 1 to 64, not {}", options.generators));
  }
  for (const int number : options.rungs) static_cast<void>(find_rung(std::to_string(number)));
}

}  // namespace

LadderResult climb(Device device, const Operator& op, const LadderOptions& options,
                   const std::function<void(const LadderProgress&)>& progress,
                   const std::function<void(const RungResult&)>& finished) {
  validate(options);
  if (progress) progress({});
  LadderResult result;
  result.roofs = measure_roofs(device, op, options.generators);
  const detail::QuerySet queries(op, options.seed, detail::kLoadQueries);
  for (const Rung& rung : rungs()) {
    if (!options.rungs.empty() && std::ranges::find(options.rungs, rung.number) == options.rungs.end()) continue;
    if (options.stop.stop_requested()) break;
    RungResult row{rung, rung.plan, {}, {}, {}, same_as(rung, device)};
    if (row.note.empty()) row = Climber(device, op, options, result.roofs, queries, progress).climb(rung);
    if (finished) finished(row);
    result.rungs.push_back(std::move(row));
  }
  result.interrupted = options.stop.stop_requested();
  return result;
}

}  // namespace headrace::serve
