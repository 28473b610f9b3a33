#include "serve/search_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "headrace/base/error.hpp"
#include "headrace/measure/detail/search.hpp"
#include "serve/candidates.hpp"
#include "serve/load_target.hpp"
#include "serve/trial.hpp"

namespace headrace::serve {

namespace {

double milliseconds(Duration duration) { return std::chrono::duration<double, std::milli>(duration).count(); }

detail::Candidate candidate_of(Device device, const Operator& op, const Plan& plan, std::uint32_t generators) {
  const std::size_t in_flight = detail::in_flight_each(plan, generators, detail::resident_queries_of(device, op));
  return {.plan = detail::beside_generators(plan, generators), .generators = generators, .in_flight = in_flight};
}

detail::TrialOptions trial_options(const PlanSearchOptions& options) {
  detail::TrialOptions trial{options};
  trial.tries = static_cast<int>(options.tries);
  trial.resolution = options.resolution;
  trial.generator_per_second = options.most_per_second / options.generators;
  return trial;
}

class PlanSearcher {
 public:
  PlanSearcher(Device device, const Operator& op, const Plan& plan, const PlanSearchOptions& options)
      : options_(options),
        trial_options_(trial_options(options)),
        queries_(op, options.seed, detail::load_queries(op)),
        trial_(device, op, queries_, candidate_of(device, op, plan, options.generators), trial_options_) {}

  PlanSearch run() {
    PlanSearch result;
    result.plan = trial_.plan();
    result.generators = options_.generators;
    result.capacity = trial_.capacity(options_.window);
    if (result.capacity <= 0) {
      result.note = stopped() ? "interrupted" : "no query was answered correctly";
      return result;
    }
    const double start = options_.start_per_second > 0 ? options_.start_per_second : 0.7 * result.capacity;
    const double least = std::max(1.0, std::min(start, result.capacity) / 64);
    if (const auto rate = trial_.highest(start, least, loads_)) confirm(*rate, least, result);
    if (result.confirmed.empty()) {
      result.note =
          stopped() ? "interrupted"
                    : fmt::format("no rate keeps p99 within {:.3g} ms{}", milliseconds(options_.bound), loads_.failure);
    }
    result.tried = std::move(loads_.tried);
    std::ranges::stable_sort(result.tried, {}, &measure::LoadResult::incoming_per_second);
    return result;
  }

 private:
  [[nodiscard]] bool stopped() const { return options_.stop.stop_requested(); }

  /// Runs loads at `rate`, and at lower rates until the requested number of loads is sustained at one rate.
  void confirm(double rate, double least, PlanSearch& result) {
    while (rate >= least && !stopped()) {
      const std::size_t before = loads_.tried.size();
      std::vector<measure::LoadResult> good;
      while (good.size() < options_.confirmations && sustained_once(rate, good)) {
      }
      if (good.size() == options_.confirmations) {
        result.confirmed = std::move(good);
        result.loads = static_cast<std::uint32_t>(loads_.tried.size() - before);
        return;
      }
      rate *= 1 - options_.resolution;
    }
  }

  /// Tries loads up to options_.tries times. Returns whether one is sustained, and adds that one to `good`.
  bool sustained_once(double rate, std::vector<measure::LoadResult>& good) {
    for (std::uint32_t tries = 0; tries < options_.tries && !stopped(); ++tries) {
      const measure::LoadResult load = trial_.load(rate, detail::Exactness::exact, loads_);
      if (!measure::sustains(load, options_.bound)) continue;
      good.push_back(load);
      return true;
    }
    return false;
  }

  const PlanSearchOptions& options_;
  const detail::TrialOptions trial_options_;
  const detail::QuerySet queries_;
  detail::Trial trial_;
  detail::TrialResult loads_;
};

void validate(const PlanSearchOptions& options) {
  detail::require_valid("a search", options);
  if (options.confirmations < 1) throw UsageError("confirmations must be at least 1");
  if (options.tries < 1 || options.tries > 1000) {
    throw UsageError(fmt::format("tries must be 1 to 1000, not {}", options.tries));
  }
  if (!std::isfinite(options.resolution) || options.resolution <= 0 || options.resolution > 0.5) {
    throw UsageError(fmt::format("resolution must be above 0 and at most 0.5, not {}", options.resolution));
  }
}

}  // namespace

PlanSearch search_plan(Device device, const Operator& op, const Plan& plan, const PlanSearchOptions& options) {
  validate(options);
  return PlanSearcher(device, op, plan, options).run();
}

}  // namespace headrace::serve
