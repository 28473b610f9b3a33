#include "headrace/ingest/detail/intervals.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/sanitizers.hpp"

namespace headrace::ingest {
namespace {

/// Accepts bytes into both an Intervals and a plain map, and compares the two.
class Both {
 public:
  explicit Both(std::size_t bytes) : there_(bytes) {}

  void accept(std::uint64_t begin, std::uint64_t end, std::size_t takes_max = ~std::size_t{0}) {
    std::vector<Interval> taken;
    const auto accepted = intervals_.accept(begin, end, [&](std::uint64_t from, std::uint64_t to) {
      if (taken.size() == takes_max) return false;
      taken.push_back({from, to});
      return true;
    });
    std::uint64_t bytes = 0;
    std::uint64_t last = begin;
    for (const Interval& piece : taken) {
      ASSERT_LT(piece.begin, piece.end);
      ASSERT_GE(piece.begin, last);
      ASSERT_LE(piece.end, end);
      last = piece.end;
      bytes += piece.end - piece.begin;
      for (std::uint64_t i = piece.begin; i < piece.end; ++i) {
        ASSERT_FALSE(there_[i]) << i;
        there_[i] = true;
      }
    }
    EXPECT_EQ(accepted.bytes, bytes);
    for (std::uint64_t i = begin; i < end && i < accepted.end; ++i) ASSERT_TRUE(there_[i]) << i;
    compare();
  }

  void compare() const {
    std::uint64_t next = 0;
    while (next < there_.size() && there_[next]) ++next;
    ASSERT_EQ(intervals_.next(), next);
    std::uint32_t count = 0;
    for (std::uint64_t i = next; i < there_.size(); ++i) {
      ASSERT_EQ(intervals_.find(i) != Intervals::kMax, there_[i]) << i;
      if (there_[i] && !there_[i - 1]) ++count;
    }
    compare_first_accepted();
    ASSERT_EQ(intervals_.count(), count);
    for (std::uint32_t i = 0; i < count; ++i) {
      ASSERT_LT(intervals_[i].begin, intervals_[i].end);
      ASSERT_GT(intervals_[i].begin, i == 0 ? next : intervals_[i - 1].end);
    }
    ASSERT_EQ(intervals_.highest(), count == 0 ? next : intervals_[count - 1].end);
  }

  [[nodiscard]] const Intervals& intervals() const { return intervals_; }

 private:
  void compare_first_accepted() const {
    for (std::uint64_t begin = 0; begin < there_.size(); begin += 37) {
      const std::uint64_t end = std::min<std::uint64_t>(there_.size(), begin + 1 + begin % 90);
      std::uint64_t first = begin;
      while (first < end && !there_[first]) ++first;
      std::uint64_t last = first;
      while (last < end && there_[last]) ++last;
      const Interval found = intervals_.first_accepted(begin, end);
      ASSERT_EQ(found.end - found.begin, last - first) << begin;
      if (last != first) {
        ASSERT_EQ(found.begin, first);
      }
    }
  }

  Intervals intervals_;
  std::vector<bool> there_;
};

TEST(IngestIntervals, ArbitraryRangesEqualAPlainMap) {
  for (std::uint32_t seed = 0; seed < headrace::testing::rounds(60); ++seed) {
    std::mt19937 random(seed);
    constexpr std::size_t kBytes = 2000;
    Both both(kBytes);
    const std::uint64_t longest = 1 + random() % 200;
    for (int i = 0; i < 300; ++i) {
      const std::uint64_t begin = random() % kBytes;
      const std::uint64_t end = std::min<std::uint64_t>(kBytes, begin + random() % longest);
      both.accept(begin, end, random() % 8 == 0 ? random() % 3 : ~std::size_t{0});
      if (HasFatalFailure()) return;
    }
    both.accept(0, kBytes);
    EXPECT_EQ(both.intervals().next(), kBytes);
  }
}

TEST(IngestIntervals, OneTooManyIsNotAccepted) {
  Both both(4096);
  for (std::uint64_t i = 0; i < Intervals::kMax + 3; ++i) both.accept(10 + 10 * i, 15 + 10 * i);
  EXPECT_EQ(both.intervals().count(), Intervals::kMax);
  both.accept(5, 20);  // merges with neighbours, and needs no other
  both.accept(0, 3);   // in order, so it needs none
  both.accept(3, 4096);
  EXPECT_EQ(both.intervals().count(), 0U);
  EXPECT_EQ(both.intervals().next(), 4096U);
}

}  // namespace
}  // namespace headrace::ingest
