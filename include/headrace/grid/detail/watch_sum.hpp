#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/grid/detail/sweep_region.hpp"

namespace headrace::grid {

/// The bits of the absolute value, which order as those do; with NaN above all.
[[nodiscard]] HEADRACE_HD constexpr std::uint64_t bits_of_size(double value) noexcept {
  return std::bit_cast<std::uint64_t>(value) & ~(std::uint64_t{1} << 63);
}

/// What a thread adds up of the changes of a step, in the units of ChangeSums: to the last bit the same for every order
/// and for both ways of it. A change whose square is 2^64 units or more, or NaN, counts as anything: the largest tells.
/// @tparam Wide  by conversions to integers; otherwise in doubles alone, for at most 2^20 changes: on CUDA
/// multiprocessors convert a quarter as many values as they add (CUDA C++ programming guide, throughput of native
/// arithmetic instructions)
template <bool Wide>
struct WatchSum {
  std::uint64_t largest = 0;
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  /// @param root_scale  the root of units in 1
  HEADRACE_HD void add(double change, double root_scale) noexcept {
    constexpr double kPast = 18446744073709551616.0;  // 2^64
    const std::uint64_t bits = bits_of_size(change);
    if (bits > largest) largest = bits;
    const double scaled = change * root_scale;
    const double square = scaled * scaled;
    const std::uint64_t whole = square < kPast ? static_cast<std::uint64_t>(rint(square)) : 0;
    high += whole >> 32;
    low += whole & 0xFFFFFFFF;
  }
  [[nodiscard]] HEADRACE_HD ChangeSums whole() const noexcept { return {largest, high, low}; }
};

template <>
struct WatchSum<false> {
  std::uint64_t largest = 0;
  double high = 0;  ///< Whole multiples of 2^32, the sum of which is exact below 2^85,
  double low = 0;   ///< and whole numbers of either sign, up to 2^31.

  HEADRACE_HD void add(double change, double root_scale) noexcept {
    const std::uint64_t bits = bits_of_size(change);
    if (bits > largest) largest = bits;
    const double scaled = change * root_scale;
    const double square = scaled * scaled;
    // A number to which such a large one is added keeps nothing below the unit in the last place of that: 2^32, and 1.
    constexpr double kTo2To32 = 1.5 * 0x1p84;
    constexpr double kToWhole = 1.5 * 0x1p52;
    const double above = (square + kTo2To32) - kTo2To32;
    high += above;
    low += ((square - above) + kToWhole) - kToWhole;
  }
  [[nodiscard]] HEADRACE_HD ChangeSums whole() const noexcept {
    const bool is_exact = high < 0x1p85;  // not so for NaN
    if (!is_exact) return {largest, 0, 0};
    const auto below = static_cast<std::int64_t>(low);
    // 2^32 is borrowed where the rest is below 0.
    const std::int64_t carry = below >> 32;
    return {largest, static_cast<std::uint64_t>(static_cast<std::int64_t>(high * 0x1p-32) + carry),
            static_cast<std::uint64_t>(below - carry * (std::int64_t{1} << 32))};
  }
};

}  // namespace headrace::grid
