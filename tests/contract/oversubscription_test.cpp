#include "measure/oversubscription.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"
#include "tests/contract/devices.hpp"

namespace headrace::testing {
namespace {

using ::testing::HasSubstr;
using namespace measure;

class OversubscriptionTest : public DeviceTest {};
HEADRACE_ON_EVERY_DEVICE(OversubscriptionTest);

constexpr std::size_t kBudget = 2 * kPageBytes;

OversubscriptionOptions small(std::vector<double> factors) {
  OversubscriptionOptions options;
  options.factors = std::move(factors);
  options.budget_bytes = kBudget;
  options.runs = 1;
  return options;
}

/// Checks that a cell stays within its budget of bytes on the device.
void expect_sound(const OversubscriptionResult& result) {
  const OversubscriptionCell& cell = result.cell;
  SCOPED_TRACE(::testing::Message() << to_string(cell.pattern) << ", " << to_string(cell.operation) << ", "
                                    << to_string(cell.strategy) << ", factor " << cell.factor << ", pages of "
                                    << cell.page_bytes << ": " << result.note);
  if (cell.strategy == Strategy::on_demand && cell.factor > 1) {
    EXPECT_THAT(result.note, HasSubstr("nothing is evicted"));
    EXPECT_TRUE(result.times.empty());
    EXPECT_FALSE(result.verified);
    return;
  }
  EXPECT_EQ(result.note, "");
  EXPECT_TRUE(result.verified);
  const bool again_if_slow =
      (cell.strategy == Strategy::interleaved || cell.strategy == Strategy::by_budget) &&
      (cell.pattern == AccessPattern::grid_stride || cell.pattern == AccessPattern::block_stride);
  if (result.times.size() != 1) {
    EXPECT_TRUE(again_if_slow);
    EXPECT_EQ(result.times.size(), 3U) << "one run, and two more because it fell short";
  }
  EXPECT_GT(result.bytes_per_second, 0);
  EXPECT_GT(result.roof, 0);
  EXPECT_EQ(result.data_bytes, static_cast<std::size_t>(cell.factor * kBudget));
  const std::uint64_t more = cell.pattern == AccessPattern::hot_tenth ? 10 * kPageBytes : 0;
  EXPECT_EQ(result.touched_bytes, result.data_bytes + more);
  if (cell.strategy == Strategy::zero_copy) {
    EXPECT_EQ(result.device_bytes, 0U);
  }
  if (cell.strategy == Strategy::on_demand) {
    EXPECT_LE(result.host_bytes, result.data_bytes) << "each byte crosses once";
    return;
  }
  EXPECT_EQ(result.device_bytes + result.host_bytes, result.touched_bytes);
  if (cell.strategy != Strategy::zero_copy && cell.factor <= 1) {
    EXPECT_EQ(result.host_bytes, 0U);
  }
}

TEST_P(OversubscriptionTest, EveryPatternOperationAndStrategyIsVerified) {
  OversubscriptionOptions options = small({0.5, 2.0});
  options.operations = {AccessOperation::read, AccessOperation::write, AccessOperation::read_modify_write};
  std::size_t seen = 0;
  const auto report = measure_oversubscription(device(), options, [&](const OversubscriptionProgress& now) {
    EXPECT_LE(now.done, now.of);
    ++seen;
  });
  EXPECT_FALSE(report.interrupted);
  EXPECT_EQ(report.budget_bytes, kBudget);
  EXPECT_EQ(report.roofs.size(), 3U);
  EXPECT_GT(report.copy_to_device, 0);
  EXPECT_EQ(report.cells.size(), 6U * 3 * 5 * 2) << "zipf_rows counts twice";
  EXPECT_EQ(seen, report.cells.size() + 1) << "and once for the roofs";
  for (const OversubscriptionResult& result : report.cells) expect_sound(result);
  const auto cells = oversubscription_cells(options);
  for (std::size_t i = 0; i < cells.size(); ++i) EXPECT_EQ(report.cells[i].cell, cells[i]) << "in order";
}

TEST_P(OversubscriptionTest, PageSizesShapesAndSynchronisedVariants) {
  OversubscriptionOptions options = small({1.5});
  options.patterns = {AccessPattern::random_warp, AccessPattern::zipf_rows, AccessPattern::block_stride};
  options.strategies = {Strategy::prefetched, Strategy::interleaved};
  options.page_bytes = {4 * kKiB, 64 * kKiB, kPageBytes};
  options.threads = {32, 128};
  options.synchronised = {false, true};
  options.blocks_per_multiprocessor = 1;
  const auto report = measure_oversubscription(device(), options);
  // random_warp 3 + 3 page sizes, two zipf_rows and block_stride 3 + 1 each, and four variants of each
  EXPECT_EQ(report.cells.size(), (6U + 3 * 4) * 4);
  for (const OversubscriptionResult& result : report.cells) expect_sound(result);
}

TEST_P(OversubscriptionTest, TheHotPartIsOnTheDeviceByBudgetAndHalfOfItWhenInterleaved) {
  OversubscriptionOptions options = small({2.0});
  options.patterns = {AccessPattern::hot_tenth, AccessPattern::zipf_rows};
  options.strategies = {Strategy::interleaved, Strategy::by_budget};
  const auto report = measure_oversubscription(device(), options);
  ASSERT_EQ(report.cells.size(), 6U);
  for (std::size_t i = 0; i < report.cells.size(); i += 2) {
    const OversubscriptionResult& interleaved = report.cells[i];
    const OversubscriptionResult& by_budget = report.cells[i + 1];
    SCOPED_TRACE(::testing::Message() << to_string(by_budget.cell.pattern) << to_string(by_budget.cell.rows));
    EXPECT_LT(by_budget.host_bytes, interleaved.host_bytes);
    EXPECT_EQ(by_budget.touched_bytes, interleaved.touched_bytes);
    if (interleaved.cell.pattern == AccessPattern::zipf_rows) {
      EXPECT_EQ(interleaved.host_bytes, interleaved.touched_bytes / 2) << "whichever pages the popular rows fall on";
    }
  }
  EXPECT_EQ(report.cells[1].host_bytes, 2 * kPageBytes) << "each cold page once";
}

TEST_P(OversubscriptionTest, SmallPagesHaveFewerColdRowsBesideHotOnes) {
  OversubscriptionOptions options = small({2.0});
  options.patterns = {AccessPattern::zipf_rows, AccessPattern::grid_stride};
  options.rows = {RowOrder::scattered};
  options.operations = {AccessOperation::read, AccessOperation::read_modify_write};
  options.strategies = {Strategy::by_budget};
  options.page_bytes = {kPageBytes, 64 * kKiB, 4 * kKiB};
  const auto report = measure_oversubscription(device(), options);
  ASSERT_EQ(report.cells.size(), 2U * 3 + 2) << "sweeps have no heat, and one page size";
  for (const OversubscriptionResult& result : report.cells) expect_sound(result);
  for (std::size_t first = 0; first < 6; first += 3) {
    for (std::size_t i = first; i < first + 2; ++i) {
      EXPECT_LT(report.cells[i + 1].host_bytes, report.cells[i].host_bytes) << report.cells[i + 1].cell.page_bytes;
    }
  }
}

TEST_P(OversubscriptionTest, StopsWhenAsked) {
  OversubscriptionOptions options = small({1.0});
  options.strategies = {Strategy::interleaved};
  std::stop_source stop;
  options.stop = stop.get_token();
  const auto report = measure_oversubscription(device(), options, [&](const OversubscriptionProgress& now) {
    if (now.done == 2) stop.request_stop();
  });
  EXPECT_TRUE(report.interrupted);
  EXPECT_EQ(report.cells.size(), 2U);
}

TEST(OversubscriptionMemoryTest, WhatDoesNotFitSaysSo) {
  const Device device = Device::parse("cpu:60");
  const std::size_t free_bytes = device.memory().free_bytes;
  OversubscriptionOptions options = small({1024.0});  // twice the free memory
  options.patterns = {AccessPattern::grid_stride};
  options.strategies = {Strategy::prefetched, Strategy::interleaved};
  options.budget_bytes = std::max(kPageBytes, free_bytes / 512 / kPageBytes * kPageBytes);
  const auto report = measure_oversubscription(device, options);
  EXPECT_THAT(report.cells[0].note, HasSubstr("which can hang a GPU"));
  EXPECT_THAT(report.cells[1].note, HasSubstr("three quarters of its memory"));
  for (const auto& result : report.cells) {
    EXPECT_FALSE(result.verified);
    EXPECT_TRUE(result.times.empty());
  }
  EXPECT_EQ(device.memory().free_bytes, free_bytes) << "no memory was kept";
}

std::string refusal(const OversubscriptionOptions& options) {
  try {
    static_cast<void>(measure_oversubscription(Device::parse("cpu"), options));
  } catch (const UsageError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

template <class Change>
std::string refusal_of(Change change) {
  OversubscriptionOptions options = small({1.0});
  change(options);
  return refusal(options);
}

TEST(OversubscriptionOptionsTest, BadOnesAreRefusedByName) {
  using Options = OversubscriptionOptions;
  for (const double factor : {0.0, -1.0, 1e9, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THAT(refusal_of([&](Options& options) { options.factors = {1.0, factor}; }), HasSubstr("a factor must be"));
  }
  EXPECT_THAT(refusal_of([](Options& options) { options.budget_bytes = kPageBytes - 1; }),
              HasSubstr("at least a page of 2 MiB"));
  EXPECT_THAT(refusal_of([](Options& options) { options.page_bytes = {8 * kKiB}; }), HasSubstr("not 8 KiB"));
  EXPECT_THAT(refusal_of([](Options& options) { options.threads = {100}; }), HasSubstr("not 100"));
  EXPECT_THAT(refusal_of([](Options& options) { options.threads = {2048}; }), HasSubstr("not 2048"));
  EXPECT_THAT(refusal_of([](Options& options) { options.runs = 0; }), HasSubstr("runs must be"));
  EXPECT_THAT(refusal_of([](Options& options) { options.blocks_per_multiprocessor = 65; }), HasSubstr("not 65"));
  EXPECT_THAT(refusal_of([](Options& options) { options.patterns.clear(); }), HasSubstr("patterns"));
  EXPECT_THAT(refusal_of([](Options& options) { options.synchronised.clear(); }), HasSubstr("synchronised"));
}

TEST(OversubscriptionOptionsTest, RowOrdersParseBackAndTheBudgetIsWholePages) {
  EXPECT_EQ(parse_row_order("scattered"), RowOrder::scattered);
  EXPECT_EQ(parse_row_order(to_string(RowOrder::ordered)), RowOrder::ordered);
  EXPECT_THROW(static_cast<void>(parse_row_order("sorted")), UsageError);
  const std::size_t budget = oversubscription_budget(Device::parse("cpu"));
  EXPECT_GE(budget, kPageBytes);
  EXPECT_EQ(budget % kPageBytes, 0U);
}

TEST(OversubscriptionOptionsTest, WhatIsNamedTwiceIsMeasuredOnce) {
  OversubscriptionOptions options = small({2.0, 2.0});
  options.patterns = {AccessPattern::grid_stride, AccessPattern::grid_stride};
  options.strategies = {Strategy::interleaved};
  EXPECT_EQ(oversubscription_cells(options).size(), 1U);
}

}  // namespace
}  // namespace headrace::testing
