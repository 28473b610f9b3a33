#include "tests/contract/kernels.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "device/occupancy.hpp"
#include "tests/contract/devices.hpp"

namespace headrace::testing {
namespace {

class KernelTest : public DeviceTest {};
HEADRACE_ON_EVERY_DEVICE(KernelTest);

TEST_P(KernelTest, RunsBetweenCopies) {
  constexpr std::uint32_t kCount = 10000;
  std::vector<std::uint32_t> words(kCount);
  for (std::uint32_t i = 0; i < kCount; ++i) words[i] = i * 7;
  Stream stream(device());
  Buffer host(device(), MemoryKind::pinned, kCount * sizeof(std::uint32_t));
  Buffer data(device(), MemoryKind::device, host.bytes());
  std::memcpy(host.data(), words.data(), host.bytes());
  ASSERT_OK(stream.copy(data.data(), host.data(), host.bytes()));
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(launch(stream, add_kernel(), {.blocks = 4, .threads = 128}, data.as<std::uint32_t>(), kCount, 5U));
  }
  ASSERT_OK(stream.copy(host.data(), data.data(), host.bytes()));
  ASSERT_OK(stream.wait());
  for (std::uint32_t i = 0; i < kCount; ++i) ASSERT_EQ(host.as<std::uint32_t>()[i], i * 7 + 15) << i;
}

TEST_P(KernelTest, EightArgumentsOfAllSizes) {
  Stream stream(device());
  Buffer out(device(), MemoryKind::mapped, 7 * sizeof(std::uint64_t));
  Wide wide{};
  std::uint64_t expected = 0;
  for (std::uint64_t i = 0; i < std::size(wide.words); ++i) {
    wide.words[i] = i * i + 3;
    expected = expected * 31 + wide.words[i];
  }
  ASSERT_OK(launch(stream, eight_arguments_kernel(), {}, out.as<std::uint64_t>(), std::uint8_t{200},
                   std::uint16_t{60000}, std::uint32_t{4000000000U}, std::uint64_t{1} << 60, 16777215.0F, 1e15, wide));
  wide = {};  // the arguments have been copied
  ASSERT_OK(stream.wait());
  const auto* words = out.as<std::uint64_t>();
  EXPECT_EQ(words[0], 200U);
  EXPECT_EQ(words[1], 60000U);
  EXPECT_EQ(words[2], 4000000000U);
  EXPECT_EQ(words[3], std::uint64_t{1} << 60);
  EXPECT_EQ(words[4], 16777215U);
  EXPECT_EQ(words[5], 1000000000000000U);
  EXPECT_EQ(words[6], expected);
}

TEST_P(KernelTest, ArgumentsAreConvertedToTheTypesOfTheKernel) {
  Stream stream(device());
  Buffer data(device(), MemoryKind::mapped, 2 * sizeof(std::uint64_t));
  auto* const words = data.as<std::uint32_t>();
  std::fill_n(words, 4, 7U);
  const std::int64_t count = 2;
  const std::uint8_t by = 3;
  ASSERT_OK(launch(stream, add_kernel(), {}, words, count, by));
  ASSERT_OK(stream.wait());
  EXPECT_EQ(std::vector<std::uint32_t>(words, words + 4), (std::vector<std::uint32_t>{10, 10, 7, 7}));

  // Literals are ints and doubles, whatever the parameter's width.
  Buffer out(device(), MemoryKind::mapped, 7 * sizeof(std::uint64_t));
  const Wide wide{};
  ASSERT_OK(launch(stream, eight_arguments_kernel(), {}, out.as<std::uint64_t>(), 200, 60000, 3, 4, 5, 6.0F, wide));
  ASSERT_OK(stream.wait());
  const auto* found = out.as<std::uint64_t>();
  EXPECT_EQ(std::vector<std::uint64_t>(found, found + 7), (std::vector<std::uint64_t>{200, 60000, 3, 4, 5, 6, 0}));
}

TEST_P(KernelTest, IntegersThatTheirParameterCannotHoldAreRefused) {
  Stream stream(device());
  Buffer data(device(), MemoryKind::mapped, sizeof(std::uint32_t));
  auto* const word = data.as<std::uint32_t>();
  *word = 7;
  const std::uint64_t wide = std::uint64_t{1} << 32;
  EXPECT_TRUE(failed_with(launch(stream, add_kernel(), {}, word, 1, -1), Errc::invalid_argument));
  EXPECT_TRUE(failed_with(launch(stream, add_kernel(), {}, word, wide + 1, 1), Errc::invalid_argument));
  EXPECT_TRUE(failed_with(launch_resident(stream, add_kernel(), {}, word, 1, -1), Errc::invalid_argument));
  ASSERT_OK(stream.wait());
  EXPECT_EQ(*word, 7U);
}

TEST_P(KernelTest, AnotherNumberOfAddressesIsRefused) {
  Stream stream(device());
  std::uint32_t* words = nullptr;
  std::uint32_t one = 1;
  const std::array<void*, 4> addresses{static_cast<void*>(&words), &one, &one, nullptr};
  for (const std::size_t count : {0U, 2U, 4U}) {
    const auto some = std::span(addresses).first(count);
    EXPECT_TRUE(failed_with(stream.launch(add_kernel(), {}, some), Errc::invalid_argument)) << count;
    EXPECT_TRUE(failed_with(stream.launch_resident(add_kernel(), {}, some), Errc::invalid_argument)) << count;
  }
  ASSERT_OK(stream.wait());
}

// Conversions that must not compile. launch() has the same requirement.
using detail::keeps_value;
using detail::kTakes;
static_assert(kTakes<std::uint64_t, int> && kTakes<const void*, int*> && kTakes<float, double> && kTakes<double, int>);
static_assert(!kTakes<float*, double*> && !kTakes<int*, const int*> && !kTakes<std::uint32_t, float>);
static_assert(!kTakes<std::uint64_t*, std::uint64_t> && !kTakes<Wide, int>);
static_assert(keeps_value<std::uint64_t>(3) && !keeps_value<std::uint64_t>(-1) && keeps_value<std::int8_t>(-128));
static_assert(!keeps_value<std::int32_t>(0x80000000U) && !keeps_value<bool>(2) && keeps_value<bool>(1));
template <class SomeKernel>
inline constexpr bool kLaunches = requires(Stream stream, SomeKernel kernel) { launch(stream, kernel, {}, 1); };
static_assert(kLaunches<TypedKernel<int>> && !kLaunches<Kernel>, "a kernel of unknown arguments needs their addresses");

// The rules of occupancy() agree with the device's own answer, if it has one.
TEST_P(KernelTest, ResourcesGiveTheBlocksThatAreResident) {
  const KernelResources resources = device().kernel_resources(add_kernel());
  if (device().kind() == DeviceKind::cpu) {
    EXPECT_EQ(resources, KernelResources{});
    return;
  }
  EXPECT_GT(resources.registers, 0U);
  EXPECT_GE(resources.threads_max, 128U);
  const GpuLimits gpu = limits_of(device());
  for (const std::uint32_t threads : {32U, 64U, 128U, 256U, 512U}) {
    EXPECT_EQ(occupancy(gpu, resources, threads).blocks * gpu.multiprocessors,
              device().resident_blocks_max(add_kernel(), threads))
        << threads;
  }
}

TEST_P(KernelTest, EveryItemRunsOnce) {
  constexpr std::uint32_t kItems = 97;
  constexpr std::uint32_t kStride = 2;
  Stream stream(device());
  Buffer seen(device(), MemoryKind::mapped, kItems * kStride * sizeof(std::uint32_t));
  std::memset(seen.data(), 0, seen.bytes());
  ASSERT_OK(
      launch(stream, items_kernel(), {.blocks = 2, .threads = 64, .items = kItems}, seen.as<std::uint32_t>(), kStride));
  ASSERT_OK(stream.wait());
  for (std::uint32_t i = 0; i < kItems; ++i) {
    EXPECT_EQ(seen.as<std::uint32_t>()[i * kStride], i + 1);
    EXPECT_EQ(seen.as<std::uint32_t>()[i * kStride + 1], kItems);
  }
}

/// Compares every thread's report with a serial reference, whatever the number of threads the device ran.
void expect_reports(const std::vector<std::uint64_t>& values, const GroupReport* reports) {
  const std::uint32_t size = reports[0].size;
  const std::uint32_t blocks = reports[0].block_count;
  ASSERT_GE(size, 1U);
  ASSERT_EQ(reports[0].thread_count, size * blocks);
  for (std::uint32_t block = 0; block < blocks; ++block) {
    std::uint64_t total = 0;
    for (std::uint32_t rank = 0; rank < size; ++rank) total += values[block * size + rank];
    std::uint64_t before = 0;
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      const GroupReport& report = reports[block * size + rank];
      ASSERT_EQ(report.rank, rank);
      ASSERT_EQ(report.block, block);
      ASSERT_EQ(report.sum, total) << "block " << block << " rank " << rank;
      ASSERT_EQ(report.total, total);
      ASSERT_EQ(report.before, before) << "block " << block << " rank " << rank;
      ASSERT_EQ(report.broadcast, static_cast<std::uint32_t>(values[block * size]));
      ASSERT_EQ(report.any, values[block * size + size - 1] % 2) << "block " << block << " rank " << rank;
      before += values[block * size + rank];
    }
  }
}

TEST_P(KernelTest, GroupFunctionsAgreeWithASerialReference) {
  constexpr std::uint32_t kBlocks = 3;
  Stream stream(device());
  std::mt19937_64 random(5);
  for (const std::uint32_t threads : {1U, 2U, 31U, 32U, 33U, 100U, 128U, 257U, 1024U}) {
    SCOPED_TRACE(threads);
    std::vector<std::uint64_t> values(kBlocks * threads);
    for (auto& value : values) value = random() >> 16;
    Buffer in(device(), MemoryKind::mapped, values.size() * sizeof(std::uint64_t));
    Buffer out(device(), MemoryKind::mapped, values.size() * sizeof(GroupReport));
    std::memcpy(in.data(), values.data(), in.bytes());
    std::memset(out.data(), 0, out.bytes());
    ASSERT_OK(launch(stream, group_kernel(), {.blocks = kBlocks, .threads = threads},
                     static_cast<const std::uint64_t*>(in.as<std::uint64_t>()), out.as<GroupReport>()));
    ASSERT_OK(stream.wait());
    expect_reports(values, out.as<GroupReport>());
  }
}

TEST_P(KernelTest, BadShapesAreRefused) {
  Stream stream(device());
  Buffer data(device(), MemoryKind::device, 64);
  for (const LaunchShape shape : {LaunchShape{.blocks = 0}, LaunchShape{.threads = 0}, LaunchShape{.items = 0}}) {
    EXPECT_TRUE(
        failed_with(launch(stream, add_kernel(), shape, data.as<std::uint32_t>(), 1U, 1U), Errc::invalid_argument));
    EXPECT_TRUE(failed_with(launch_resident(stream, add_kernel(), shape, data.as<std::uint32_t>(), 1U, 1U),
                            Errc::invalid_argument));
  }
  EXPECT_OK(stream.wait());
}

TEST_P(KernelTest, KernelWithoutCodeForTheDeviceIsRefused) {
  Stream stream(device());
  auto kernel = add_kernel();
  kernel.entries = {};
  EXPECT_TRUE(
      failed_with(launch(stream, kernel, {}, static_cast<std::uint32_t*>(nullptr), 0U, 0U), Errc::not_supported));
}

}  // namespace
}  // namespace headrace::testing
