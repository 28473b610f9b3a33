#include "measure/access_draws.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace headrace::measure {
namespace {

/// How often each of `count` numbers comes up.
template <class At>
std::vector<std::uint32_t> tally(std::uint64_t draws, std::uint64_t count, At at) {
  std::vector<std::uint32_t> seen(count);
  for (std::uint64_t draw = 0; draw < draws; ++draw) ++seen.at(at(draw));
  return seen;
}

TEST(ScatterTest, EveryNumberComesOnce) {
  for (const std::uint64_t count : {1, 2, 3, 5, 64, 1000, 4097}) {
    const Scatter scatter = Scatter::over(count);
    for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{7}, ~std::uint64_t{0}}) {
      const auto seen = tally(count, count, [&](std::uint64_t i) { return scatter.at(i, seed); });
      EXPECT_EQ(seen, std::vector<std::uint32_t>(count, 1)) << count << ", seed " << seed;
    }
  }
}

TEST(ScatterTest, SeedsGiveOtherOrders) {
  const Scatter scatter = Scatter::over(1000);
  std::uint32_t same = 0;
  std::uint32_t in_place = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    if (scatter.at(i, 1) == scatter.at(i, 2)) ++same;
    if (scatter.at(i, 1) == i) ++in_place;
  }
  EXPECT_LT(same, 20U);
  EXPECT_LT(in_place, 20U);
}

TEST(RandomRegionsTest, EveryRegionComesOnceAndEveryDrawGoesToAnotherPage) {
  constexpr std::uint64_t kPages = 37;
  constexpr std::uint64_t kRegions = 32;
  const RandomRegions regions{.pages = Scatter::over(kPages), .page_regions = kRegions, .seed = 3};
  ASSERT_EQ(regions.draw_count(), kPages * kRegions);
  const auto seen = tally(regions.draw_count(), kPages * kRegions, [&](std::uint64_t i) { return regions.at(i); });
  EXPECT_EQ(seen, std::vector<std::uint32_t>(kPages * kRegions, 1));
  for (std::uint64_t round = 0; round < kRegions; ++round) {
    const auto pages =
        tally(kPages, kPages, [&](std::uint64_t i) { return regions.at(round * kPages + i) / kRegions; });
    EXPECT_EQ(pages, std::vector<std::uint32_t>(kPages, 1)) << "round " << round;
  }
}

TEST(ZipfRowsTest, RanksComeByTheirLaw) {
  constexpr std::uint64_t kRows = 1000;
  constexpr std::uint64_t kDraws = 400'000;
  const ZipfRows rows = ZipfRows::over(kRows, kDraws, false, 11);
  const auto seen = tally(kDraws, kRows, [&](std::uint64_t draw) { return rows.at(draw); });
  double harmonic = 0;
  for (std::uint64_t k = 1; k <= kRows; ++k) harmonic += 1.0 / static_cast<double>(k);
  double chi_squared = 0;
  for (std::uint64_t k = 1; k <= kRows; ++k) {
    const double expected = static_cast<double>(kDraws) / static_cast<double>(k) / harmonic;
    const double off = seen[k - 1] - expected;
    chi_squared += off * off / expected;
  }
  // 999 degrees of freedom: mean 999, standard deviation 44.7. The draws are reproducible.
  EXPECT_GT(chi_squared, 999 - 5 * 44.7);
  EXPECT_LT(chi_squared, 999 + 5 * 44.7);
}

TEST(ZipfRowsTest, ScatteredRowsAreTheSameRanksElsewhere) {
  constexpr std::uint64_t kRows = 4096;
  const ZipfRows ordered = ZipfRows::over(kRows, 1000, false, 5);
  const ZipfRows scattered = ZipfRows::over(kRows, 1000, true, 5);
  const ZipfRows other_draws = ZipfRows::over(kRows, 1000, true, 6);
  std::vector<std::int64_t> place(kRows, -1);
  std::uint32_t unmoved = 0;
  for (std::uint64_t draw = 0; draw < 1000; ++draw) {
    ASSERT_EQ(ordered.at(draw), scattered.rank(draw));
    place[scattered.rank(draw)] = static_cast<std::int64_t>(scattered.at(draw));
    if (scattered.rank(draw) == scattered.at(draw)) ++unmoved;
  }
  EXPECT_LT(unmoved, 200U);
  for (std::uint64_t draw = 0; draw < 1000; ++draw) {
    const std::int64_t known = place[other_draws.rank(draw)];
    if (known >= 0) {
      EXPECT_EQ(static_cast<std::int64_t>(other_draws.at(draw)), known) << "rows stay";
    }
  }
}

TEST(ZipfRowsTest, OneRowIsAlwaysDrawn) {
  const ZipfRows rows = ZipfRows::over(1, 10, true, 1);
  for (std::uint64_t draw = 0; draw < 10; ++draw) EXPECT_EQ(rows.at(draw), 0U);
}

}  // namespace
}  // namespace headrace::measure
