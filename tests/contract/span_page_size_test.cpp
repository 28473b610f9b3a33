#include <unistd.h>

#include "headrace/device/advice.hpp"
#include "headrace/device/detail/page_heat.hpp"
#include "headrace/device/rebalance.hpp"
#include "tests/contract/kernels.hpp"
#include "tests/contract/span_support.hpp"

/// Spans of pages larger than 2 MiB.
namespace headrace::testing {
namespace {

constexpr std::size_t kLarge = 4 * kPageBytes;

class SpanPageSizeTest : public SpanTest {};

TEST_P(SpanPageSizeTest, PlacesRightsAndStatisticsCountPagesOfThatSize) {
  Stream stream(device());
  const auto bytes = some_bytes(3 * kLarge - 999, 30);
  const Placement placement = Placement::map({here(), Place::host(), here()});
  Span span(device(), bytes.size(), placement, {.page_bytes = kLarge});
  EXPECT_EQ(span.page_bytes(), kLarge);
  EXPECT_EQ(span.page_count(), 3U);
  EXPECT_EQ(span.places(), placement.pages(3));
  const SpanStatistics statistics = span.statistics();
  ASSERT_EQ(statistics.places.size(), 2U);
  EXPECT_EQ(statistics.places[0].page_count, 2U);
  EXPECT_EQ(statistics.places[0].bytes, 2 * kLarge);
  write(span, stream, bytes);  // copies are cut at the boundaries of such pages
  EXPECT_TRUE(read(span, stream) == bytes);
  span.allow(device(), Right::read, PageRange{1, 1});
  EXPECT_EQ(span.right(device(), 0), Right::read_write);
  EXPECT_EQ(span.right(device(), 1), Right::read);
  span.allow_host(Right::none, PageRange{1, 1});
  EXPECT_EQ(span.host_right(1), Right::none);
  if (on_cpu()) {
    EXPECT_EQ(permissions_at(span.data() + kLarge - 1), "rw-s");
    EXPECT_EQ(permissions_at(span.data() + kLarge), "r--s");
    EXPECT_EQ(permissions_at(span.data() + 2 * kLarge - 1), "r--s");
    EXPECT_EQ(permissions_at(span.data() + 2 * kLarge), "rw-s");
  }
  span.release();
  EXPECT_EQ(span.page_bytes(), 0U);
}

TEST_P(SpanPageSizeTest, TheyMoveThereAndBack) {
  Stream stream(device());
  const auto bytes = some_bytes(5 * kLarge, 31);
  Span span(device(), bytes.size(), Placement::all(Place::host()), {.page_bytes = kLarge});
  write(span, stream, bytes);
  for (int round = 0; round < 2; ++round) {  // the second round uses spare pages only
    span.move(stream, Placement::all(here()));
    EXPECT_TRUE(read(span, stream) == bytes);
    span.move(stream, {1, 3}, Place::host());
    EXPECT_EQ(span.places(), (std::vector<Place>{here(), Place::host(), Place::host(), Place::host(), here()}));
    EXPECT_TRUE(read(span, stream) == bytes);
    span.move(stream, Placement::all(Place::host()));
    EXPECT_TRUE(read(span, stream) == bytes);
  }
  EXPECT_EQ(span.statistics().pages_moved, 20U);
  EXPECT_EQ(span.statistics().bytes_moved, 20 * kLarge);
  EXPECT_EQ(span.statistics().spare_pages, 5U);
  ASSERT_OK(launch(stream, add_kernel(), {.blocks = 64, .threads = 256}, span.as<std::uint32_t>(),
                   static_cast<std::uint32_t>(span.bytes() / 4), std::uint32_t{1}));
  const auto after = read(span, stream);
  std::uint32_t last = 0;
  std::memcpy(&last, bytes.data() + bytes.size() - 4, 4);
  EXPECT_EQ(reinterpret_cast<const std::uint32_t*>(after.data())[after.size() / 4 - 1], last + 1);
}

TEST_P(SpanPageSizeTest, APageOf64MiBIsABatchOfItsOwn) {
  Stream stream(device());
  constexpr std::size_t kHuge = 64 * kMiB;
  Span span(device(), 2 * kHuge, Placement::all(Place::host()), {.page_bytes = kHuge});
  const auto bytes = some_bytes(span.bytes(), 32);
  write(span, stream, bytes);
  span.keep_spare_pages(1);
  span.move(stream, Placement::all(here()));
  EXPECT_TRUE(read(span, stream) == bytes);
  EXPECT_EQ(span.statistics().spare_pages, 1U);
}

TEST_P(SpanPageSizeTest, ABudgetHoldsWholePages) {
  const Span span(device(), 4 * kLarge, Placement::budget(device(), 3 * kLarge - 1), {.page_bytes = kLarge});
  const auto on_device = std::count(span.places().begin(), span.places().end(), here());
  EXPECT_EQ(on_device, 2);
}

TEST_P(SpanPageSizeTest, OtherSizesAreRefused) {
  for (const std::size_t bytes : {std::size_t{0}, kPageBytes / 2, 3 * kPageBytes, kPageBytes + 1}) {
    expect_usage_error([&] { const Span span(device(), 1, Placement::all(here()), {.page_bytes = bytes}); },
                       "must be a power of two of at least 2097152 bytes");
  }
  const std::size_t none_has = std::size_t{1} << 63;
  EXPECT_THROW(Span(device(), 1, Placement::all(here()), {.page_bytes = none_has}), DeviceError);
  AccessProfile profile;
  profile.bytes = 4 * kLarge;
  profile.budget_bytes = 2 * kLarge;
  expect_usage_error([&] { static_cast<void>(Span::advised(device(), profile, {.page_bytes = kLarge})); },
                     "advice works only for pages of 2 MiB, not 8 MiB");
}

TEST_P(SpanPageSizeTest, TheyAreShared) {
  Stream stream(device());
  const Span span(device(), 2 * kLarge - 5, Placement::all(here()), {.shareable = true, .page_bytes = kLarge});
  const auto bytes = some_bytes(span.bytes(), 33);
  write(span, stream, bytes);
  SharedPages shared = span.share();
  EXPECT_EQ(shared.page_bytes, kLarge);
  ASSERT_EQ(shared.descriptors.size(), 2U);
  {
    const Span again(shared);
    EXPECT_EQ(again.page_bytes(), kLarge);
    EXPECT_TRUE(read(again, stream) == bytes);
  }
  shared.page_bytes = 2 * kLarge;
  expect_usage_error([&] { const Span wrong(shared); }, "1 pages, but there are 2 descriptors");
  shared.page_bytes = 1;
  expect_usage_error([&] { const Span wrong(shared); }, "must be a power of two of at least");
  if (on_cpu()) {
    const SharedPages wrong{.bytes = 2, .device = device(), .descriptors = {shared.descriptors[0]}};
    expect_usage_error([&] { const Span taken(wrong); }, "importing page 1 of 1");
  }
  for (const int descriptor : shared.descriptors) close(descriptor);
}

TEST_P(SpanPageSizeTest, HeatIsCountedAndEvenedOutForPagesOfThatSize) {
  Stream stream(device());
  Span span(device(), 4 * kLarge, Placement::map({here(), here(), Place::host(), Place::host()}),
            {.page_bytes = kLarge});
  const auto bytes = some_bytes(span.bytes(), 34);
  write(span, stream, bytes);
  const PageHeat heat(stream, span.data(), span.page_count(), span.page_bytes());
  EXPECT_EQ(heat.page_bytes(), kLarge);
  const Buffer counts(device(), MemoryKind::pinned, 4 * sizeof(std::uint32_t));
  PageCounter counter = heat.counter();
  std::uint32_t* const on_device = std::exchange(counter.counts, counts.as<std::uint32_t>());
  std::memset(counts.data(), 0, counts.bytes());
  for (int i = 0; i < 100; ++i) counter.touch(CpuGroup{}, span.data() + 4 * kLarge - 1);
  counter.touch(CpuGroup{}, span.data() + kLarge - 1);
  counter.touch(CpuGroup{}, span.data() + 2 * kLarge);
  ASSERT_OK(stream.copy(on_device, counts.data(), counts.bytes()));
  EXPECT_EQ(heat.read(stream), (std::vector<std::uint64_t>{1, 0, 1, 100}));
  EXPECT_EQ(rebalance(span, stream, heat, 2 * kLarge), 2U);
  EXPECT_EQ(span.places(), (std::vector<Place>{here(), Place::host(), Place::host(), here()}));
  EXPECT_TRUE(read(span, stream) == bytes);
  const PageHeat fine(stream, span.data(), 4);
  expect_usage_error([&] { rebalance(span, stream, fine, kLarge); },
                     "pages of 8 MiB, but the counts are for pages of 2 MiB");
  EXPECT_THROW(PageHeat(stream, span.data(), 4, 3 * kPageBytes), UsageError);
  EXPECT_THROW(PageHeat(stream, span.data(), 4, 0), UsageError);
}

TEST_P(SpanPageSizeTest, ASampledSpanMayHaveThem) {
  Stream stream(device());
  AccessProfile profile;
  profile.bytes = 4 * kLarge;
  profile.budget_bytes = kLarge;
  const auto sample = [](StreamRef on, Span& data, PageCounter) { return on.fill(data.data(), 7, data.bytes()); };
  const Span span = sampled_span(stream, profile, sample, {.page_bytes = kLarge});
  EXPECT_EQ(span.page_count(), 4U);
  EXPECT_TRUE(read(span, stream) == std::vector<std::byte>(4 * kLarge, std::byte{7}));
}

HEADRACE_ON_EVERY_DEVICE(SpanPageSizeTest);

TEST(CpuSpanPageSize, AFullDeviceIsRearrangedThroughOnePage) {
  setenv("HEADRACE_CPU_MEMORY", std::to_string(3 * kLarge).c_str(), 1);
  const Device device = Device::parse("cpu:57");
  unsetenv("HEADRACE_CPU_MEMORY");
  Stream stream(device);
  const Place here = Place::on(device);
  Span span(device, 6 * kLarge, Placement::blocked({here, Place::host()}), {.page_bytes = kLarge});
  EXPECT_EQ(device.memory().free_bytes, 0U);
  const auto bytes = some_bytes(span.bytes(), 35);
  std::memcpy(span.data(), bytes.data(), bytes.size());
  span.move(stream, Placement::blocked({Place::host(), here}));
  EXPECT_EQ(span.places(), Placement::blocked({Place::host(), here}).pages(6));
  EXPECT_EQ(std::memcmp(span.data(), bytes.data(), bytes.size()), 0);
  try {
    span.move(stream, Placement::all(here));
    FAIL() << "must throw";
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.code(), Errc::out_of_memory);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("needs 24 MiB more on cpu:57"));
  }
  span.release();
  EXPECT_EQ(device.memory().free_bytes, 3 * kLarge);
}

}  // namespace
}  // namespace headrace::testing
