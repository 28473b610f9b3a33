#include "headrace/device/detail/managed.hpp"

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"
#include "tests/contract/devices.hpp"
#include "tests/contract/kernels.hpp"

namespace headrace::testing {
namespace {

class ManagedMemoryTest : public DeviceTest {
 protected:
  void SetUp() override {
    const DeviceProperties& properties = device().properties();
    if (!properties.concurrent_managed_access) GTEST_SKIP() << "no managed memory that both sides can use at once";
  }
};
HEADRACE_ON_EVERY_DEVICE(ManagedMemoryTest);

TEST_P(ManagedMemoryTest, HostAndDeviceSeeOneAnothersBytesUnderEveryHint) {
  constexpr std::size_t kManagedBytes = 4 * kMiB + 12;
  constexpr std::size_t kHalf = 2 * kMiB;
  const Stream stream(device());
  ManagedMemory memory(device(), kManagedBytes);
  EXPECT_EQ(memory.bytes(), kManagedBytes);
  EXPECT_EQ(memory.device(), device());
  const auto add_everywhere = [&] {
    EXPECT_OK(launch(stream, add_kernel(), {.blocks = 8, .threads = 128},
                     reinterpret_cast<std::uint32_t*>(memory.data()), static_cast<std::uint32_t>(kManagedBytes / 4),
                     std::uint32_t{0x01010101}));
    EXPECT_OK(stream.wait());
  };
  std::memset(memory.data(), 0, kManagedBytes);
  add_everywhere();
  ASSERT_OK(memory.prefer(0, kHalf, Place::on(device())));
  ASSERT_OK(memory.prefer(kHalf, kManagedBytes - kHalf, Place::host()));
  ASSERT_OK(memory.keep_mapped(0, kManagedBytes));
  ASSERT_OK(memory.prefetch(stream, 0, kHalf, Place::on(device())));
  add_everywhere();
  ASSERT_OK(memory.prefetch(stream, 0, kManagedBytes, Place::host()));
  add_everywhere();
  for (std::size_t i = 0; i < kManagedBytes; ++i) ASSERT_EQ(memory.data()[i], std::byte{3}) << i;
}

TEST_P(ManagedMemoryTest, PagesSmallerThanThoseOfASpanArePlaced) {
  constexpr std::size_t kPage = 64 * kKiB;
  constexpr std::size_t kManagedBytes = 33 * kPage + 100;  // the last page is incomplete
  const Stream stream(device());
  ManagedMemory memory(device(), kManagedBytes);
  for (std::size_t i = 0; i < kManagedBytes; ++i) memory.data()[i] = static_cast<std::byte>(i * 7);
  std::vector<std::uint64_t> heat(34);
  for (std::size_t i = 0; i < heat.size(); ++i) heat[i] = (i * 11) % 34;
  for (const Placement& placement : {Placement::interleaved({{Place::on(device()), 2}, {Place::host(), 1}}),
                                     Placement::budget(device(), 9 * kPage, heat), Placement::all(Place::host())}) {
    memory.place(stream, placement, kPage);
    EXPECT_OK(launch(stream, add_kernel(), {.blocks = 8, .threads = 128},
                     reinterpret_cast<std::uint32_t*>(memory.data()), static_cast<std::uint32_t>(kManagedBytes / 4),
                     std::uint32_t{0x01010101}));
    EXPECT_OK(stream.wait());
  }
  const auto byte_after = [](std::size_t i) {  // the kernel adds to words, so bytes carry
    std::uint32_t word = 0;
    for (std::size_t b = 0; b < 4; ++b) word |= static_cast<std::uint32_t>((i / 4 * 4 + b) * 7 & 0xFF) << (8 * b);
    return static_cast<std::byte>((word + 3 * 0x01010101U) >> (8 * (i % 4)));
  };
  for (std::size_t i = 0; i < kManagedBytes; ++i) ASSERT_EQ(memory.data()[i], byte_after(i)) << i;
}

TEST_P(ManagedMemoryTest, APlacementThatDoesNotFitIsRefused) {
  const Stream stream(device());
  ManagedMemory memory(device(), 3 * 4 * kKiB + 1);
  const Placement four = Placement::map(std::vector<Place>(4, Place::host()));
  memory.place(stream, four, 4 * kKiB);
  for (const std::size_t page_bytes : {std::size_t{0}, 2 * kKiB, 12 * kKiB}) {
    EXPECT_THROW(memory.place(stream, Placement::all(Place::host()), page_bytes), UsageError) << page_bytes;
  }
  EXPECT_THROW(memory.place(stream, four, 8 * kKiB), UsageError) << "of two pages";
}

TEST_P(ManagedMemoryTest, RangesOutsideAndPlacesOfAnotherKindAreRefused) {
  const Stream stream(device());
  ManagedMemory memory(device(), 4096);
  const Place here = Place::on(device());
  for (const auto& [offset, bytes] : {std::pair<std::size_t, std::size_t>{0, 4097}, {4097, 0}, {1, ~std::size_t{0}}}) {
    EXPECT_TRUE(failed_with(memory.prefer(offset, bytes, here), Errc::invalid_argument)) << offset;
    EXPECT_TRUE(failed_with(memory.keep_mapped(offset, bytes), Errc::invalid_argument)) << offset;
    EXPECT_TRUE(failed_with(memory.prefetch(stream, offset, bytes, here), Errc::invalid_argument)) << offset;
  }
  EXPECT_OK(memory.prefer(4096, 0, here)) << "no page lies within it";
  if (on_cpu()) return;
  const Place cpu = Place::on(Device::parse("cpu"));
  const Stream cpu_stream(Device::parse("cpu"));
  EXPECT_TRUE(failed_with(memory.prefer(0, 4096, cpu), Errc::invalid_argument));
  EXPECT_TRUE(failed_with(memory.prefetch(stream, 0, 4096, cpu), Errc::invalid_argument));
  EXPECT_TRUE(failed_with(memory.prefetch(cpu_stream, 0, 4096, here), Errc::invalid_argument));
}

TEST_P(ManagedMemoryTest, NeverMoreThanIsFree) {
  EXPECT_THROW(ManagedMemory(device(), 0), UsageError);
  const std::size_t free_before = device().memory().free_bytes;
  try {
    const ManagedMemory memory(device(), free_before + kGiB);
    FAIL() << "must throw";
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.code(), Errc::out_of_memory);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("of managed memory on " + device().name()));
  }
}

TEST(ManagedMemoryOnCpuTest, IsCountedAndGivenBack) {
  const Device device = Device::parse("cpu:61");
  const std::size_t free_before = device.memory().free_bytes;
  {
    ManagedMemory first(device, kMiB);
    std::byte* const data = first.data();
    EXPECT_EQ(device.memory().free_bytes, free_before - kMiB);
    ManagedMemory second = std::move(first);
    EXPECT_EQ(second.data(), data);
    EXPECT_EQ(first.data(), nullptr);
    second = ManagedMemory(device, 2 * kMiB);
    EXPECT_EQ(second.bytes(), 2 * kMiB);
  }
  EXPECT_EQ(device.memory().free_bytes, free_before);
}

}  // namespace
}  // namespace headrace::testing
