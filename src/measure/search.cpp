#include "headrace/measure/detail/search.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/base/error.hpp"

namespace headrace::measure {

namespace {

/// The state of a search: the interval between the highest good and the lowest bad rate.
class Search {
 public:
  Search(const std::function<LoadResult(double)>& probe, Duration bound, const SearchOptions& options)
      : probe_(probe), bound_(bound), options_(options) {}

  SearchResult run() {
    narrow(std::min(options_.start_per_second, options_.most_per_second));
    // One bad verdict bounds all later rates, and a momentary stall of the machine makes any rate look bad. So the
    // search tries the lowest bad rate once more; if it is good now, the search continues upwards from there.
    while (may_go_on() && good_rate_ > 0 && bad_rate_ != kNone) {
      const double rate = bad_rate_;
      if (!good(rate)) break;
      good_rate_ = rate;
      bad_rate_ = kNone;
      if (good_rate_ < options_.most_per_second) narrow(next());
    }
    return result_;
  }

 private:
  [[nodiscard]] bool may_go_on() const { return result_.probes < options_.probes_max && !result_.interrupted; }

  /// Narrows the interval from `rate` on until it is at most as wide as the resolution.
  void narrow(double rate) {
    while (may_go_on() && rate >= options_.least_per_second) {
      (good(rate) ? good_rate_ : bad_rate_) = rate;
      if (good_rate_ >= options_.most_per_second) return;
      if (good_rate_ > 0 && bad_rate_ != kNone && bad_rate_ - good_rate_ <= options_.resolution * bad_rate_) return;
      rate = next();
    }
  }

  static constexpr double kUp = 1.5;
  static constexpr double kDown = 0.5;
  static constexpr double kNone = -1;

  [[nodiscard]] double next() const noexcept {
    if (bad_rate_ == kNone) return std::min(good_rate_ * kUp, options_.most_per_second);
    if (good_rate_ == 0) return bad_rate_ * kDown;
    return (good_rate_ + bad_rate_) / 2;
  }

  bool good(double rate) {
    int disturbed = 0;  // inconclusive tries, because the machine was not quiet; at most as many as other tries
    for (int tries = 0; tries < options_.tries && !result_.interrupted; ++tries) {
      const LoadResult load = probe_(rate);
      ++result_.probes;
      result_.interrupted = load.interrupted || options_.stop.stop_requested();
      if (load.interrupted) return false;
      if (sustains(load, bound_)) {
        result_.best = load;
        return true;
      }
      result_.last_failure = load;
      if (!why_disturbed(load.machine).empty() && disturbed < options_.tries) {
        ++disturbed;
        --tries;
      }
    }
    return false;
  }

  const std::function<LoadResult(double)>& probe_;
  Duration bound_;
  const SearchOptions& options_;
  SearchResult result_;
  double good_rate_ = 0;
  double bad_rate_ = kNone;
};

}  // namespace

SearchResult search_highest_rate(const std::function<LoadResult(double)>& probe, Duration p99_bound,
                                 const SearchOptions& options) {
  if (!(options.start_per_second > 0)) {
    throw UsageError(fmt::format("a search must start above 0 queries/s, not {}", options.start_per_second));
  }
  if (p99_bound <= Duration::zero()) throw UsageError("a latency bound must be above 0");
  return Search(probe, p99_bound, options).run();
}

}  // namespace headrace::measure
