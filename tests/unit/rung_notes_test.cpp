#include "serve/rung_notes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace::serve::detail {
namespace {

using std::chrono::microseconds;
using ::testing::HasSubstr;
using ::testing::Not;

RungResult row(int number, double per_second, std::vector<Capacity> capacities) {
  RungResult result;
  result.rung = find_rung(std::to_string(number));
  result.load = measure::LoadResult{};
  result.load->measured_per_second = per_second;
  result.capacities = std::move(capacities);
  result.stages.samples = 100;
  result.stages.kernel = microseconds(12);
  return result;
}

TEST(RungNotes, NothingIsSaidOfARungThatIsHigher) {
  EXPECT_EQ(why_lower(row(8, 100, {}), row(9, 100, {})), "");
  RungResult none = row(9, 0, {});
  none.load.reset();
  EXPECT_EQ(why_lower(row(8, 100, {}), none), "");
  EXPECT_EQ(why_lower(none, row(9, 1, {})), "");
}

TEST(RungNotes, ASmallDifferenceIsChance) {
  EXPECT_EQ(why_lower(row(8, 100, {}), row(9, 98, {})), "2.0% below rung 8: within the resolution of a search");
}

TEST(RungNotes, CapacityAndStagesTellWhy) {
  RungResult now = row(10, 60e3, {{.threads = 1, .per_second = 80e3}, {.threads = 8, .per_second = 40e3}});
  now.stages.kernel = microseconds(31);
  const std::string note =
      why_lower(row(9, 100e3, {{.threads = 4, .streams_per_thread = 7, .per_second = 150e3}}), now);
  EXPECT_THAT(note, HasSubstr("40.0% below rung 9: without a latency bound it answers 80000/s with 1 thread, rung 9 "
                              "answers 150000/s with 4 threads x 7 streams"));
  EXPECT_THAT(note, HasSubstr("more threads slow each other down (80000/s with 1, 40000/s with 8)"));
  EXPECT_THAT(note, HasSubstr("its kernel takes 31 us, there 12 us"));
}

TEST(RungNotes, LatencyMayBeWhatIsLower) {
  const std::string note = why_lower(row(9, 100e3, {{.threads = 2, .per_second = 150e3}}),
                                     row(10, 60e3, {{.threads = 2, .per_second = 150e3}}));
  EXPECT_THAT(note, HasSubstr("as many (150000/s), but its p99 reaches the bound sooner"));
  EXPECT_THAT(note, Not(HasSubstr("its kernel")));
  EXPECT_THAT(note, Not(HasSubstr("slow each other down")));
}

TEST(RungNotes, FailuresAreDescribedByWhatMattersMost) {
  measure::LoadResult load;
  EXPECT_EQ(describe_failure(load, microseconds(500)), ": no query was answered");
  load.incoming_per_second = 1000;
  load.measured_per_second = 500;
  load.latency.count = 1;
  EXPECT_EQ(describe_failure(load, microseconds(500)), ": 500 of 1000 queries/s were answered");
  load.latency.p99 = microseconds(800);
  EXPECT_EQ(describe_failure(load, microseconds(500)), ": p99 was 0.8 ms at 1000 queries/s");
  load.failed = 2;
  EXPECT_EQ(describe_failure(load, microseconds(500)), ": 2 queries failed");
  load.wrong = 3;
  EXPECT_EQ(describe_failure(load, microseconds(500)), ": 3 wrong answers");
}

}  // namespace
}  // namespace headrace::serve::detail
