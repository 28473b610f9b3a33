#include "fetch/program/year_table.hpp"

#include <algorithm>
#include <bit>

#include "fetch/program/calendar.hpp"

namespace headrace::fetch {

namespace {

constexpr std::int64_t kEraYears = 400;
/// Bits of a mean year that near_year() uses. With this many, the high word of a 32-bit product is precise enough.
constexpr int kYearBits = 20;

/// The day of 1 January.
std::int64_t first_day_of(std::int64_t year) {
  const std::int64_t before = year - 1;
  const std::int64_t leap_days =
      floor_divide(before, 4) - floor_divide(before, 100) + floor_divide(before, kEraYears) - 477;  // of 1 to 1969
  return 365 * (year - 1970) + leap_days;
}

}  // namespace

std::optional<YearTable> make_year_table(const ValueRange& stamps, std::int64_t units_per_day, std::size_t most) {
  const std::int64_t first = year_of(floor_divide(stamps.least, units_per_day));
  const std::int64_t last = year_of(floor_divide(stamps.greatest, units_per_day));
  const auto entries = static_cast<std::uint64_t>(last - first) + 2;
  if (last < first || entries > most) return {};
  YearTable table;
  table.first_year = first - 1;
  const auto start = [&](std::int64_t year) {
    bool over = false;
    const std::int64_t at = multiply(first_day_of(year), units_per_day, over);
    return over ? std::optional<std::int64_t>() : at;
  };
  const __int128 era = static_cast<__int128>(kEraDays) * units_per_day;
  const auto mean = static_cast<std::uint64_t>(era / kEraYears);
  table.shift = static_cast<std::uint8_t>(std::max(0, static_cast<int>(std::bit_width(mean)) - kYearBits));
  table.factor = static_cast<std::uint32_t>((static_cast<__int128>(kEraYears) << (32 + table.shift)) / era);
  // Makes the base late enough that no stamp is assigned to a year that has not begun.
  for (std::int64_t year = table.first_year; year <= last + 2; ++year) {
    const auto at = start(year);
    if (!at) return {};
    const __int128 years = year - table.first_year;
    const auto base = static_cast<std::int64_t>(*at - years * era / kEraYears);
    table.base = years == 0 ? base : std::max(table.base, base);
    if (years > 0 && year < last + 2) table.starts.push_back(*at);
  }
  // Checks that no stamp is assigned to a year that ended more than a year before it.
  for (std::int64_t year = first; year <= last + 2; ++year) {
    const auto since = static_cast<std::uint64_t>(*start(year) - table.base);
    const std::int64_t at_start = table.first_year + near_year(since, table.shift, table.factor);
    const std::int64_t before = table.first_year + near_year(since - 1, table.shift, table.factor);
    if ((since >> table.shift) >> 32 != 0 || at_start < year - 1 || at_start > year || before > year - 1) return {};
  }
  return table;
}

}  // namespace headrace::fetch
