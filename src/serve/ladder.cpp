#include "headrace/serve/detail/ladder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <tuple>
#include <utility>

#include "headrace/base/error.hpp"
#include "serve/candidates.hpp"
#include "serve/rung_notes.hpp"
#include "serve/trial.hpp"

namespace headrace::serve {

namespace {

using detail::Candidate;
using detail::Sized;
using detail::Trial;
using detail::TrialResult;

/// Climbs one rung: measures the capacity of each candidate, then searches the rates of the most promising ones.
class Climber {
 public:
  Climber(Device device, const Operator& op, const LadderOptions& options, const Roofs& roofs,
          const detail::QuerySet& queries, const std::function<void(const LadderProgress&)>& report)
      : device_(device),
        op_(op),
        options_(options),
        queries_(queries),
        report_(report),
        limits_(detail::limits_for(device, op, options)),
        trial_{options} {
    trial_.generator_per_second = roofs.generator;
    trial_.progress = [this](double rate, double measured, Duration p99) {
      progress_.rate_per_second = rate;
      progress_.measured_per_second = measured;
      progress_.p99 = p99;
      this->report();
    };
  }

  RungResult climb(const Rung& rung) {
    RungResult result;
    result.rung = rung;
    result.plan = rung.plan;
    progress_ = {.rung = rung.number};
    std::string refusal;
    const auto sized = detail::sweep(
        rung.plan, detail::axes_of(rung, limits_), limits_, [&](const Candidate& next) { return capacity(next); },
        refusal, options_.stop);
    for (const Sized& next : sized) result.capacities.push_back(next.capacity);
    std::ranges::stable_sort(result.capacities, {}, [](const Capacity& capacity) {
      return std::tuple(capacity.threads, capacity.batch_max, capacity.streams_per_thread);
    });
    search(sized, result);
    if (!result.load) result.note = why_none(sized, refusal);
    return result;
  }

 private:
  static constexpr double kBetter = 1.03;  ///< The least gain for which a search is worth its time.

  [[nodiscard]] bool stopped() const { return options_.stop.stop_requested(); }

  [[nodiscard]] std::string why_none(const std::vector<Sized>& sized, const std::string& refusal) const {
    if (stopped()) return "stopped before a result was measured";
    if ((sized.empty() || sized.front().usable <= 0) && !refusal.empty()) return refusal;
    const double bound_ms = std::chrono::duration<double, std::milli>(options_.bound).count();
    return fmt::format("no rate keeps p99 within {:.3g} ms{}", bound_ms, last_failure_);
  }

  void begin(const Candidate& candidate) {
    const bool clients_only = is_threadless(candidate.plan.schedule);
    progress_.threads = clients_only ? candidate.generators : candidate.plan.threads;
    progress_.rate_per_second = 0;
    report();
  }

  double capacity(const Candidate& candidate) {
    begin(candidate);
    return Trial(device_, op_, queries_, candidate, trial_).capacity(options_.window / 2);
  }

  /// Searches the first candidate from far below its capacity. At most kChallengers others of similar promise must
  /// first beat the best so far. Rates below a share of the best capacity are not tried: if spinning threads starve
  /// each other, a load there takes minutes and shows nothing else.
  void search(const std::vector<Sized>& sized, RungResult& result) {
    constexpr double kClose = 0.85;
    constexpr int kChallengers = 2;
    const double least = sized.empty() ? 0 : sized.front().usable / 16;
    int challengers = 0;
    for (const Sized& next : sized) {
      const bool close = next.usable >= kClose * sized.front().usable;
      if (stopped() || next.usable <= 0 || (result.load && (!close || challengers++ == kChallengers))) break;
      const double best = result.load ? result.load->measured_per_second : 0;
      const double start = result.load ? kBetter * best : 0.7 * next.usable;
      if (start < least) break;
      try_candidate(next.candidate, start, result.load ? kBetter * best : least, result);
    }
  }

  void try_candidate(const Candidate& candidate, double start, double least, RungResult& result) {
    begin(candidate);
    Trial trial(device_, op_, queries_, candidate, trial_);
    TrialResult found = trial.search(start, least);
    if (!found.failure.empty()) last_failure_ = found.failure;
    if (!found.load) return;
    progress_.best_per_second = found.load->measured_per_second;
    trial.add_lower_rates(found);
    result.plan = candidate.plan;
    result.generators = candidate.generators;
    result.load = found.load;
    result.stages = found.stages;
    result.samples = std::move(found.samples);
    result.tried = std::move(found.tried);
    std::ranges::stable_sort(result.tried, {}, &measure::LoadResult::incoming_per_second);
  }

  void report() const {
    if (report_) report_(progress_);
  }

  Device device_;
  const Operator& op_;
  const LadderOptions& options_;
  const detail::QuerySet& queries_;
  const std::function<void(const LadderProgress&)>& report_;
  detail::CandidateLimits limits_;
  detail::TrialOptions trial_;
  LadderProgress progress_;
  std::string last_failure_;
};

/// A stop that is requested with another one or after a time limit.
class TimeLimit {
 public:
  TimeLimit(const std::stop_token& stop, Duration limit)
      : forward_(stop, [this] { source_.request_stop(); }), timer_([this, limit](const std::stop_token& over) {
          std::unique_lock lock(mutex_);
          const auto most = std::min<Duration>(limit, std::chrono::hours(24 * 365));
          if (!wake_.wait_for(lock, over, most, [&] { return over.stop_requested(); })) source_.request_stop();
        }) {}

  [[nodiscard]] std::stop_token token() const noexcept { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::stop_callback<std::function<void()>> forward_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread timer_;
};

void validate(const LadderOptions& options) {
  detail::require_valid("a ladder", options);
  if (options.budget <= Duration::zero()) throw UsageError("the budget of a ladder must be above 0");
  for (const int number : options.rungs) static_cast<void>(find_rung(std::to_string(number)));
}

/// The last of `rungs` that has figures.
const RungResult* last_with_figures(const std::vector<RungResult>& rungs) {
  for (auto row = rungs.rbegin(); row != rungs.rend(); ++row) {
    if (row->load) return &*row;
  }
  return nullptr;
}

}  // namespace

LadderResult climb(Device device, const Operator& op, const LadderOptions& asked,
                   const std::function<void(const LadderProgress&)>& progress,
                   const std::function<void(const RungResult&)>& finished) {
  validate(asked);
  const TimeLimit limit(asked.stop, asked.budget);
  LadderOptions options = asked;
  options.stop = limit.token();
  if (progress) progress({});
  LadderResult result;
  result.roofs = measure_roofs(device, op, options.single_thread ? 1 : options.generators);
  const detail::QuerySet queries(op, options.seed, detail::load_queries(op));
  for (const Rung& rung : rungs()) {
    if (!options.rungs.empty() && std::ranges::find(options.rungs, rung.number) == options.rungs.end()) continue;
    if (options.stop.stop_requested()) break;
    RungResult row;
    row.rung = rung;
    row.plan = rung.plan;
    row.note = same_as(rung, device);
    if (row.note.empty()) row = Climber(device, op, options, result.roofs, queries, progress).climb(rung);
    if (const RungResult* before = last_with_figures(result.rungs)) {
      if (row.note.empty()) row.note = detail::why_lower(*before, row);
    }
    if (finished) finished(row);
    result.rungs.push_back(std::move(row));
  }
  result.interrupted = asked.stop.stop_requested();
  if (!options.stop.stop_requested()) {
    const Roofs again = measure_roofs(device, op, result.roofs.generators);
    result.roofs_disturbed = why_disturbed(result.roofs, again);
    result.roofs = higher(result.roofs, again);
  }
  return result;
}

}  // namespace headrace::serve
