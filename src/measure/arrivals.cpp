#include "headrace/measure/detail/arrivals.hpp"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <fstream>
#include <numbers>

#include "base/names.hpp"
#include "headrace/base/error.hpp"

namespace headrace::measure {

namespace {

constexpr auto kKinds = names_of<ArrivalKind>(
    "an arrival process",
    {{ArrivalKind::poisson, "poisson"}, {ArrivalKind::constant, "constant"}, {ArrivalKind::trace, "trace"}});

constexpr double kNanosecondsPerSecond = 1e9;

constexpr std::uint64_t kGoldenGamma = 0x9E3779B97F4A7C15ULL;

/// ln(x) for a normal x > 0, to 1e-9: the exponent, and the series of 2 atanh(t) for the mantissa, with t at most
/// 0.172. It has no branches or calls, so that the compiler vectorises loops over it, unlike loops over std::log.
double natural_logarithm(double x) {
  constexpr std::uint64_t kSqrtHalf = 0x3FE6A09E667F3BCDULL;
  constexpr std::uint64_t kMantissa = 0x000FFFFFFFFFFFFFULL;
  // Subtract sqrt(1/2), so that the mantissa lies in [sqrt(1/2), sqrt(2)).
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x) - kSqrtHalf;
  const auto exponent = static_cast<double>(static_cast<std::int64_t>(bits) >> 52);
  const auto mantissa = std::bit_cast<double>((bits & kMantissa) + kSqrtHalf);
  const double t = (mantissa - 1) / (mantissa + 1);
  const double u = t * t;
  const double series = 1 + u * (1.0 / 3 + u * (1.0 / 5 + u * (1.0 / 7 + u * (1.0 / 9 + u * (1.0 / 11)))));
  return exponent * std::numbers::ln2 + 2 * t * series;
}

double checked_rate(double per_second) {
  if (!std::isfinite(per_second) || per_second <= 0) {
    throw UsageError(fmt::format("a rate must be above 0 queries/s, not {}", per_second));
  }
  return per_second;
}

}  // namespace

std::string_view to_string(ArrivalKind kind) noexcept { return kKinds.of(kind); }
ArrivalKind parse_arrival_kind(std::string_view text) { return kKinds.parse(text); }

Arrivals::Arrivals(ArrivalKind kind, double per_second, std::uint64_t seed)
    : kind_(kind), per_second_(per_second), gap_ns_(kNanosecondsPerSecond / per_second), random_(seed), gaps_(kGaps) {}

Arrivals Arrivals::poisson(double per_second, std::uint64_t seed) {
  return {ArrivalKind::poisson, checked_rate(per_second), seed};
}

Arrivals Arrivals::constant(double per_second) { return {ArrivalKind::constant, checked_rate(per_second), 0}; }

Arrivals Arrivals::trace(std::vector<Duration> offsets) {
  if (offsets.empty()) throw UsageError("a trace must hold at least one arrival");
  if (offsets.front() < Duration::zero()) throw UsageError("a trace must start at 0 or later");
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] < offsets[i - 1]) {
      throw UsageError(
          fmt::format("a trace must be in ascending order, but arrival {} is before arrival {}", i, i - 1));
    }
  }
  if (offsets.back() == Duration::zero()) throw UsageError("a trace must last longer than 0 s");
  const auto count = static_cast<double>(offsets.size());
  Arrivals arrivals(ArrivalKind::trace, count * kNanosecondsPerSecond / static_cast<double>(offsets.back().count()), 0);
  arrivals.trace_ = std::move(offsets);
  return arrivals;
}

void Arrivals::refill() noexcept {
  for (std::size_t i = 0; i < kGaps; ++i) {
    // SplitMix64 (Steele et al. 2014). 53 random bits in (0, 1]: the logarithm is finite.
    std::uint64_t z = random_ + (i + 1) * kGoldenGamma;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    z ^= z >> 31;
    gaps_[i] = -natural_logarithm(static_cast<double>((z >> 11) + 1) * 0x1p-53);
  }
  random_ += kGaps * kGoldenGamma;
  gap_at_ = 0;
}

Duration Arrivals::next_of_others() noexcept {
  if (kind_ == ArrivalKind::constant) {
    at_ns_ += gap_ns_;
    return Duration{static_cast<std::int64_t>(at_ns_)};
  }
  if (trace_at_ == trace_.size()) {
    trace_base_ += trace_.back();
    trace_at_ = 0;
  }
  return trace_base_ + trace_[trace_at_++];
}

std::vector<Duration> read_trace(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw_errno(fmt::format("opening the trace {}", path));
  std::vector<Duration> offsets;
  std::string line;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    if (line.empty() || line.front() == '#') continue;
    double seconds = 0;
    const char* const end = line.data() + line.size();
    const auto [rest, status] = std::from_chars(line.data(), end, seconds);
    if (status != std::errc{} || rest != end || !(seconds >= 0) || seconds > 1e9) {
      throw DataError(fmt::format("{}:{}: '{}' is not an arrival time in seconds", path, number, line));
    }
    offsets.emplace_back(static_cast<std::int64_t>(seconds * kNanosecondsPerSecond));
  }
  return offsets;
}

}  // namespace headrace::measure
