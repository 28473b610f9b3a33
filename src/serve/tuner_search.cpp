#include "serve/tuner_search.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "headrace/base/error.hpp"

namespace headrace::serve::detail {

namespace {

constexpr std::size_t kKept = 6;   ///< Plans with which successive halving ends.
constexpr std::size_t kThird = 3;  ///< One plan in this many continues ...
constexpr int kLonger = 3;         ///< ... with runs this many times as long.
constexpr double kBetter = 1.03;   ///< The resolution of a rate search.
constexpr double kLittleBetter = 1.02;
constexpr double kRange = 16;       ///< A rate search ends at about its start divided by this.
constexpr double kPromising = 0.6;  ///< A plan whose usable capacity is below this share of the best rate cannot win.

/// Distance of a plan's parallelism from what the device can hold; 0 if they are equal.
double distance_from_resident(const Candidate& candidate, const CandidateLimits& limits) {
  return std::abs(std::log2(static_cast<double>(candidate.plan.parallelism()) / limits.resident));
}

}  // namespace

TrialResult search_down(const TunerProbe& probe, const Candidate& candidate, double start, double least) {
  constexpr int kFurther = 2;
  TrialResult found = probe.search(candidate, start, least);
  for (int times = 0; times < kFurther && !found.load && found.fell_behind && least > 1; ++times) {
    start = least / 2;
    least /= kRange;
    found = probe.search(candidate, start, least);
  }
  return found;
}

TunerSearch::TunerSearch(std::vector<Grid> grids, CandidateLimits limits, TunerProbe probe, TunerSearchOptions options)
    : grids_(std::move(grids)),
      limits_(limits),
      probe_(std::move(probe)),
      options_(std::move(options)),
      began_(probe_.now()),
      length_(options_.shortest) {}

std::optional<TunerSearch::Best> TunerSearch::coarse_to_fine() {
  for (const Point& start : halve()) climb(start);
  for (const Point& point : finalists()) {
    if (best_ && out_of(1)) break;
    try_rates(point);
  }
  refine();
  return best_;
}

std::optional<TunerSearch::Best> TunerSearch::exhaustive() {
  const auto points = all_points(grids_, limits_);
  std::optional<Best> best;
  for (std::size_t i = 0; i < points.size() && !options_.stop.stop_requested(); ++i) {
    report("exhaustive", candidate_at(grids_, points[i], limits_), i, points.size());
    best_.reset();  // so that each plan gets a full search, not only a comparison with the best
    if (look(points[i], kLonger * kLonger * options_.shortest) > 0) try_rates(points[i]);
    const bool better =
        best_ && (!best || best_->result.load->measured_per_second > best->result.load->measured_per_second);
    if (better) best = best_;
  }
  best_ = best;
  return best;
}

std::uint32_t TunerSearch::space() const { return static_cast<std::uint32_t>(all_points(grids_, limits_).size()); }

bool TunerSearch::out_of(double share_of_budget) const {
  const double spent = std::chrono::duration<double>(probe_.now() - began_).count();
  return options_.stop.stop_requested() ||
         spent >= share_of_budget * std::chrono::duration<double>(options_.budget).count();
}

double TunerSearch::look(const Point& point, Duration length) {
  const Candidate candidate = candidate_at(grids_, point, limits_);
  double per_second = 0;
  try {
    per_second = probe_.capacity(candidate, length);
  } catch (const Exception& error) {
    if (refusal_.empty()) refusal_ = error.what();
  }
  const auto in_flight = static_cast<double>(candidate.in_flight * candidate.generators);
  return usable_[point] = usable_capacity(per_second, in_flight, limits_.bound);
}

double TunerSearch::usable(const Point& point) const {
  const auto found = usable_.find(point);
  return found == usable_.end() ? -1 : found->second;
}

std::vector<Point> TunerSearch::best_looking() const {
  std::vector<Point> points;
  for (const auto& [point, value] : usable_) {
    if (value > 0) points.push_back(point);
  }
  std::ranges::stable_sort(points, std::ranges::greater{}, [&](const Point& point) { return usable(point); });
  return points;
}

std::vector<Point> TunerSearch::halve() {
  constexpr double kShare = 0.4;
  constexpr std::size_t kStarts = 3;
  std::vector<Point> alive = coarse_points(grids_, limits_);
  // Plans close to what the device can hold come first, in case time runs out.
  std::ranges::stable_sort(alive, {}, [&](const Point& point) {
    return distance_from_resident(candidate_at(grids_, point, limits_), limits_);
  });
  for (;; length_ *= kLonger) {
    std::size_t done = 0;
    for (const Point& point : alive) {
      if (done > 0 && out_of(kShare)) break;
      report("coarse", candidate_at(grids_, point, limits_), done++, alive.size());
      static_cast<void>(look(point, length_));
    }
    std::erase_if(alive, [&](const Point& point) { return usable(point) <= 0; });
    std::ranges::stable_sort(alive, std::ranges::greater{}, [&](const Point& point) { return usable(point); });
    if (alive.size() <= kKept || out_of(kShare)) break;
    alive.resize(std::max(kKept, alive.size() / kThird));
  }
  alive.resize(std::min(alive.size(), kStarts));
  return alive;
}

void TunerSearch::climb(Point from) {
  constexpr double kShare = 0.6;
  while (true) {
    const auto near = neighbours(grids_, from, limits_);
    for (std::size_t i = 0; i < near.size() && !out_of(kShare); ++i) {
      if (usable_.contains(near[i])) continue;
      report("fine", candidate_at(grids_, near[i], limits_), i, near.size());
      static_cast<void>(look(near[i], length_));
    }
    if (near.empty()) return;
    const Point& best = *std::ranges::max_element(near, {}, [&](const Point& point) { return usable(point); });
    if (usable(best) <= kLittleBetter * usable(from)) return;
    from = best;
  }
}

/// The best plan of each schedule that is not far behind, then the next best of all.
std::vector<Point> TunerSearch::finalists() const {
  constexpr double kClose = 0.85;
  const std::vector<Point> points = best_looking();
  std::vector<Point> chosen;
  std::set<Schedule> schedules;
  for (const Point& point : points) {
    const bool first = schedules.insert(grids_[point.grid].base.schedule).second;
    if (first && usable(point) >= kPromising * usable(points.front())) chosen.push_back(point);
  }
  for (const Point& point : points) {
    if (chosen.size() >= kKept || usable(point) < kClose * usable(points.front())) break;
    if (std::ranges::find(chosen, point) == chosen.end()) chosen.push_back(point);
  }
  return chosen;
}

/// Searches a plan's rate; if there is already a best one, searches only for a better rate. Returns whether it is now
/// the best.
bool TunerSearch::try_rates(const Point& point) {
  const double best = best_ ? best_->result.load->measured_per_second : 0;
  if (tried_[point] || usable(point) < kPromising * best) return false;
  tried_[point] = true;
  const Candidate candidate = candidate_at(grids_, point, limits_);
  report("rates", candidate, searched_, 0);
  ++searched_;
  try {
    TrialResult found = best_ ? probe_.search(candidate, kBetter * best, kBetter * best)
                              : search_down(probe_, candidate, 0.7 * usable(point), usable(point) / kRange);
    if (!found.failure.empty()) failure_ = found.failure;
    if (!found.load || found.load->measured_per_second <= best) return false;
    best_ = Best{point, candidate, std::move(found)};
    return true;
  } catch (const Exception& error) {
    if (refusal_.empty()) refusal_ = error.what();
    return false;
  }
}

/// Hill-climbs by rate from the best plan, as long as a neighbour is better and there is time.
void TunerSearch::refine() {
  for (bool better = best_.has_value(); better;) {
    better = false;
    for (const Point& next : neighbours(grids_, best_->point, limits_)) {
      if (out_of(1)) return;
      if (!usable_.contains(next)) static_cast<void>(look(next, length_));
      if (try_rates(next)) {
        better = true;
        break;
      }
    }
  }
}

void TunerSearch::report(std::string_view phase, const Candidate& candidate, std::size_t done, std::size_t of) const {
  if (!options_.progress) return;
  options_.progress({phase, static_cast<std::uint32_t>(done), static_cast<std::uint32_t>(of), candidate.plan,
                     best_ ? best_->result.load->measured_per_second : 0});
}

}  // namespace headrace::serve::detail
