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
    RungResult result{rung, rung.plan, {}, {}, {}};
    progress_ = {.rung = rung.number};
    for (const Candidate& candidate : by_capacity(rung)) {
      if (stopped()) break;
      try_plan(candidate, result);
    }
    if (!result.load && result.note.empty()) {
      result.note =
          stopped() ? "interrupted" : fmt::format("no rate keeps p99 within {:.3g} ms{}", bound_ms(), last_failure_);
    }
    return result;
  }

 private:
  struct Candidate {
    Plan plan;
    double capacity;
  };

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

  /// The thread counts worth a search: the one of highest capacity, and one within a tenth of it.
  std::vector<Candidate> by_capacity(const Rung& rung) {
    std::vector<Candidate> candidates;
    for (const std::uint32_t threads : thread_counts(rung)) {
      if (stopped()) break;
      Plan plan = rung.plan;
      plan.threads = threads;
      plan.first_processor = options_.generators;
      plan.clients_max = options_.generators;
      candidates.push_back({plan, capacity(plan)});
    }
    std::ranges::sort(candidates, std::ranges::greater{}, &Candidate::capacity);
    constexpr double kClose = 0.9;
    constexpr std::size_t kMost = 2;
    std::size_t keep = std::min<std::size_t>(1, candidates.size());
    while (keep < candidates.size() && keep < kMost && candidates[keep].capacity > kClose * candidates[0].capacity)
      ++keep;
    candidates.resize(keep);
    return candidates;
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

  void try_plan(const Candidate& candidate, RungResult& result) {
    Engine engine(device_, op_, candidate.plan);
    auto targets = detail::connect_targets(engine, queries_, options_.generators);
    const double most = roofs_.generator * options_.generators;
    StageTimes stages;
    StageTimes best_stages;
    double best = result.load ? result.load->measured_per_second : 0;
    const auto probe = [&](double rate) {
      const StageTimes before = engine.statistics().stages;
      measure::LoadResult load = run(candidate.plan, targets, rate);
      stages = between(before, engine.statistics().stages);
      if (measure::sustains(load, options_.bound) && load.measured_per_second > best) {
        best = load.measured_per_second;
        best_stages = stages;
        progress_.best_per_second = best;
      }
      return load;
    };
    if (candidate.capacity <= 0) return;
    const auto found = measure::search_highest_rate(probe, options_.bound,
                                                    {.start_per_second = 0.7 * candidate.capacity,
                                                     .most_per_second = most,
                                                     .least_per_second = std::max(1.0, candidate.capacity / 32),
                                                     .stop = options_.stop});
    if (found.best && (!result.load || found.best->measured_per_second > result.load->measured_per_second)) {
      result.load = found.best;
      result.plan = candidate.plan;
      result.stages = best_stages;
    }
    describe_failure(found.last_failure);
  }

  void describe_failure(const measure::LoadResult& failure) {
    if (failure.wrong > 0) {
      last_failure_ = fmt::format(": {} wrong answers", failure.wrong);
    } else if (failure.failed > 0) {
      last_failure_ = fmt::format(": {} queries failed", failure.failed);
    } else if (failure.latency.count > 0) {
      last_failure_ = fmt::format(": p99 was {:.3g} ms at {:.0f} queries/s",
                                  std::chrono::duration<double, std::milli>(failure.latency.p99).count(),
                                  failure.incoming_per_second);
    }
  }

  measure::LoadResult run(const Plan& plan, std::vector<detail::EngineTarget>& targets, double rate) {
    measure::LoadOptions load;
    load.rate_per_second = rate;
    load.arrivals = options_.arrivals;
    load.seed = options_.seed;
    load.samples = measure::samples_needed(kPercentile, options_.rank_tolerance);
    const double seconds = static_cast<double>(load.samples) / (rate * load.stable_windows) * 1.05;
    load.window = std::max(options_.window, Duration{static_cast<std::int64_t>(seconds * 1e9)});
    load.windows_max = 2 * load.stable_windows;
    // Twice as many as a percentile of 99% leaves room for, each twice as late as it allows.
    load.give_up_latency = 2 * options_.bound;
    load.give_up_count =
        static_cast<std::uint64_t>(2 * (1 - kPercentile) * static_cast<double>(load.samples)) / options_.generators;
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
    RungResult row{rung, rung.plan, {}, {}, same_as(rung, device)};
    if (row.note.empty()) row = Climber(device, op, options, result.roofs, queries, progress).climb(rung);
    if (finished) finished(row);
    result.rungs.push_back(std::move(row));
  }
  result.interrupted = options.stop.stop_requested();
  return result;
}

}  // namespace headrace::serve
