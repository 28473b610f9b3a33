#pragma once

#include <cstdint>

#include "fetch/program/rows.hpp"

/// Years of days and of timestamps.
namespace headrace::fetch {

[[nodiscard]] HEADRACE_HD constexpr std::int64_t units_per_day(TimeUnit unit) noexcept {
  switch (unit) {
    case TimeUnit::second: return 86'400;
    case TimeUnit::millisecond: return 86'400'000;
    case TimeUnit::microsecond: return 86'400'000'000;
    case TimeUnit::nanosecond: return 86'400'000'000'000;
  }
  return 1;
}

/// The year of a day within an era of 400 years that starts in March of a year divisible by 400. Source: Howard
/// Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days.
[[nodiscard]] HEADRACE_HD constexpr std::uint32_t year_of_era(std::uint32_t day) noexcept {
  const std::uint32_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
  const std::uint32_t day_of_year = day - (365 * year + year / 4 - year / 100);
  return year + (day_of_year >= 306 ? 1 : 0);  // January and February belong to the next year
}

inline constexpr std::uint32_t kEraDays = 146'097;
inline constexpr std::uint32_t kEpochDay = 719'468;  ///< 1970-01-01, from 0000-03-01.

/// The year of a day counted from 1970-01-01, in the proleptic Gregorian calendar, for days within 2^62.
[[nodiscard]] HEADRACE_HD constexpr std::int64_t year_of(std::int64_t days) noexcept {
  const std::int64_t shifted = days + kEpochDay;
  const std::int64_t era = floor_divide(shifted, kEraDays);
  return era * 400 + year_of_era(static_cast<std::uint32_t>(shifted - era * kEraDays));
}
/// The same in 32 bits, for the days that a timestamp in microseconds can have. The product with 2^32 / 1461 has the
/// year of the century in its high word and the day of the year in its low word: C. Neri and L. Schneider, "Euclidean
/// affine functions and their application to calendar algorithms", 2022.
[[nodiscard]] HEADRACE_HD constexpr std::int32_t year_of_near(std::int32_t days) noexcept {
  constexpr std::uint32_t kErasBefore = 740;            // makes every day positive
  constexpr std::uint32_t kCenturyQuarters = kEraDays;  // of days
  constexpr std::uint32_t kYearFactor = 2'939'745;      // 2^32 / 1461, rounded up
  constexpr std::uint32_t kJanuary = 306 * 4 * kYearFactor;
  const std::uint32_t quarters = 4 * (static_cast<std::uint32_t>(days) + kEpochDay + kErasBefore * kEraDays) + 3;
  const std::uint32_t century = quarters / kCenturyQuarters;
  const std::uint64_t years = std::uint64_t{kYearFactor} * ((quarters - century * kCenturyQuarters) | 3);
  const std::uint32_t next = static_cast<std::uint32_t>(years) >= kJanuary ? 1 : 0;
  return static_cast<std::int32_t>(100 * century + static_cast<std::uint32_t>(years >> 32) + next - 400 * kErasBefore);
}

/// The day of a timestamp, for units so fine that a day is a multiple of a large power of two of them. Multiplies by a
/// reciprocal, because vector units have no division. The timestamp is reduced to parts of a day, fewer than 2^51; the
/// middle of a part is farther from midnight than the rounding error of the quotient.
template <TimeUnit Unit>
[[nodiscard]] HEADRACE_HD inline std::int32_t day_of_fine_stamp(std::int64_t stamp) noexcept {
  constexpr int kShift = Unit == TimeUnit::microsecond ? 13 : 16;
  constexpr std::int64_t kParts = units_per_day(Unit) >> kShift;
  static_assert(kParts << kShift == units_per_day(Unit));
  constexpr double kDays = 1.0 / static_cast<double>(kParts);
  constexpr double kWhole = 6'755'399'441'055'744.0;  // 1.5 * 2^52: the low bits of a double near it are an integer
  const double parts = as_double((stamp >> kShift) + as_bits(kWhole)) - kWhole;
  // Subtracts half a day, so that the nearest integer is the day.
  return static_cast<std::int32_t>(as_bits(parts * kDays + (0.5 * kDays - 0.5) + kWhole));
}

/// The year of a timestamp.
template <TimeUnit Unit>
[[nodiscard]] HEADRACE_HD inline std::int64_t year_of_stamp(std::int64_t stamp) noexcept {
  if constexpr (Unit == TimeUnit::second || Unit == TimeUnit::millisecond) {
    return year_of(floor_divide(stamp, units_per_day(Unit)));
  } else {
    return year_of_near(day_of_fine_stamp<Unit>(stamp));
  }
}

/// The number of years from a YearTable's first year to a stamp, or one less.
[[nodiscard]] HEADRACE_HD inline std::uint32_t near_year(std::uint64_t since, std::uint32_t shift,
                                                         std::uint32_t factor) noexcept {
  const auto part = static_cast<std::uint32_t>(since >> shift);
#if defined(__CUDA_ARCH__)
  return __umulhi(part, factor);
#else
  return static_cast<std::uint32_t>(std::uint64_t{part} * factor >> 32);
#endif
}

}  // namespace headrace::fetch
