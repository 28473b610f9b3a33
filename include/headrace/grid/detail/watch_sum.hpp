#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/grid/detail/sweep_region.hpp"

namespace headrace::grid {

/// The bits of the absolute value, which order as the values do, with NaN above all.
[[nodiscard]] HEADRACE_HD constexpr std::uint64_t bits_of_size(double value) noexcept {
  return std::bit_cast<std::uint64_t>(value) & ~(std::uint64_t{1} << 63);
}

/// A thread's sum of the changes of a step, in the units of ChangeSums. It is equal to the last bit for every order and
/// for both implementations. A change whose square is 2^64 units or more, or NaN, adds an arbitrary value; `largest`
/// reveals it.
/// @tparam Wide  uses conversions to integers; otherwise doubles alone, for at most 2^20 changes: CUDA multiprocessors
/// convert a quarter as many values as they add (CUDA C++ programming guide, throughput of native arithmetic
/// instructions)
template <bool Wide>
struct WatchSum {
  std::uint64_t largest = 0;
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  /// @param root_scale  the square root of the number of units in 1
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
  double high = 0;  ///< Sum of whole multiples of 2^32; exact below 2^85.
  double low = 0;   ///< Sum of signed integers, up to 2^31 each.

  HEADRACE_HD void add(double change, double root_scale) noexcept {
    const std::uint64_t bits = bits_of_size(change);
    if (bits > largest) largest = bits;
    const double scaled = change * root_scale;
    const double square = scaled * scaled;
    // Adding and subtracting such a large number rounds to a multiple of its unit in the last place: 2^32, and 1.
    constexpr double kTo2To32 = 1.5 * 0x1p84;
    constexpr double kToWhole = 1.5 * 0x1p52;
    const double above = (square + kTo2To32) - kTo2To32;
    high += above;
    low += ((square - above) + kToWhole) - kToWhole;
  }
  [[nodiscard]] HEADRACE_HD ChangeSums whole() const noexcept {
    const bool is_exact = high < 0x1p85;  // false for NaN
    if (!is_exact) return {largest, 0, 0};
    const auto below = static_cast<std::int64_t>(low);
    // Borrows from `high` if the rest is negative.
    const std::int64_t carry = below >> 32;
    return {largest, static_cast<std::uint64_t>(static_cast<std::int64_t>(high * 0x1p-32) + carry),
            static_cast<std::uint64_t>(below - carry * (std::int64_t{1} << 32))};
  }
};

}  // namespace headrace::grid
