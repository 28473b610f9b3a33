#include "headrace/measure/arrivals.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <fstream>

#include "headrace/base/error.hpp"

namespace headrace::measure {

namespace {

constexpr double kNanosecondsPerSecond = 1e9;

double checked_rate(double per_second) {
  if (!std::isfinite(per_second) || per_second <= 0) {
    throw UsageError(fmt::format("a rate must be above 0 queries/s, not {}", per_second));
  }
  return per_second;
}

}  // namespace

std::string_view to_string(ArrivalKind kind) noexcept {
  switch (kind) {
    case ArrivalKind::poisson: return "poisson";
    case ArrivalKind::constant: return "constant";
    case ArrivalKind::trace: return "trace";
  }
  return "unknown";
}

Arrivals::Arrivals(ArrivalKind kind, double per_second, std::uint64_t seed)
    : kind_(kind), per_second_(per_second), gap_ns_(kNanosecondsPerSecond / per_second), random_(seed) {}

Arrivals Arrivals::poisson(double per_second, std::uint64_t seed) {
  return {ArrivalKind::poisson, checked_rate(per_second), seed};
}

Arrivals Arrivals::constant(double per_second) { return {ArrivalKind::constant, checked_rate(per_second), 0}; }

Arrivals Arrivals::trace(std::vector<Duration> offsets) {
  if (offsets.empty()) throw UsageError("a trace must hold at least one arrival");
  if (offsets.front() < Duration::zero()) throw UsageError("a trace must start at 0 or later");
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] < offsets[i - 1]) {
      throw UsageError(fmt::format("a trace must ascend, but arrival {} is before arrival {}", i, i - 1));
    }
  }
  if (offsets.back() == Duration::zero()) throw UsageError("a trace must last longer than 0 s");
  const auto count = static_cast<double>(offsets.size());
  Arrivals arrivals(ArrivalKind::trace, count * kNanosecondsPerSecond / static_cast<double>(offsets.back().count()), 0);
  arrivals.trace_ = std::move(offsets);
  return arrivals;
}

Duration Arrivals::next() noexcept {
  if (kind_ == ArrivalKind::trace) {
    if (trace_at_ == trace_.size()) {
      trace_base_ += trace_.back();
      trace_at_ = 0;
    }
    return trace_base_ + trace_[trace_at_++];
  }
  if (kind_ == ArrivalKind::constant) {
    at_ns_ += gap_ns_;
  } else {
    // 53 random bits in (0, 1]: the logarithm is finite.
    const double uniform = static_cast<double>((random_() >> 11) + 1) * 0x1p-53;
    at_ns_ -= gap_ns_ * std::log(uniform);
  }
  return Duration{static_cast<std::int64_t>(at_ns_)};
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
