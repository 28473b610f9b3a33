#pragma once

#include <cstdint>

namespace headrace::ingest {

/// A word whose every bit depends on every bit of `value` (SplitMix64's finalizer).
[[nodiscard]] constexpr std::uint64_t mix64(std::uint64_t value) noexcept {
  value += 0x9E3779B97F4A7C15U;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9U;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBU;
  return value ^ (value >> 31);
}

/// SplitMix64: the same numbers for the same seed everywhere, unlike the standard library's distributions.
class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) noexcept : state_(seed) {}

  constexpr std::uint64_t next() noexcept {
    const std::uint64_t value = mix64(state_);
    state_ += 0x9E3779B97F4A7C15U;
    return value;
  }
  /// From 0 to below 1.
  constexpr double uniform() noexcept { return static_cast<double>(next() >> 11) * 0x1p-53; }
  /// From 0 to below `bound`, which is far below 2^64.
  constexpr std::uint64_t below(std::uint64_t bound) noexcept { return next() % bound; }

 private:
  std::uint64_t state_;
};

}  // namespace headrace::ingest
