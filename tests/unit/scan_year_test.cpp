#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "fetch/calendar.hpp"

/// Days and years of timestamps, which scans find without a division, against division.
namespace headrace::fetch {

namespace {

template <TimeUnit Unit>
std::int64_t day_by_division(std::int64_t stamp) {
  return floor_divide(stamp, units_per_day(Unit));
}

/// A unit before a midnight, that midnight and a unit after it, of days apart from each other by a prime.
template <TimeUnit Unit>
void expect_days_and_years() {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kGreatest = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kStep = 97;
  const std::int64_t days_max = kGreatest / units_per_day(Unit);
  for (std::int64_t day = -days_max; day <= days_max; day += kStep) {
    for (std::int64_t near = -1; near <= 1; ++near) {
      const std::int64_t stamp = day * units_per_day(Unit) + near;
      const std::int64_t expected = day_by_division<Unit>(stamp);
      ASSERT_EQ(day_of_fine_stamp<Unit>(stamp), expected) << stamp;
      ASSERT_EQ(year_of_stamp<Unit>(stamp), year_of(expected)) << stamp;
    }
  }
  for (const std::int64_t stamp : {kLeast, kLeast + 1, kGreatest - 1, kGreatest}) {
    EXPECT_EQ(year_of_stamp<Unit>(stamp), year_of(day_by_division<Unit>(stamp))) << stamp;
  }
}

TEST(ScanYear, OfMicroseconds) { expect_days_and_years<TimeUnit::microsecond>(); }
TEST(ScanYear, OfNanoseconds) { expect_days_and_years<TimeUnit::nanosecond>(); }

TEST(ScanYear, ChangesAtNewYear) {
  constexpr std::int32_t kYears = 290'000;  // either way, nearly as many as microseconds count
  std::int64_t first = 0;                   // 1 January of the year
  for (std::int32_t year = 1970; year < 1970 + kYears; ++year) {
    ASSERT_EQ(year_of_near(static_cast<std::int32_t>(first)), year);
    ASSERT_EQ(year_of_near(static_cast<std::int32_t>(first - 1)), year - 1);
    const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    first += leap ? 366 : 365;
  }
  first = 0;
  for (std::int32_t year = 1970; year > 1970 - kYears; --year) {
    ASSERT_EQ(year_of_near(static_cast<std::int32_t>(first)), year);
    const std::int32_t before = year - 1;
    const bool leap = before % 4 == 0 && (before % 100 != 0 || before % 400 == 0);
    first -= leap ? 366 : 365;
  }
}

}  // namespace

}  // namespace headrace::fetch
