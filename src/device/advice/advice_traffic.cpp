#include "advice_traffic.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace headrace::detail {

namespace {

constexpr std::size_t kHotPart = 10;  ///< hot_tenth: one page in this many is hot.
constexpr double kHeatScale = 1e15;

/// Sums of k^-exponent over ranks from 1: exact for the first ranks, then the midpoint integral, whose relative error
/// is below 1e-6.
class RankSums {
 public:
  explicit RankSums(double exponent) : exponent_(exponent) {
    for (std::size_t k = 1; k < exact_.size(); ++k) {
      exact_[k] = exact_[k - 1] + std::pow(static_cast<double>(k), -exponent);
    }
  }

  /// The share of the first `ranks` ranks. A fraction of a rank counts in proportion.
  [[nodiscard]] double first(double ranks) const {
    const double whole = std::floor(ranks);
    return first_whole(whole) + (ranks - whole) * std::pow(whole + 1, -exponent_);
  }

 private:
  [[nodiscard]] double first_whole(double ranks) const {
    if (ranks < static_cast<double>(exact_.size())) return exact_[static_cast<std::size_t>(ranks)];
    return exact_.back() + integral(static_cast<double>(exact_.size()) - 0.5, ranks + 0.5);
  }
  [[nodiscard]] double integral(double from, double to) const {
    const double power = 1 - exponent_;
    if (std::abs(power) < 1e-9) return std::log(to / from);
    return (std::pow(to, power) - std::pow(from, power)) / power;
  }

  double exponent_;
  std::array<double, 257> exact_{};
};

/// A part over all pages, each with the same share of `bytes`.
Traffic even(double bytes, std::size_t page_count, bool random) {
  Traffic part;
  part.bytes = bytes;
  part.distinct_bytes = static_cast<double>(page_count) * kPage;
  part.random = random;
  part.share.assign(page_count, 1 / static_cast<double>(page_count));
  return part;
}

/// The hot pages are the last ones, because no placement favours those by its order.
std::vector<Traffic> hot_tenth(const AccessProfile& profile, double bytes) {
  const std::size_t pages = profile.page_count();
  std::vector<Traffic> parts{even(bytes, pages, false)};
  if (profile.hot_sweeps <= 0) return parts;
  const std::size_t hot = pages - pages * (kHotPart - 1) / kHotPart;
  Traffic part = even(bytes / static_cast<double>(kHotPart) * profile.hot_sweeps, hot, false);
  part.share.insert(part.share.begin(), pages - hot, 0);
  parts.push_back(std::move(part));
  return parts;
}

/// A well-mixed word for each number (SplitMix64, Steele, Lea and Flood 2014).
std::uint64_t mixed(std::uint64_t value) noexcept {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

/// Assigns popular rows to random pages one by one. The remaining rows differ so little in popularity that every page
/// gets the same share of them.
void scatter(Traffic& part, const RankSums& sums, double rows, double cached_rows, double exponent) {
  constexpr double kOneByOne = 32;  // rows per page
  const std::size_t pages = part.share.size();
  const double total = sums.first(rows);
  const double single = std::floor(std::min(rows, kOneByOne * static_cast<double>(pages)));
  const double rest = (total - sums.first(single)) / total / static_cast<double>(pages);
  const double cached_rest = std::max(0.0, sums.first(cached_rows) - sums.first(std::min(single, cached_rows))) / total;
  std::fill(part.share.begin(), part.share.end(), rest);
  std::fill(part.cached.begin(), part.cached.end(), cached_rest / static_cast<double>(pages));
  for (std::uint64_t rank = 1; rank <= static_cast<std::uint64_t>(single); ++rank) {
    const double share = std::pow(static_cast<double>(rank), -exponent) / total;
    const std::size_t page = mixed(rank) % pages;
    part.share[page] += share;
    if (static_cast<double>(rank) <= cached_rows) part.cached[page] += share;
  }
}

Traffic zipf(const AccessProfile& profile, double bytes, double cache_bytes) {
  const auto row = static_cast<double>(profile.row_bytes);
  const double rows = std::max(1.0, std::floor(bytes / row));
  const double cached_rows = std::min(rows, std::floor(cache_bytes / row));
  const RankSums sums(profile.exponent);
  Traffic part = even(bytes, profile.page_count(), true);
  part.cached.assign(profile.page_count(), 0);
  if (profile.order == RowOrder::scattered) {
    scatter(part, sums, rows, cached_rows, profile.exponent);
    return part;
  }
  const double total = sums.first(rows);
  double before = 0;
  double cached_before = 0;
  for (std::size_t page = 0; page < part.share.size(); ++page) {
    const double end = std::min(rows, static_cast<double>(page + 1) * kPage / row);
    const double upto = page + 1 == part.share.size() ? total : sums.first(end);
    const double cached_upto = sums.first(std::min(end, cached_rows));
    part.share[page] = (upto - before) / total;
    part.cached[page] = (cached_upto - cached_before) / total;
    before = upto;
    cached_before = cached_upto;
  }
  return part;
}

Traffic counted(const AccessProfile& profile, double bytes) {
  Traffic part = even(bytes, profile.page_count(), is_random(profile.pattern));
  double total = 0;
  std::size_t used = 0;
  for (const std::uint64_t count : profile.heat) {
    total += static_cast<double>(count);
    used += count > 0 ? 1 : 0;
  }
  if (total == 0) return part;  // no access was counted, so nothing is known
  std::transform(profile.heat.begin(), profile.heat.end(), part.share.begin(),
                 [total](std::uint64_t count) { return static_cast<double>(count) / total; });
  part.distinct_bytes = static_cast<double>(used) * kPage;
  return part;
}

}  // namespace

bool is_random(AccessPattern pattern) noexcept {
  return pattern == AccessPattern::random_warp || pattern == AccessPattern::zipf_rows;
}

std::vector<Traffic> traffic_of(const AccessProfile& profile, double cache_bytes) {
  const auto bytes = static_cast<double>(profile.bytes);
  if (!profile.heat.empty()) return {counted(profile, bytes)};
  switch (profile.pattern) {
    case AccessPattern::grid_stride:
    case AccessPattern::block_stride:
    case AccessPattern::random_warp: return {even(bytes, profile.page_count(), is_random(profile.pattern))};
    case AccessPattern::zipf_rows: return {zipf(profile, bytes, cache_bytes)};
    case AccessPattern::hot_tenth: break;
  }
  return hot_tenth(profile, bytes);
}

std::vector<std::uint64_t> heat_of(const std::vector<Traffic>& parts) {
  double total = 0;
  for (const Traffic& part : parts) total += part.bytes;
  std::vector<std::uint64_t> heat(parts.front().share.size());
  for (std::size_t page = 0; page < heat.size(); ++page) {
    double share = 0;
    for (const Traffic& part : parts) share += part.share[page] * part.bytes / total;
    heat[page] = static_cast<std::uint64_t>(share * kHeatScale);
  }
  return heat;
}

}  // namespace headrace::detail
