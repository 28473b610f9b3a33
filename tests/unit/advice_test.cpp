#include "headrace/device/advice.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <string>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"

namespace headrace {
namespace {

constexpr std::array kPatterns{AccessPattern::grid_stride, AccessPattern::block_stride, AccessPattern::random_warp,
                               AccessPattern::zipf_rows, AccessPattern::hot_tenth};
constexpr std::array kOperations{AccessOperation::read, AccessOperation::write, AccessOperation::read_modify_write};
constexpr std::array kFactors{0.5, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0};
constexpr double kForEver = std::numeric_limits<double>::infinity();
constexpr std::size_t kBudget = kGiB;

Device cpu() { return Device::parse("cpu"); }

const MemoryRates& h100() { return find_memory_rates("H100"); }

AccessProfile profile_of(AccessPattern pattern, double factor, double reuse = kForEver) {
  AccessProfile profile;
  profile.pattern = pattern;
  profile.budget_bytes = kBudget;
  profile.bytes = static_cast<std::size_t>(factor * static_cast<double>(kBudget));
  profile.reuse = reuse;
  return profile;
}

const StrategyForecast& of(const Advice& advice, Strategy strategy) {
  return *std::find_if(advice.forecasts.begin(), advice.forecasts.end(),
                       [&](const StrategyForecast& one) { return one.strategy == strategy; });
}

std::size_t pages_on_device(const Advice& advice, const AccessProfile& profile) {
  const std::vector<Place> places = advice.placement.pages(profile.page_count());
  return static_cast<std::size_t>(
      std::count_if(places.begin(), places.end(), [](const Place& place) { return !place.is_host(); }));
}

TEST(Advice, DataThatFitsGoesOnTheDevice) {
  for (const AccessPattern pattern : kPatterns) {
    for (const double reuse : {100.0, kForEver}) {
      const AccessProfile profile = profile_of(pattern, 1.0, reuse);
      const Advice advice = advise(cpu(), profile, h100());
      EXPECT_EQ(pages_on_device(advice, profile), profile.page_count()) << to_string(pattern);
      EXPECT_EQ(advice.forecasts.front().host_share, 0);
      EXPECT_NE(advice.because.find("fit in"), std::string::npos) << advice.because;
    }
  }
}

TEST(Advice, DataGoneThroughOnceStaysWhereItIs) {
  for (const double factor : {0.5, 1.5, 4.0}) {
    for (const AccessPattern pattern : {AccessPattern::grid_stride, AccessPattern::block_stride}) {
      const AccessProfile profile = profile_of(pattern, factor, 1);
      const Advice advice = advise(cpu(), profile, h100());
      EXPECT_EQ(advice.strategy, Strategy::zero_copy) << factor;
      EXPECT_EQ(pages_on_device(advice, profile), 0U);
    }
  }
  EXPECT_EQ(advise(cpu(), profile_of(AccessPattern::grid_stride, 1.5, 1000), h100()).strategy, Strategy::interleaved);
}

TEST(Advice, DataToBeCopiedAnywayIsPutWhereItIsUsed) {
  AccessProfile profile = profile_of(AccessPattern::grid_stride, 0.5, 1);
  profile.pinned_already = false;
  EXPECT_NE(advise(cpu(), profile, h100()).strategy, Strategy::zero_copy);
}

// The document's rule of thumb: at factor 1.5 every third page is on the host, so the link carries a third.
TEST(Advice, SequentialDataIsInterleavedAtItsRoof) {
  for (const AccessPattern pattern : {AccessPattern::grid_stride, AccessPattern::block_stride}) {
    const AccessProfile profile = profile_of(pattern, 1.5);
    const Advice advice = advise(cpu(), profile, h100());
    EXPECT_EQ(advice.strategy, Strategy::interleaved);
    EXPECT_EQ(pages_on_device(advice, profile), kBudget / kPageBytes);
    const StrategyForecast& best = advice.forecasts.front();
    EXPECT_NEAR(best.host_share, 1.0 / 3, 0.002);
    EXPECT_NEAR(best.bytes_per_second, best.roof_per_second, 1e-3 * best.roof_per_second);
    EXPECT_NEAR(best.bytes_per_second, 3 * h100().link.read, 0.01 * best.bytes_per_second);
  }
}

TEST(Advice, PopularRowsGoOnTheDevice) {
  AccessProfile profile = profile_of(AccessPattern::zipf_rows, 2);
  const Advice ordered = advise(cpu(), profile, h100());
  EXPECT_EQ(ordered.strategy, Strategy::by_budget);
  // Half of the rows, ordered by popularity, leave ln 2 / H(rows) of the draws to the rest.
  const double rows = static_cast<double>(profile.bytes) / 512;
  EXPECT_NEAR(ordered.forecasts.front().host_share, std::log(2.0) / (std::log(rows) + 0.5772), 1e-3);
  const double gain = ordered.forecasts.front().bytes_per_second / of(ordered, Strategy::interleaved).bytes_per_second;
  EXPECT_GT(gain, 4);

  profile.order = RowOrder::scattered;
  const Advice scattered = advise(cpu(), profile, h100());
  EXPECT_EQ(scattered.strategy, Strategy::by_budget);
  EXPECT_GT(scattered.forecasts.front().bytes_per_second, 1.3 * of(scattered, Strategy::interleaved).bytes_per_second);
  EXPECT_GT(scattered.forecasts.front().host_share, ordered.forecasts.front().host_share);
}

TEST(Advice, AHotTenthGoesOnTheDevice) {
  const AccessProfile profile = profile_of(AccessPattern::hot_tenth, 4);
  const Advice advice = advise(cpu(), profile, h100());
  EXPECT_EQ(advice.strategy, Strategy::by_budget);
  const std::vector<Place> places = advice.placement.pages(profile.page_count());
  const std::size_t pages = profile.page_count();
  for (std::size_t page = pages * 9 / 10; page < pages; ++page) ASSERT_FALSE(places[page].is_host()) << page;
}

TEST(Advice, CountsOfPagesDecide) {
  AccessProfile profile = profile_of(AccessPattern::random_warp, 4);
  profile.heat.assign(profile.page_count(), 1);
  for (std::size_t page = 7; page < profile.page_count(); page += 8) profile.heat[page] = 1000;
  const Advice advice = advise(cpu(), profile, h100());
  EXPECT_EQ(advice.strategy, Strategy::by_budget);
  const std::vector<Place> places = advice.placement.pages(profile.page_count());
  for (std::size_t page = 7; page < profile.page_count(); page += 8) ASSERT_FALSE(places[page].is_host()) << page;
  EXPECT_LT(advice.forecasts.front().host_share, 0.01);

  profile.heat.assign(profile.page_count(), 0);  // nothing counted: all pages are taken as equally hot
  EXPECT_NEAR(of(advise(cpu(), profile, h100()), Strategy::interleaved).host_share, 0.75, 0.01);
}

TEST(Advice, NoStrategyGainsFromMoreData) {
  for (const AccessPattern pattern : kPatterns) {
    for (const double reuse : {kForEver, 50.0}) {
      std::array<double, 5> before;
      before.fill(kForEver);
      for (const double factor : kFactors) {
        const Advice advice = advise(cpu(), profile_of(pattern, factor, reuse), h100());
        for (const StrategyForecast& one : advice.forecasts) {
          double& last = before[static_cast<std::size_t>(one.strategy)];
          // Ordered rows put page 0, the hottest, on the device or the host; and a longer tail of rows draws a little
          // less.
          const bool in_steps = pattern == AccessPattern::zipf_rows && one.strategy == Strategy::interleaved;
          if (!in_steps) {
            EXPECT_LE(one.bytes_per_second, last * 1.01) << to_string(one.strategy) << factor;
          }
          last = one.bytes_per_second;
        }
      }
    }
  }
}

/// All rates multiplied by `by`.
MemoryRates scaled(MemoryRates rates, double by) {
  for (OperationRates* one : {&rates.device, &rates.device_random, &rates.link, &rates.link_random}) {
    one->read *= by;
    one->write *= by;
    one->read_modify_write *= by;
  }
  for (double* one : {&rates.faults.grid_stride, &rates.faults.block_stride, &rates.faults.random, &rates.prefetch,
                      &rates.host_copy, &rates.cache}) {
    *one *= by;
  }
  for (double* one :
       {&rates.device_page, &rates.host_page, &rates.page_move, &rates.device_latency, &rates.link_latency}) {
    *one /= by;
  }
  return rates;
}

TEST(Advice, AFasterMachineOfTheSameProportionsGetsTheSame) {
  for (const AccessPattern pattern : kPatterns) {
    for (const double factor : kFactors) {
      for (const double reuse : {1.0, 30.0, kForEver}) {
        const AccessProfile profile = profile_of(pattern, factor, reuse);
        const Advice plain = advise(cpu(), profile, h100());
        const Advice fast = advise(cpu(), profile, scaled(h100(), 4));
        EXPECT_EQ(plain.strategy, fast.strategy);
        EXPECT_NEAR(fast.forecasts.front().bytes_per_second / plain.forecasts.front().bytes_per_second, 4, 1e-6);
      }
    }
  }
}

TEST(Advice, PreparationIsForgottenWithReuse) {
  const AccessProfile for_ever = profile_of(AccessPattern::grid_stride, 2);
  const double limit = advise(cpu(), for_ever, h100()).forecasts.front().bytes_per_second;
  double before = 0;
  for (const double reuse : {1.0, 10.0, 100.0, 1e4, 1e9}) {
    const AccessProfile profile = profile_of(AccessPattern::grid_stride, 2, reuse);
    const double now = of(advise(cpu(), profile, h100()), Strategy::interleaved).bytes_per_second;
    EXPECT_GT(now, before);
    before = now;
  }
  EXPECT_NEAR(before, limit, 1e-3 * limit);
}

TEST(Advice, ManagedMemoryIsRefusedBeyondWhatIsFree) {
  MemoryRates rates = h100();
  rates.managed_bytes = kGiB;
  const Advice advice = advise(cpu(), profile_of(AccessPattern::grid_stride, 2), rates);
  EXPECT_NE(of(advice, Strategy::prefetched).refused.find("1 GiB"), std::string::npos);
  EXPECT_FALSE(of(advice, Strategy::on_demand).refused.empty());
  EXPECT_FALSE(advice.forecasts.back().refused.empty());
  EXPECT_TRUE(of(advice, Strategy::interleaved).refused.empty());
  rates.managed = false;
  EXPECT_FALSE(
      of(advise(cpu(), profile_of(AccessPattern::grid_stride, 0.5), rates), Strategy::on_demand).refused.empty());
}

// The document: for random access beyond the device's memory, page faults deliver some hundred kilobytes per second.
TEST(Advice, FaultsAtRandomThrash) {
  const Advice advice = advise(cpu(), profile_of(AccessPattern::random_warp, 2), h100());
  EXPECT_LT(of(advice, Strategy::on_demand).bytes_per_second, 1e6);
  EXPECT_GT(of(advice, Strategy::on_demand).bytes_per_second, 1e5);
  EXPECT_GT(advice.forecasts.front().bytes_per_second, 1.9 * of(advice, Strategy::zero_copy).bytes_per_second);
}

// The translation cache covers a part of the host pages, so fewer host pages are faster by more than their number.
TEST(Advice, ReachOfTranslationCounts) {
  AccessProfile profile = profile_of(AccessPattern::random_warp, 1.5);
  profile.budget_bytes = 2048 * kMiB * 2 / 3;
  profile.bytes = 2048 * kMiB;
  const Advice advice = advise(cpu(), profile, find_memory_rates("H200"));
  EXPECT_NEAR(of(advice, Strategy::zero_copy).bytes_per_second, 7.8e9, 0.1e9);  // measured: 7.8
  EXPECT_NEAR(of(advice, Strategy::interleaved).bytes_per_second, 72e9, 1e9);   // measured: 72
}

TEST(Advice, OneMemoryCarriesEverything) {
  const Advice advice = advise(cpu(), profile_of(AccessPattern::grid_stride, 2), find_memory_rates("cpu"));
  EXPECT_NEAR(of(advice, Strategy::zero_copy).bytes_per_second, of(advice, Strategy::interleaved).bytes_per_second, 1);
  EXPECT_EQ(advice.strategy, Strategy::zero_copy);  // the simplest of several equals
}

TEST(Advice, CodeIsOfTheChoice) {
  const Advice dealt = advise(cpu(), profile_of(AccessPattern::grid_stride, 2), h100());
  EXPECT_NE(dealt.cpp.find("Placement::budget(device, 1073741824)"), std::string::npos) << dealt.cpp;
  EXPECT_NE(dealt.python.find("headrace.Placement.budget(\"cpu:0\", 1073741824)"), std::string::npos) << dealt.python;
  const Advice hot = advise(cpu(), profile_of(AccessPattern::zipf_rows, 2), h100());
  EXPECT_NE(hot.cpp.find("headrace::rebalance("), std::string::npos) << hot.cpp;
  const Advice once = advise(cpu(), profile_of(AccessPattern::grid_stride, 2, 1), h100());
  EXPECT_NE(once.cpp.find("MemoryKind::mapped"), std::string::npos) << once.cpp;
  const AdviceConstants managed_is_faster{.span_link = 0.5, .managed_link = 1};
  const Advice managed = advise(cpu(), profile_of(AccessPattern::grid_stride, 2), h100(), managed_is_faster);
  EXPECT_EQ(managed.strategy, Strategy::prefetched);
  EXPECT_NE(managed.cpp.find("Placement::budget(device, 1073741824).pages(1024)"), std::string::npos) << managed.cpp;
}

TEST(Advice, WhatCanNeverBeIsRefused) {
  const auto refuses = [](auto change) {
    AccessProfile profile = profile_of(AccessPattern::zipf_rows, 2);
    change(profile);
    EXPECT_THROW(static_cast<void>(advise(cpu(), profile, h100())), UsageError);
  };
  refuses([](AccessProfile& p) { p.bytes = 0; });
  refuses([](AccessProfile& p) { p.bytes = std::numeric_limits<std::size_t>::max(); });
  refuses([](AccessProfile& p) { p.budget_bytes = 0; });
  refuses([](AccessProfile& p) { p.reuse = 0; });
  refuses([](AccessProfile& p) { p.reuse = std::nan(""); });
  refuses([](AccessProfile& p) { p.exponent = -1; });
  refuses([](AccessProfile& p) { p.exponent = kForEver; });
  refuses([](AccessProfile& p) { p.row_bytes = 0; });
  refuses([](AccessProfile& p) { p.hot_sweeps = -1; });
  refuses([](AccessProfile& p) { p.heat = {1, 2, 3}; });
  EXPECT_THROW(static_cast<void>(parse_row_order("sorted")), UsageError);
  EXPECT_EQ(parse_row_order(to_string(RowOrder::scattered)), RowOrder::scattered);
  EXPECT_THROW(static_cast<void>(find_memory_rates("toaster")), UsageError);
}

void expect_valid(const AccessProfile& profile, const Advice& advice) {
  ASSERT_EQ(advice.forecasts.size(), 5U);
  std::set<Strategy> seen;
  for (const StrategyForecast& one : advice.forecasts) {
    seen.insert(one.strategy);
    ASSERT_TRUE(std::isfinite(one.bytes_per_second) && one.bytes_per_second > 0) << to_string(one.strategy);
    ASSERT_TRUE(std::isfinite(one.pass_seconds) && one.pass_seconds > 0);
    ASSERT_GE(one.prepare_seconds, 0);
    ASSERT_GE(one.host_share, 0);
    ASSERT_LE(one.host_share, 1 + 1e-9);
    ASSERT_GT(one.roof_per_second, 0);
  }
  ASSERT_EQ(seen.size(), 5U);
  ASSERT_EQ(advice.strategy, advice.forecasts.front().strategy);
  ASSERT_TRUE(advice.forecasts.front().refused.empty());
  for (const StrategyForecast& one : advice.forecasts) {
    if (one.refused.empty()) {
      ASSERT_LE(one.bytes_per_second * 0.99, advice.forecasts.front().bytes_per_second);
    }
  }
  if (profile.bytes > profile.budget_bytes) {
    ASSERT_LE(pages_on_device(advice, profile) * kPageBytes, profile.budget_bytes);
  }
  ASSERT_FALSE(advice.because.empty() || advice.cpp.empty() || advice.python.empty());
}

TEST(Advice, EveryProfileGetsAValidOne) {
  std::mt19937_64 random(20);
  const auto up_to = [&random](std::size_t most) { return static_cast<std::size_t>(random() % (most + 1)); };
  for (int i = 0; i < 400; ++i) {
    AccessProfile profile;
    profile.pattern = kPatterns[up_to(4)];
    profile.operation = kOperations[up_to(2)];
    profile.bytes = 1 + up_to((std::size_t{1} << up_to(32)) - 1);
    profile.budget_bytes = 1 + up_to((std::size_t{1} << up_to(32)) - 1);
    profile.reuse = up_to(1) == 0 ? kForEver : std::exp2(static_cast<double>(up_to(40)) - 20);
    profile.exponent = static_cast<double>(up_to(30)) / 10;
    profile.row_bytes = 1 + up_to(std::size_t{1} << up_to(24));
    profile.order = up_to(1) == 0 ? RowOrder::ordered : RowOrder::scattered;
    profile.hot_sweeps = static_cast<double>(up_to(20));
    profile.pinned_already = up_to(1) == 0;
    if (up_to(2) == 0) {
      for (std::size_t page = 0; page < profile.page_count(); ++page) profile.heat.push_back(up_to(3) * up_to(1000));
    }
    const MemoryRates& rates = known_memory_rates()[up_to(known_memory_rates().size() - 1)];
    SCOPED_TRACE(testing::Message() << i << ": " << to_string(profile.pattern) << ", " << profile.bytes << " bytes, "
                                    << profile.budget_bytes << " on the device, rows " << profile.row_bytes);
    expect_valid(profile, advise(cpu(), profile, rates));
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace headrace
