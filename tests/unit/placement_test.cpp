#include "headrace/device/placement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "headrace/base/error.hpp"

namespace headrace {
namespace {

Place cpu(int number) { return Place::parse("cpu:" + std::to_string(number)); }

/// "DDH": the device cpu:0, the host, and other devices by number.
std::string picture(const std::vector<Place>& pages) {
  std::string text;
  for (const Place place : pages) {
    if (place.is_host()) {
      text += 'H';
    } else {
      text += place == cpu(0) ? 'D' : static_cast<char>('0' + place.device()->ordinal());
    }
  }
  return text;
}

std::size_t count(const std::vector<Place>& pages, Place place) {
  return static_cast<std::size_t>(std::count(pages.begin(), pages.end(), place));
}

/// In every prefix the share of `place` is within one page of its part.
void expect_even(const std::vector<Place>& pages, const std::vector<Share>& shares) {
  double total = 0;
  for (const Share& share : shares) total += share.weight;
  for (const Share& share : shares) {
    std::size_t dealt = 0;
    for (std::size_t page = 0; page < pages.size(); ++page) {
      dealt += pages[page] == share.place ? 1 : 0;
      const double part = static_cast<double>(page + 1) * share.weight / total;
      ASSERT_LT(std::abs(static_cast<double>(dealt) - part), 1.0)
          << share.place.name() << ", weight " << share.weight << " of " << total << ", first " << page + 1 << " pages";
    }
  }
}

template <class Body>
void expect_refused(Body body, const char* why) {
  try {
    body();
    FAIL() << "must be refused: " << why;
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr(why));
  }
}

TEST(PlaceTest, NamesParseBack) {
  for (const char* name : {"host", "cpu:0", "cpu:7"}) EXPECT_EQ(Place::parse(name).name(), name);
  EXPECT_TRUE(Place::parse("host").is_host());
  EXPECT_FALSE(Place::parse("host").device());
  EXPECT_EQ(Place::parse("cpu"), Place::on(Device::parse("cpu:0")));
  EXPECT_NE(Place::host(), cpu(0));
  EXPECT_NE(cpu(0), cpu(1));
}

TEST(PlaceTest, UnknownPlacesAreNamed) {
  expect_refused([] { static_cast<void>(Place::parse("moon")); },
                 "must be 'host' or a device: there is no device 'moon'");
  expect_refused([] { static_cast<void>(Place::parse("")); }, "there is no device ''");
}

TEST(PlacementTest, AllInOnePlace) {
  EXPECT_EQ(picture(Placement::all(cpu(0)).pages(4)), "DDDD");
  EXPECT_EQ(picture(Placement::all(Place::host()).pages(3)), "HHH");
}

TEST(PlacementTest, InterleavedAsSeedDocument004) {
  EXPECT_EQ(picture(Placement::interleaved({{cpu(0), 2}, {Place::host(), 1}}).pages(9)), "DDHDDHDDH");
  EXPECT_EQ(picture(Placement::interleaved({{cpu(0), 1}, {Place::host(), 1}}).pages(5)), "DHDHD");
  EXPECT_EQ(picture(Placement::interleaved({{cpu(0), 0}, {Place::host(), 7}}).pages(3)), "HHH");
  EXPECT_EQ(picture(Placement::interleaved({{cpu(0), 4000000000U}, {Place::host(), 2000000000U}}).pages(6)), "DDHDDH");
}

TEST(PlacementTest, InterleavedIsEvenInEveryPrefix) {
  std::mt19937 random(4);
  for (int round = 0; round < 200; ++round) {
    std::vector<Share> shares{{Place::host(), 1 + static_cast<std::uint32_t>(random() % 97)}};
    const auto others = static_cast<int>(random() % 5);
    for (int i = 0; i < others; ++i) shares.push_back({cpu(i), static_cast<std::uint32_t>(random() % 60)});
    expect_even(Placement::interleaved(shares).pages(500), shares);
  }
}

TEST(PlacementTest, BlockedGivesConsecutivePages) {
  EXPECT_EQ(picture(Placement::blocked({cpu(0), cpu(1)}).pages(5)), "DDD11");
  EXPECT_EQ(picture(Placement::blocked({cpu(1), Place::host(), cpu(2)}).pages(7)), "111HH22");
  EXPECT_EQ(picture(Placement::blocked({cpu(1), cpu(2), cpu(3)}).pages(2)), "12") << "more places than pages";
}

TEST(PlacementTest, MapSaysItPageByPage) {
  const Placement map = Placement::map({cpu(0), Place::host(), cpu(2)});
  EXPECT_EQ(picture(map.pages(3)), "DH2");
  expect_refused([&] { static_cast<void>(map.pages(4)); }, "the page map is for 3 pages, but the span has 4");
}

TEST(PlacementTest, BudgetGivesWholePagesAndSpreadsTheRest) {
  const Device device = Device::parse("cpu");
  const auto picture_of = [&](std::size_t bytes, std::size_t pages) {
    return picture(Placement::budget(device, bytes).pages(pages));
  };
  EXPECT_EQ(picture_of(2 * kPageBytes + kPageBytes - 1, 4), "DHDH") << "a partial page does not count";
  EXPECT_EQ(picture_of(kPageBytes - 1, 3), "HHH");
  EXPECT_EQ(picture_of(100 * kPageBytes, 3), "DDD");
  EXPECT_EQ(picture_of(std::size_t{1} << 63, 2), "DD");
  for (std::size_t pages = 1; pages < 60; ++pages) {
    for (std::size_t budget = 0; budget <= pages; ++budget) {
      const auto placed = Placement::budget(device, budget * kPageBytes).pages(pages);
      ASSERT_EQ(count(placed, cpu(0)), budget) << pages;
      expect_even(placed, {{cpu(0), static_cast<std::uint32_t>(budget)},
                           {Place::host(), static_cast<std::uint32_t>(pages - budget)}});
    }
  }
}

TEST(PlacementTest, HeatPutsTheHottestPagesOnTheDevice) {
  const Device device = Device::parse("cpu");
  const auto picture_of = [&](std::size_t pages, std::vector<std::uint64_t> heat) {
    const std::size_t count = heat.size();
    return picture(Placement::budget(device, pages * kPageBytes, std::move(heat)).pages(count));
  };
  EXPECT_EQ(picture_of(2, {5, 0, 9, 7}), "HHDD");
  EXPECT_EQ(picture_of(2, {3, 3, 3, 3}), "DDHH") << "among equals the earlier page";
  EXPECT_EQ(picture_of(3, {0, 0, 1, 0}), "DDDH") << "the rest of the budget serves pages that were never counted";
  EXPECT_EQ(picture_of(0, {9, 9}), "HH");
  expect_refused([&] { static_cast<void>(Placement::budget(device, kPageBytes, {1, 2}).pages(3)); },
                 "the heat is for 2 pages, but the span has 3");
}

TEST(PlacementTest, RulesWithoutAPlaceAreRefused) {
  const Device device = Device::parse("cpu");
  expect_refused([] { static_cast<void>(Placement::interleaved({})); }, "need at least one share");
  expect_refused([] { static_cast<void>(Placement::interleaved({{cpu(0), 0}, {Place::host(), 0}})); }, "weight 0");
  expect_refused([] { static_cast<void>(Placement::interleaved({{cpu(1), 1}, {Place::host(), 1}, {cpu(1), 2}})); },
                 "cpu:1 has two shares");
  expect_refused([] { static_cast<void>(Placement::blocked({})); }, "need at least one place");
  expect_refused([] { static_cast<void>(Placement::map({})); }, "needs at least one page");
  expect_refused([&] { static_cast<void>(Placement::budget(device, kPageBytes, std::vector<std::uint64_t>{})); },
                 "needs the count of at least one page");
}

}  // namespace
}  // namespace headrace
