#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <span>

#include "cuda_only.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/detail/foreign_memory.hpp"

/// Handles that no other process has made. tests/python/test_wire_cuda_shared_memory.py opens those of another one.
namespace headrace {
namespace {

class CudaForeignMemoryOn : public ::testing::TestWithParam<Device> {};

TEST_P(CudaForeignMemoryOn, HandlesThatAreNoneAreRefusedAndTheDeviceGoesOn) {
  std::array<std::byte, kMemoryHandleBytes> handle{};
  for (std::size_t round = 0; round < 3; ++round) {
    const auto opened = open_foreign_memory(GetParam(), handle);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, Errc::invalid_argument) << "native " << opened.error().native;
    for (std::size_t i = 0; i < handle.size(); ++i) handle[i] = static_cast<std::byte>(i * (round + 7));
  }
  EXPECT_EQ(open_foreign_memory(GetParam(), std::span(handle).first(63)).error().code, Errc::invalid_argument);
  EXPECT_TRUE(Buffer::allocate(GetParam(), MemoryKind::device, kMiB));
}

TEST_P(CudaForeignMemoryOn, AHandleOfThisProcessIsRefused) {
  const Buffer own(GetParam(), MemoryKind::device, 2 * kMiB);
  cudaIpcMemHandle_t handle{};
  ASSERT_EQ(cudaSetDevice(GetParam().ordinal()), cudaSuccess);
  ASSERT_EQ(cudaIpcGetMemHandle(&handle, own.data()), cudaSuccess);
  const auto opened = open_foreign_memory(GetParam(), std::as_bytes(std::span(&handle, 1)));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::invalid_argument) << "native " << opened.error().native;
  EXPECT_TRUE(Buffer::allocate(GetParam(), MemoryKind::device, kMiB));
}

INSTANTIATE_TEST_SUITE_P(Devices, CudaForeignMemoryOn, ::testing::ValuesIn(testing::cuda_devices()),
                         testing::device_test_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CudaForeignMemoryOn);

}  // namespace
}  // namespace headrace
