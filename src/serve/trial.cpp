#include "serve/trial.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "serve/rung_notes.hpp"

namespace headrace::serve::detail {

namespace {

constexpr double kPercentile = 0.99;
constexpr int kRatesMost = 16;
constexpr double kCoarse = 2.5;  ///< Factor by which the search knows p99's rank less precisely than the confirmation.

}  // namespace

StageTimes stages_between(const StageTimes& before, const StageTimes& after) {
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

Trial::Trial(Device device, const Operator& op, const QuerySet& queries, Candidate candidate,
             const TrialOptions& options)
    : options_(options),
      candidate_(std::move(candidate)),
      engine_(device, op, candidate_.plan),
      targets_(connect_targets(engine_, queries, candidate_.generators)),
      processors_(generator_processors(device, candidate_.plan, candidate_.generators)) {}

double Trial::capacity(Duration length) {
  measure::LoadOptions load;
  load.bind_to = processors_;
  load.stop = options_.stop;
  const auto run = [&](Duration part) {
    return measure::closed_loop<EngineTarget>(targets_, candidate_.in_flight, part, load);
  };
  // Take the better of two runs: the first warms up, and a shared machine may stall during either.
  double best = std::max(run(length / 2), run(length / 2));
  // Few answers are not a reliable measure, and a search from a rate far too low takes long.
  constexpr double kAnswersLeast = 100;
  constexpr int kLonger = 4;
  if (best * std::chrono::duration<double>(length).count() < kAnswersLeast && !stopped()) {
    best = std::max(best, run(kLonger * length));
  }
  return best;
}

TrialResult Trial::search(double start, double least) {
  TrialResult result;
  least = std::max(1.0, least);
  if (const auto rate = highest(start, least, result)) confirm(*rate, least, result);
  return result;
}

std::optional<double> Trial::highest(double start, double least, TrialResult& result) {
  const auto found =
      measure::search_highest_rate([&](double rate) { return load(rate, Exactness::coarse, result); }, options_.bound,
                                   {.start_per_second = std::max(start, least),
                                    .most_per_second = options_.generator_per_second * candidate_.generators,
                                    .least_per_second = least,
                                    .resolution = options_.resolution,
                                    .tries = options_.tries,
                                    .probes_max = kRatesMost * options_.tries,
                                    .stop = options_.stop});
  if (!found.best) return std::nullopt;
  return found.best->incoming_per_second;
}

bool Trial::sustained(double rate, TrialResult& result) {
  const StageTimes before = engine_.statistics().stages;
  const measure::LoadResult now = load(rate, Exactness::exact, result);
  if (now.interrupted || !measure::sustains(now, options_.bound)) return false;
  const EngineStatistics after = engine_.statistics();
  result.load = now;
  result.stages = stages_between(before, after.stages);
  result.samples = after.recent;
  return true;
}

void Trial::confirm(double rate, double least, TrialResult& result) {
  constexpr double kStep = 0.05;
  constexpr double kLongest = 0.3;
  constexpr int kQuietTries = 2;
  const double found = rate;
  double step = kStep;
  for (int tries = 1; rate >= least && !stopped(); ++tries) {
    if (sustained(rate, result)) {
      // If this is below the rate that coarse loads sustained, try that rate again, because the disturbance may be
      // over. A disturbed load is not a result, so try again for a quiet one.
      if (rate < found && !stopped() && sustained(found, result)) rate = found;
      for (int again = 0; again < kQuietTries && !stopped() && !measure::why_disturbed(*result.load).empty(); ++again) {
        sustained(rate, result);
      }
      return;
    }
    if (tries % measure::kTriesPerRate != 0) continue;
    rate *= 1 - step;
    step = std::min(step + kStep, kLongest);  // so that a start far too high costs few trials
  }
}

void Trial::add_lower_rates(TrialResult& result) {
  if (!result.load) return;
  for (const double share : {0.25, 0.5}) {
    if (stopped()) return;
    load(share * result.load->incoming_per_second, Exactness::coarse, result);
  }
}

measure::LoadResult Trial::load(double rate, Exactness exactness, TrialResult& result) {
  const bool coarse = exactness == Exactness::coarse;
  measure::LoadOptions load;
  load.rate_per_second = rate;
  load.arrivals = options_.arrivals;
  load.seed = options_.seed + loads_++;
  load.samples = measure::samples_needed(kPercentile, (coarse ? kCoarse : 1) * options_.rank_tolerance);
  const double seconds = static_cast<double>(load.samples) / (rate * load.stable_windows) * 1.05;
  // A search tries many rates, most of them wrong, so half the time is enough.
  const Duration shortest = coarse ? options_.window / 2 : options_.window;
  load.window = std::max(shortest, Duration{static_cast<std::int64_t>(seconds * 1e9)});
  load.windows_max = 2 * load.stable_windows;
  // Give up after twice as many late queries as p99 allows in the windows that count, each twice as late as the bound.
  constexpr double kFewest = 10;
  const double window_seconds = std::chrono::duration<double>(load.window).count();
  const double most_late = 2 * (1 - kPercentile) * rate * window_seconds * load.stable_windows;
  load.give_up_latency = 2 * options_.bound;
  load.give_up_count = static_cast<std::uint64_t>(std::max(kFewest, most_late)) + 1;
  // A search does not wait for a stalled machine; it tries again.
  load.late_limit = std::max<Duration>(2 * options_.bound, std::chrono::seconds(1));
  load.bind_to = processors_;
  load.stop = options_.stop;
  if (options_.progress) {
    load.progress = [&](int, double measured, Duration p99) { options_.progress(rate, measured, p99); };
  }
  const measure::LoadResult done = measure::open_loop<EngineTarget>(targets_, load);
  if (done.interrupted) return done;
  if (!measure::sustains(done, options_.bound)) {
    result.failure = describe_failure(done, options_.bound);
    result.fell_behind = measure::fell_behind(done, options_.bound);
  }
  result.tried.push_back(done);
  return done;
}

}  // namespace headrace::serve::detail
