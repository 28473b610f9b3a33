#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>

#include "fetch/program/calendar.hpp"
#include "fetch/program/year_table.hpp"

/// Days and years of timestamps, which scans find without a division, checked against division.
namespace headrace::fetch {

namespace {

template <TimeUnit Unit>
std::int64_t day_by_division(std::int64_t stamp) {
  return floor_divide(stamp, units_per_day(Unit));
}

/// The unit before a midnight, the midnight, and the unit after it, on days a prime number apart.
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
  constexpr std::int32_t kYears = 290'000;  // in both directions, nearly as many as microseconds can express
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

/// The year of a stamp as the kernel finds it; empty if the stamp is outside the table.
std::optional<std::int64_t> year_by(const YearTable& table, std::int64_t stamp) {
  const std::uint64_t since = static_cast<std::uint64_t>(stamp) - static_cast<std::uint64_t>(table.base);
  const std::uint32_t near = near_year(since, table.shift, table.factor);
  if ((since >> 32) >> table.shift != 0 || near >= table.starts.size()) return {};
  return table.first_year + near + (stamp >= table.starts[near] ? 1 : 0);
}

class ScanYearTable : public ::testing::TestWithParam<std::int64_t> {};  // units of a day

TEST_P(ScanYearTable, KnowsTheYearOfEveryStampOfItsRange) {
  const std::int64_t units = GetParam();
  constexpr std::size_t kMost = 128;
  for (const std::int64_t first : {1680, 1899, 1969, 1970, 1999, 2000, 2009}) {
    for (const std::int64_t years : {1, 2, 7, 40, 127}) {
      std::int64_t day = -120'000;
      while (year_of(day) < first) ++day;
      const std::int64_t least = day;
      while (year_of(day) < first + years) ++day;
      const auto table = make_year_table({least * units, day * units - 1}, units, kMost);
      ASSERT_TRUE(table.has_value()) << first << " and " << years << " years";
      for (std::int64_t at = least - 400; at < day + 800; ++at) {
        for (const std::int64_t stamp : {at * units, at * units + units / 2, at * units + units - 1}) {
          const auto found = year_by(*table, stamp);
          if (found) {
            ASSERT_EQ(*found, year_of(at)) << stamp;
          }
          ASSERT_TRUE(found || at < least || at >= day) << stamp;
        }
      }
      for (const std::int64_t far :
           {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(), table->base - 1}) {
        const auto found = year_by(*table, far);
        ASSERT_TRUE(!found || *found == year_of(floor_divide(far, units))) << far;
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Units, ScanYearTable,
                         ::testing::Values(1, units_per_day(TimeUnit::second), units_per_day(TimeUnit::millisecond),
                                           units_per_day(TimeUnit::microsecond), units_per_day(TimeUnit::nanosecond)));

TEST(ScanYear, ThereIsNoTableOfTooManyYearsNorWhereTheyEnd) {
  const std::int64_t units = units_per_day(TimeUnit::nanosecond);
  EXPECT_TRUE(make_year_table({0, 126 * 365 * units}, units, 127));
  EXPECT_FALSE(make_year_table({0, 126 * 365 * units}, units, 126));
  EXPECT_FALSE(make_year_table({0, std::numeric_limits<std::int64_t>::max()}, units, 1000));
  EXPECT_FALSE(make_year_table({std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()},
                               units_per_day(TimeUnit::second), 1000));
}

}  // namespace

}  // namespace headrace::fetch
