#pragma once

#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "headrace/serve/tuner.hpp"
#include "serve/trial.hpp"
#include "serve/tuning_space.hpp"

namespace headrace::serve::detail {

/// Measurements that the search requests; a test answers them from a table. Both throw Exception for a refused plan.
struct TunerProbe {
  std::function<double(const Candidate&, Duration length)> capacity;
  std::function<TrialResult(const Candidate&, double start, double least)> search;
  std::function<Time()> now;
};

/// Searches a plan's rate from `start` down to `least`. If none is sustained only because the plan does not keep up
/// with the incoming rate, searches further, down to a 256th of `least`: after a stall of tens of milliseconds, the
/// queue at the end of a short window is too long at a high rate, but within chance at a low one. A plan that is late
/// at `least` is late at any rate and is not tried again.
[[nodiscard]] TrialResult search_down(const TunerProbe& probe, const Candidate& candidate, double start, double least);

struct TunerSearchOptions {
  Duration shortest{};  ///< Length of the first capacity runs.
  Duration budget{};
  std::stop_token stop{};
  std::function<void(const TunerProgress&)> progress{};
};

/// The tuner's search over grids of plans; see tune().
class TunerSearch {
 public:
  struct Best {
    Point point;
    Candidate candidate;
    TrialResult result;
  };

  TunerSearch(std::vector<Grid> grids, CandidateLimits limits, TunerProbe probe, TunerSearchOptions options);

  [[nodiscard]] std::optional<Best> coarse_to_fine();
  [[nodiscard]] std::optional<Best> exhaustive();

  [[nodiscard]] std::uint32_t space() const;
  [[nodiscard]] std::uint32_t looked_at() const noexcept { return static_cast<std::uint32_t>(usable_.size()); }
  [[nodiscard]] std::uint32_t searched() const noexcept { return searched_; }
  /// refusal(): why the first refused plan was refused. failure(): why the last search found no rate.
  [[nodiscard]] const std::string& refusal() const noexcept { return refusal_; }
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }

 private:
  [[nodiscard]] bool out_of(double share_of_budget) const;
  double look(const Point& point, Duration length);
  [[nodiscard]] double usable(const Point& point) const;
  [[nodiscard]] std::vector<Point> best_looking() const;
  [[nodiscard]] std::vector<Point> halve();
  void climb(Point from);
  [[nodiscard]] std::vector<Point> finalists() const;
  bool try_rates(const Point& point);
  void refine();
  void report(std::string_view phase, const Candidate& candidate, std::size_t done, std::size_t of) const;

  std::vector<Grid> grids_;
  CandidateLimits limits_;
  TunerProbe probe_;
  TunerSearchOptions options_;
  Time began_{};
  Duration length_{};               ///< The current length of capacity runs.
  std::map<Point, double> usable_;  ///< The last measured usable capacity.
  std::map<Point, bool> tried_;     ///< Points whose rate has been searched.
  std::optional<Best> best_;
  std::uint32_t searched_ = 0;
  std::string refusal_;
  std::string failure_;
};

}  // namespace headrace::serve::detail
