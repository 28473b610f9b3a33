#include "operators/zipf.hpp"

#include <algorithm>
#include <cmath>

#include "operators/sample.hpp"

namespace headrace::operators {

namespace {

/// (e^x - 1) / x and log(1 + x) / x, whose limit at 0 is 1.
double expm1_ratio(double x) noexcept { return std::abs(x) > 1e-8 ? std::expm1(x) / x : 1 + x / 2; }
double log1p_ratio(double x) noexcept { return std::abs(x) > 1e-8 ? std::log1p(x) / x : 1 - x / 2; }

/// Uniform over 0..1, excluding 1.
double uniform(std::uint64_t& state) noexcept { return static_cast<double>(next_random(state) >> 11) * 0x1p-53; }

}  // namespace

ZipfLaw::ZipfLaw(std::uint32_t ranks, double exponent) noexcept
    : exponent_(exponent),
      ranks_(ranks),
      area_first_(integral(1.5) - 1),
      area_last_(integral(ranks_ + 0.5)),
      sure_(2 - inverse(integral(2.5) - weight(2))) {}

double ZipfLaw::weight(double x) const noexcept { return exponent_ == 1 ? 1 / x : std::pow(x, -exponent_); }

double ZipfLaw::integral(double x) const noexcept {
  const double log_x = std::log(x);
  return exponent_ == 1 ? log_x : expm1_ratio((1 - exponent_) * log_x) * log_x;
}

double ZipfLaw::inverse(double area) const noexcept {
  if (exponent_ == 1) return std::exp(area);
  return std::exp(log1p_ratio(std::max((1 - exponent_) * area, -1.0)) * area);  // rounding must not take it below -1
}

std::uint32_t ZipfLaw::draw(std::uint64_t& state) const noexcept {
  while (true) {
    const double area = area_last_ + uniform(state) * (area_first_ - area_last_);
    const double x = inverse(area);
    const double rank = std::clamp(std::floor(x + 0.5), 1.0, ranks_);
    if (rank - x <= sure_ || area >= integral(rank + 0.5) - weight(rank)) return static_cast<std::uint32_t>(rank);
  }
}

}  // namespace headrace::operators
