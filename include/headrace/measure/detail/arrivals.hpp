#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/detail/clock.hpp"

namespace headrace::measure {

enum class ArrivalKind : std::uint8_t {
  poisson,   ///< Independent arrivals: exponential gaps, from a fixed seed.
  constant,  ///< Equal gaps.
  trace,     ///< The times of a file.
};

[[nodiscard]] std::string_view to_string(ArrivalKind kind) noexcept;
/// Throws UsageError that lists the known names.
[[nodiscard]] ArrivalKind parse_arrival_kind(std::string_view text);

/// Arrival times of queries, as offsets from the start of a run. One thread at a time.
class Arrivals {
 public:
  /// Throws UsageError unless `per_second` is finite and above 0.
  [[nodiscard]] static Arrivals poisson(double per_second, std::uint64_t seed);
  [[nodiscard]] static Arrivals constant(double per_second);
  /// `offsets` must not be empty and must ascend from 0 or later, else UsageError. At its end, the trace repeats.
  [[nodiscard]] static Arrivals trace(std::vector<Duration> offsets);

  /// The offset of the next arrival, never earlier than the previous one.
  [[nodiscard]] Duration next() noexcept {
    if (kind_ != ArrivalKind::poisson) return next_of_others();
    if (gap_at_ == kGaps) refill();
    at_ns_ += gap_ns_ * gaps_[gap_at_++];
    return Duration{static_cast<std::int64_t>(at_ns_)};
  }
  /// Arrivals per second in the long run.
  [[nodiscard]] double per_second() const noexcept { return per_second_; }

 private:
  Arrivals(ArrivalKind kind, double per_second, std::uint64_t seed);

  ArrivalKind kind_;
  double per_second_;
  double gap_ns_;
  double at_ns_ = 0;
  [[nodiscard]] Duration next_of_others() noexcept;
  /// Draws kGaps exponential gaps of mean 1 at once, in a loop that the compiler vectorises. Drawing one at a time
  /// would take a generator as long as offering a query.
  void refill() noexcept;

  static constexpr std::size_t kGaps = 512;
  std::uint64_t random_;  ///< State of SplitMix64.
  std::size_t gap_at_ = kGaps;
  std::vector<double> gaps_;
  std::vector<Duration> trace_;
  std::size_t trace_at_ = 0;
  Duration trace_base_{};
};

/// Reads a trace: one arrival time in seconds per line, ascending; empty lines and lines that start with # are skipped.
/// Throws SystemError if the file cannot be read, DataError that names file and line if a line is not an arrival time.
[[nodiscard]] std::vector<Duration> read_trace(const std::string& path);

}  // namespace headrace::measure
