#include "headrace/device/detail/page_heat.hpp"

#include <cstdint>
#include <random>
#include <vector>

#include "tests/contract/devices.hpp"
#include "tests/contract/page_kernels.hpp"

namespace headrace::testing {
namespace {

class PageHeatTest : public DeviceTest {};
HEADRACE_ON_EVERY_DEVICE(PageHeatTest);

constexpr std::size_t kPages = 8;
constexpr LaunchShape kShape{.blocks = 4, .threads = 64};

/// Data of kPages pages on the device; the first word of each is its number plus 1.
Buffer numbered(const Stream& stream) {
  Buffer data(stream.device(), MemoryKind::device, kPages * kPageBytes);
  EXPECT_OK(launch(stream, number_pages_kernel(), kShape, data.data(), std::uint32_t{kPages}));
  return data;
}

/// A list of visits for the device to read.
Buffer visits(Device device, const std::vector<std::uint32_t>& pages) {
  Buffer list(device, MemoryKind::mapped, pages.size() * sizeof(std::uint32_t));
  std::memcpy(list.data(), pages.data(), list.bytes());
  return list;
}

TEST_P(PageHeatTest, CountsEveryVisitOfManyThreads) {
  const Stream stream(device());
  const Buffer data = numbered(stream);
  std::mt19937 random(7);
  std::vector<std::uint32_t> pages(20000);
  std::vector<std::uint64_t> expected(kPages);
  std::uint64_t expected_sum = 0;
  for (std::uint32_t& page : pages) {
    page = static_cast<std::uint32_t>(random() % (kPages - 1));  // the last page is never used
    ++expected[page];
    expected_sum += page + 1;
  }
  const Buffer list = visits(device(), pages);
  const Buffer sum(device(), MemoryKind::device, sizeof(std::uint64_t));
  ASSERT_OK(stream.fill(sum.data(), 0, sum.bytes()));
  const PageHeat heat(stream, data.data(), kPages);
  ASSERT_OK(launch(stream, visit_pages_kernel(), kShape, static_cast<const std::byte*>(data.data()),
                   static_cast<const std::uint32_t*>(list.as<std::uint32_t>()),
                   static_cast<std::uint32_t>(pages.size()), heat.counter(), sum.as<std::uint64_t>()));
  EXPECT_EQ(heat.read(stream), expected);
  const Buffer result(device(), MemoryKind::pinned, sum.bytes());
  ASSERT_OK(stream.copy(result.data(), sum.data(), sum.bytes()));
  ASSERT_OK(stream.wait());
  EXPECT_EQ(*result.as<std::uint64_t>(), expected_sum);
}

TEST_P(PageHeatTest, StartsAtZeroGathersAndClears) {
  const Stream stream(device());
  const Buffer data = numbered(stream);
  const Buffer list = visits(device(), {0, 0, 7});
  const Buffer sum(device(), MemoryKind::device, sizeof(std::uint64_t));
  ASSERT_OK(stream.fill(sum.data(), 0, sum.bytes()));
  PageHeat heat(stream, data.data(), kPages);
  EXPECT_EQ(heat.page_count(), kPages);
  EXPECT_EQ(heat.read(stream), std::vector<std::uint64_t>(kPages));
  const auto visit = [&] {
    return launch(stream, visit_pages_kernel(), kShape, static_cast<const std::byte*>(data.data()),
                  static_cast<const std::uint32_t*>(list.as<std::uint32_t>()), std::uint32_t{3}, heat.counter(),
                  sum.as<std::uint64_t>());
  };
  ASSERT_OK(visit());
  ASSERT_OK(visit());
  EXPECT_EQ(heat.read(stream), (std::vector<std::uint64_t>{4, 0, 0, 0, 0, 0, 0, 2}));
  ASSERT_OK(heat.clear(stream));
  ASSERT_OK(visit());
  EXPECT_EQ(heat.read(stream), (std::vector<std::uint64_t>{2, 0, 0, 0, 0, 0, 0, 1}));
}

// The last byte of a page still counts for that page.
TEST_P(PageHeatTest, PagesEndWhereTheNextBegins) {
  std::vector<std::uint32_t> counts(2);
  const auto* base = reinterpret_cast<const std::byte*>(kPageBytes);  // never read
  const PageCounter counter{.base = base, .counts = counts.data()};
  counter.touch(CpuGroup{}, base);
  counter.touch(CpuGroup{}, base + kPageBytes - 1);
  counter.touch(CpuGroup{}, base + kPageBytes);
  EXPECT_EQ(counts, (std::vector<std::uint32_t>{2, 1}));
}

TEST_P(PageHeatTest, NoPageIsAnError) {
  const Stream stream(device());
  EXPECT_THROW(PageHeat(stream, nullptr, 0), UsageError);
  EXPECT_THROW(PageHeat(stream, nullptr, ~std::size_t{0}), UsageError);
}

}  // namespace
}  // namespace headrace::testing
