#include "headrace/serve/tuner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headrace/base/error.hpp"
#include "serve/plan_cache.hpp"
#include "serve/tuner_search.hpp"

namespace headrace::serve {

namespace {

using detail::Candidate;
using detail::Trial;
using detail::TrialResult;
using detail::TunerSearch;

void validate(const TunerOptions& options) {
  detail::require_valid("a tuner", options);
  if (options.budget <= Duration::zero()) throw UsageError("a tuner's budget must be above 0");
  for (const Schedule schedule : options.schedules) {
    if (schedule == Schedule::none) throw UsageError("schedule 'none' answers no queries, so there is no rate to tune");
  }
}

/// Runs loads on the machine itself.
class Bench {
 public:
  Bench(Device device, const Operator& op, const TunerOptions& options)
      : device_(device), op_(op), queries_(op, options.seed, detail::load_queries(op)), trial_{options} {}

  [[nodiscard]] TrialResult search(const Candidate& candidate, double start, double least) const {
    return Trial(device_, op_, queries_, candidate, trial_).search(start, least);
  }
  [[nodiscard]] detail::TunerProbe probe() const {
    return {
        .capacity = [this](const Candidate& next,
                           Duration length) { return Trial(device_, op_, queries_, next, trial_).capacity(length); },
        .search = [this](const Candidate& next, double start, double least) { return search(next, start, least); },
        .now = [] { return SteadyClock::now(); }};
  }

 private:
  Device device_;
  const Operator& op_;
  detail::QuerySet queries_;
  detail::TrialOptions trial_;
};

void put(TunedPlan& tuned, const Candidate& candidate, const TrialResult& result) {
  tuned.plan = candidate.plan;
  tuned.generators = candidate.generators;
  tuned.load = result.load;
  tuned.stages = result.stages;
  tuned.per_second = result.load->measured_per_second;
  tuned.p99 = result.load->latency.p99;
}

/// Takes a plan from the cache and measures it again if requested. Empty if it no longer holds.
std::optional<TunedPlan> from_cache(const detail::CachedPlan& cached, const Bench& bench, const TunerOptions& options) {
  constexpr double kStart = 0.9;
  TunedPlan tuned;
  tuned.cached = true;
  tuned.plan = cached.plan;
  tuned.generators = cached.generators;
  tuned.per_second = cached.per_second;
  tuned.p99 = cached.p99;
  if (!options.measure_cached) return tuned;
  const Candidate candidate{.plan = cached.plan, .generators = cached.generators};
  try {
    const TrialResult result =
        detail::search_down(bench.probe(), candidate, kStart * cached.per_second, cached.per_second / 2);
    if (!result.load) return std::nullopt;
    put(tuned, candidate, result);
  } catch (const Exception&) {
    return std::nullopt;  // if the plan does not work any more, search again
  }
  return tuned;
}

TunedPlan run(Device device, const Operator& op, const TunerOptions& options, bool exhaustive,
              const std::function<void(const TunerProgress&)>& progress) {
  constexpr int kShortest = 10;  // Rates need whole windows; a tenth shows that a plan is bad.
  const Time began = SteadyClock::now();
  const Bench bench(device, op, options);
  const detail::CandidateLimits limits = detail::limits_for(device, op, options);
  TunerSearch search(
      tuning_grids(options.schedules, limits, detail::held_by(device, op)), limits, bench.probe(),
      {.shortest = options.window / kShortest, .budget = options.budget, .stop = options.stop, .progress = progress});
  const auto best = exhaustive ? search.exhaustive() : search.coarse_to_fine();
  TunedPlan tuned;
  if (best) {
    put(tuned, best->candidate, best->result);
  } else {
    const double bound_ms = std::chrono::duration<double, std::milli>(options.bound).count();
    tuned.note = options.stop.stop_requested() ? "interrupted"
                 : search.searched() == 0 && !search.refusal().empty()
                     ? search.refusal()
                     : fmt::format("no plan keeps p99 within {:.3g} ms{}", bound_ms, search.failure());
  }
  tuned.space = search.space();
  tuned.looked_at = search.looked_at();
  tuned.searched = search.searched();
  tuned.interrupted = options.stop.stop_requested();
  tuned.took = SteadyClock::now() - began;
  return tuned;
}

}  // namespace

TunedPlan tune(Device device, const Operator& op, const TunerOptions& options,
               const std::function<void(const TunerProgress&)>& progress) {
  validate(options);
  const auto file = options.cache_file.empty() ? plan_cache_file() : options.cache_file;
  const std::string key = detail::cache_key(device, op, options);
  if (options.cache == CacheUse::use) {
    if (const auto cached = detail::read_cached(file, key)) {
      const Time began = SteadyClock::now();
      auto tuned = from_cache(*cached, Bench(device, op, options), options);
      if (tuned) {
        tuned->took = SteadyClock::now() - began;
        return *std::move(tuned);
      }
    }
  }
  TunedPlan tuned = run(device, op, options, false, progress);
  if (tuned.load && !tuned.interrupted && options.cache != CacheUse::ignore) {
    detail::write_cached(
        file, key,
        {.plan = tuned.plan, .generators = tuned.generators, .per_second = tuned.per_second, .p99 = tuned.p99});
  }
  return tuned;
}

TunedPlan tune_exhaustively(Device device, const Operator& op, const TunerOptions& options,
                            const std::function<void(const TunerProgress&)>& progress) {
  validate(options);
  return run(device, op, options, true, progress);
}

Plan Plan::tuned(Device device, const Operator& op, Duration bound) {
  TunerOptions options;
  options.bound = bound;
  options.measure_cached = false;
  TunedPlan found = tune(device, op, options);
  if (found.per_second <= 0) throw Exception(Errc::not_found, found.note);
  // The tuner has as many clients as generators; a service may have more.
  found.plan.clients_max = std::max(found.plan.clients_max, Plan{}.clients_max);
  return found.plan;
}

}  // namespace headrace::serve
