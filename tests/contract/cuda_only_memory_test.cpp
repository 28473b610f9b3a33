#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstring>

#include "cuda_only.hpp"
#include "device/cuda/size_class_pool.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/device/buffer.hpp"

namespace headrace {
namespace {

using detail::cuda::SizeClassPool;

TEST(CudaSizeClasses, WasteAtMostAnEighthAndStayAligned) {
  for (std::size_t bytes = 1; bytes < 64 * kMiB; bytes += bytes / 7 + 1) {
    const std::size_t rounded = SizeClassPool::rounded(bytes);
    EXPECT_GE(rounded, bytes);
    EXPECT_LE(rounded, std::max<std::size_t>(256, bytes + bytes / 8 + 1)) << bytes;
    EXPECT_EQ(SizeClassPool::rounded(rounded), rounded) << "each class is separate";
  }
}

class CudaMemoryOn : public ::testing::TestWithParam<Device> {};

TEST_P(CudaMemoryOn, ManagedMemoryBeyondWhatIsFreeIsRefusedBeforeCudaSeesIt) {
  const std::size_t free_before = GetParam().memory().free_bytes;
  const auto refused = Buffer::allocate(GetParam(), MemoryKind::managed, free_before + kGiB);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), (Error{Errc::out_of_memory, cudaErrorMemoryAllocation}));
}

TEST_P(CudaMemoryOn, ManagedMemoryIsRefusedWhenItsSumGoesBeyondWhatIsFree) {
  // The card is filled first, so that this test needs little managed memory.
  constexpr std::size_t kLeft = 2 * kGiB;
  const std::size_t free_before = GetParam().memory().free_bytes;
  Buffer filler;
  if (free_before > kLeft) filler = Buffer(GetParam(), MemoryKind::device, free_before - kLeft);
  const std::size_t most_of_it = GetParam().memory().free_bytes / 4 * 3;
  auto first = Buffer::allocate(GetParam(), MemoryKind::managed, most_of_it);
  ASSERT_TRUE(first);
  EXPECT_FALSE(Buffer::allocate(GetParam(), MemoryKind::managed, most_of_it));
  first->reset();
  EXPECT_TRUE(Buffer::allocate(GetParam(), MemoryKind::managed, most_of_it)) << "returned memory no longer counts";
}

TEST_P(CudaMemoryOn, ThePoolGivesABlockAgainForASizeOfItsClass) {
  Buffer first(GetParam(), MemoryKind::pool, 100000);
  std::byte* const block = first.data();
  first.reset();
  const Buffer again(GetParam(), MemoryKind::pool, 99500);
  EXPECT_EQ(again.data(), block);
  const Buffer other(GetParam(), MemoryKind::pool, 99500);
  EXPECT_NE(other.data(), block);
}

TEST_P(CudaMemoryOn, MappedAndManagedMemoryHaveOneAddressOnBothSides) {
  for (const auto kind : {MemoryKind::mapped, MemoryKind::managed}) {
    const Stream stream(GetParam());
    const Buffer buffer(GetParam(), kind, 8192);
    std::memset(buffer.data(), 1, 8192);
    ASSERT_TRUE(stream.fill(buffer.data(), 7, 4096));  // written by the device
    ASSERT_TRUE(stream.wait());
    EXPECT_EQ(buffer.host()[4095], std::byte{7}) << to_string(kind);
    EXPECT_EQ(buffer.host()[4096], std::byte{1}) << to_string(kind);
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CudaMemoryOn);
INSTANTIATE_TEST_SUITE_P(Devices, CudaMemoryOn, ::testing::ValuesIn(testing::cuda_devices()),
                         testing::device_test_name);

}  // namespace
}  // namespace headrace
