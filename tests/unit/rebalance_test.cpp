#include "headrace/device/rebalance.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "headrace/base/error.hpp"

namespace headrace {
namespace {

Device cpu() { return Device::parse("cpu"); }

/// "d" for the device, "h" for the host, "o" for another device.
std::vector<Place> places(const std::string& letters) {
  std::vector<Place> result;
  for (const char letter : letters) {
    result.push_back(letter == 'h' ? Place::host() : Place::on(Device::parse(letter == 'd' ? "cpu:0" : "cpu:1")));
  }
  return result;
}

std::string rebalanced(const std::string& letters, std::size_t budget_pages, const std::vector<std::uint64_t>& heat) {
  std::string result;
  for (const Place& place : headrace::rebalanced(places(letters), cpu(), budget_pages * kPageBytes, heat)) {
    result += place.is_host() ? 'h' : place == Place::on(cpu()) ? 'd' : 'o';
  }
  return result;
}

TEST(Rebalanced, HottestPagesComeUpAndColdestLeave) {
  EXPECT_EQ(rebalanced("dhdhdh", 3, {0, 900, 50, 800, 100, 7}), "hdhddh");
}

TEST(Rebalanced, ChanceMovesNothing) {
  EXPECT_EQ(rebalanced("dhdh", 2, {100, 100, 100, 100}), "dhdh");
  EXPECT_EQ(rebalanced("dhdh", 2, {95, 110, 102, 99}), "dhdh");
  EXPECT_EQ(rebalanced("dhdh", 2, {0, 0, 0, 0}), "dhdh");
  EXPECT_EQ(rebalanced("dh", 1, {100, 130}), "dh");
  EXPECT_EQ(rebalanced("dh", 1, {100, 131}), "hd");  // 31 > 2 * sqrt(231)
}

TEST(Rebalanced, RoomIsFilledWithPagesThatAreUsed) {
  EXPECT_EQ(rebalanced("hhhh", 3, {0, 5, 9, 0}), "hddh");
  EXPECT_EQ(rebalanced("hhhh", 1, {0, 5, 9, 0}), "hhdh");
  EXPECT_EQ(rebalanced("hhhh", 0, {1, 5, 9, 0}), "hhhh");
}

TEST(Rebalanced, WhatIsOverTheBudgetLeavesColdestFirst) {
  EXPECT_EQ(rebalanced("dddd", 2, {5, 1, 9, 2}), "dhdh");
  EXPECT_EQ(rebalanced("dddd", 0, {5, 1, 9, 2}), "hhhh");
}

TEST(Rebalanced, PagesOnOtherDevicesStay) { EXPECT_EQ(rebalanced("ohd", 1, {9000, 900, 1}), "odh"); }

TEST(Rebalanced, CountsMustBeOfThesePages) { EXPECT_THROW(static_cast<void>(rebalanced("dh", 1, {1})), UsageError); }

// For any counts, the result keeps the budget, and no host page is far hotter than a device page.
TEST(Rebalanced, KeepsTheBudgetAndTheHottest) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 300; ++round) {
    const std::size_t pages = 1 + random() % 40;
    std::string letters;
    std::vector<std::uint64_t> heat;
    for (std::size_t page = 0; page < pages; ++page) {
      letters += "dh"[random() % 2];
      heat.push_back(random() % (random() % 2 == 0 ? 10 : 100000));
    }
    const std::size_t budget = random() % (pages + 2);
    const std::string result = rebalanced(letters, budget, heat);
    ASSERT_LE(static_cast<std::size_t>(std::count(result.begin(), result.end(), 'd')), budget);
    ASSERT_EQ(rebalanced(result, budget, heat), result) << "a second time moves nothing";
    std::uint64_t coldest_near = ~std::uint64_t{0};
    std::uint64_t hottest_far = 0;
    for (std::size_t page = 0; page < pages; ++page) {
      if (result[page] == 'd') coldest_near = std::min(coldest_near, heat[page]);
      if (result[page] == 'h') hottest_far = std::max(hottest_far, heat[page]);
    }
    if (budget > 0 && coldest_near != ~std::uint64_t{0} && hottest_far > coldest_near) {
      const double sum = static_cast<double>(hottest_far + coldest_near);
      ASSERT_LE(static_cast<double>(hottest_far - coldest_near), 2 * std::sqrt(sum));
    }
  }
}

}  // namespace
}  // namespace headrace
