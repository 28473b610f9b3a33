#include "headrace/device/rebalance.hpp"

#include <cstdint>
#include <numeric>
#include <vector>

#include "tests/contract/devices.hpp"
#include "tests/contract/page_kernels.hpp"

namespace headrace::testing {
namespace {

class AdvisedSpanTest : public DeviceTest {
 protected:
  void SetUp() override {
    if (!on_cpu() && !device().properties().virtual_memory_management) GTEST_SKIP() << "this device has no spans";
  }
};
HEADRACE_ON_EVERY_DEVICE(AdvisedSpanTest);

constexpr std::uint32_t kAdvisedPages = 8;
constexpr LaunchShape kAdvisedShape{.blocks = 4, .threads = 64};

AccessProfile profile() {
  AccessProfile profile;
  profile.pattern = AccessPattern::random_warp;
  profile.bytes = kAdvisedPages * kPageBytes;
  profile.budget_bytes = kAdvisedPages / 2 * kPageBytes;
  return profile;
}

std::size_t on_device(const Span& span) {
  std::size_t count = 0;
  for (const Place& place : span.places()) count += place.is_host() ? 0 : 1;
  return count;
}

Status number(StreamRef stream, const Span& span) {
  return launch(stream, number_pages_kernel(), kAdvisedShape, span.data(), kAdvisedPages);
}

/// The sum of the first words of all pages, read by the device.
std::uint64_t sum_of_pages(const Stream& stream, const Span& span) {
  const Buffer list(stream.device(), MemoryKind::mapped, kAdvisedPages * sizeof(std::uint32_t));
  std::iota(list.as<std::uint32_t>(), list.as<std::uint32_t>() + kAdvisedPages, 0U);
  const Buffer sum(stream.device(), MemoryKind::device, sizeof(std::uint64_t));
  const Buffer result(stream.device(), MemoryKind::pinned, sizeof(std::uint64_t));
  const PageHeat heat(stream, span.data(), kAdvisedPages);
  EXPECT_OK(stream.fill(sum.data(), 0, sum.bytes()));
  EXPECT_OK(launch(stream, visit_pages_kernel(), kAdvisedShape, static_cast<const std::byte*>(span.data()),
                   static_cast<const std::uint32_t*>(list.as<std::uint32_t>()), kAdvisedPages, heat.counter(),
                   sum.as<std::uint64_t>()));
  EXPECT_OK(stream.copy(result.data(), sum.data(), sum.bytes()));
  EXPECT_OK(stream.wait());
  return *result.as<std::uint64_t>();
}

TEST_P(AdvisedSpanTest, IsPlacedAsAdvised) {
  const Span dealt = Span::advised(device(), profile(), find_memory_rates("H100"));
  EXPECT_EQ(dealt.bytes(), kAdvisedPages * kPageBytes);
  EXPECT_EQ(on_device(dealt), kAdvisedPages / 2);
  AccessProfile once = profile();
  once.reuse = 1;
  EXPECT_EQ(on_device(Span::advised(device(), once, find_memory_rates("H100"))), 0U);
  AccessProfile fits = profile();
  fits.budget_bytes = fits.bytes;
  EXPECT_EQ(on_device(Span::advised(device(), fits, find_memory_rates("H100"))), kAdvisedPages);
  EXPECT_EQ(Span::advised(device(), fits).page_count(), kAdvisedPages);
  AccessProfile nothing = profile();
  nothing.bytes = 0;
  EXPECT_THROW(Span::advised(device(), nothing), UsageError);
}

// The pages used are on the host at first, so all of them must move up with their contents.
TEST_P(AdvisedSpanTest, TheHottestPagesComeUp) {
  const Stream stream(device());
  const Buffer list(device(), MemoryKind::mapped, 4000 * sizeof(std::uint32_t));
  const Buffer sum(device(), MemoryKind::device, sizeof(std::uint64_t));
  ASSERT_OK(stream.fill(sum.data(), 0, sum.bytes()));
  std::vector<std::uint32_t> cold;
  const Span span = sampled_span(stream, profile(), [&](StreamRef on, Span& data, PageCounter counter) -> Status {
    EXPECT_EQ(on_device(data), kAdvisedPages / 2);
    for (std::uint32_t page = 0; page < kAdvisedPages; ++page) {
      if (data.place(page).is_host()) cold.push_back(page);
    }
    for (std::size_t i = 0; i < 4000; ++i) list.as<std::uint32_t>()[i] = cold[i % cold.size()];
    if (const Status filled = number(on, data); !filled) return filled;
    return launch(on, visit_pages_kernel(), kAdvisedShape, static_cast<const std::byte*>(data.data()),
                  static_cast<const std::uint32_t*>(list.as<std::uint32_t>()), std::uint32_t{4000}, counter,
                  sum.as<std::uint64_t>());
  });
  ASSERT_EQ(cold.size(), kAdvisedPages / 2);
  for (const std::uint32_t page : cold) EXPECT_FALSE(span.place(page).is_host()) << page;
  EXPECT_EQ(on_device(span), kAdvisedPages / 2);
  EXPECT_EQ(sum_of_pages(stream, span), kAdvisedPages * (kAdvisedPages + 1) / 2);
}

TEST_P(AdvisedSpanTest, ASampleThatFailsIsToldOf) {
  const Stream stream(device());
  const auto fails = [](StreamRef, Span&, PageCounter) -> Status { return Errc::not_supported; };
  EXPECT_THROW(static_cast<void>(sampled_span(stream, profile(), fails)), DeviceError);
  // Work that it had enqueued is done before the memory is freed.
  const auto fails_late = [](StreamRef on, Span& data, PageCounter) -> Status {
    static_cast<void>(number(on, data));
    return Errc::not_supported;
  };
  EXPECT_THROW(static_cast<void>(sampled_span(stream, profile(), fails_late)), DeviceError);
}

TEST_P(AdvisedSpanTest, CountsOfAnotherSpanAreRefused) {
  const Stream stream(device());
  Span span(device(), 2 * kPageBytes, Placement::all(Place::on(device())));
  const PageHeat heat(stream, span.data(), 3);
  EXPECT_THROW(rebalance(span, stream, heat, kPageBytes), UsageError);
  const PageHeat fitting(stream, span.data(), 2);
  EXPECT_EQ(rebalance(span, stream, fitting, kPageBytes), 1U);
  EXPECT_EQ(rebalance(span, stream, fitting, kPageBytes), 0U);
}

}  // namespace
}  // namespace headrace::testing
