#include <gtest/gtest.h>

#include <algorithm>

#include "cuda_only.hpp"
#include "headrace/cuda.hpp"
#include "headrace/device/buffer.hpp"

namespace headrace {
namespace {

TEST(CudaNative, HasNoHandlesForTheCpu) {
  const Device cpu = Device::parse("cpu");
  const Stream stream(cpu);
  const Event event(cpu);
  EXPECT_THROW(static_cast<void>(cuda::native_ordinal(cpu)), UsageError);
  EXPECT_THROW(static_cast<void>(cuda::native_stream(stream)), UsageError);
  EXPECT_THROW(static_cast<void>(cuda::native_event(event)), UsageError);
  EXPECT_THROW(cuda::BorrowedStream(cpu, nullptr), UsageError);
}

class CudaNativeOn : public ::testing::TestWithParam<Device> {};

TEST_P(CudaNativeOn, GivesTheOrdinal) { EXPECT_EQ(cuda::native_ordinal(GetParam()), GetParam().ordinal()); }

TEST_P(CudaNativeOn, WorkThroughTheHandleIsInOrderWithHeadraces) {
  const Stream stream(GetParam());
  const Event event(GetParam());
  const Buffer device(GetParam(), MemoryKind::device, 4096);
  const Buffer host(GetParam(), MemoryKind::pinned, 4096);
  ASSERT_TRUE(stream.fill(device.data(), 1, 4096));
  ASSERT_EQ(cudaMemsetAsync(device.data(), 2, 4096, cuda::native_stream(stream)), cudaSuccess);
  ASSERT_TRUE(stream.copy(host.data(), device.data(), 4096));
  ASSERT_EQ(cudaEventRecord(cuda::native_event(event), cuda::native_stream(stream)), cudaSuccess);
  ASSERT_TRUE(event.wait());
  EXPECT_TRUE(std::ranges::all_of(host.host(), [](std::byte b) { return b == std::byte{2}; }));
}

TEST_P(CudaNativeOn, TakesAStreamThatOthersOwn) {
  ASSERT_EQ(cudaSetDevice(GetParam().ordinal()), cudaSuccess);
  cudaStream_t native = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&native, cudaStreamNonBlocking), cudaSuccess);
  {
    const cuda::BorrowedStream borrowed(GetParam(), native);
    EXPECT_EQ(cuda::native_stream(borrowed.ref()), native);
    EXPECT_EQ(borrowed.ref().device(), GetParam());
    const Buffer device(borrowed.ref(), MemoryKind::stream_ordered, 4096);
    EXPECT_TRUE(borrowed.ref().fill(device.data(), 3, 4096));
    EXPECT_TRUE(borrowed.ref().wait());
  }
  EXPECT_EQ(cudaStreamDestroy(native), cudaSuccess);
}

TEST_P(CudaNativeOn, TakesTheDefaultStreamsOfTheDevice) {
  const Buffer device(GetParam(), MemoryKind::device, 4096);
  const Buffer host(GetParam(), MemoryKind::pinned, 4096);
  unsigned char value = 3;
  for (const cudaStream_t native : {cudaStream_t{}, cudaStreamLegacy, cudaStreamPerThread}) {
    const cuda::BorrowedStream borrowed(GetParam(), native);
    ASSERT_TRUE(borrowed.ref().fill(device.data(), ++value, 4096));
    ASSERT_TRUE(borrowed.ref().copy(host.data(), device.data(), 4096));
    ASSERT_TRUE(borrowed.ref().wait());
    EXPECT_TRUE(std::ranges::all_of(host.host(), [&](std::byte b) { return b == std::byte{value}; }));
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CudaNativeOn);
INSTANTIATE_TEST_SUITE_P(Devices, CudaNativeOn, ::testing::ValuesIn(testing::cuda_devices()),
                         testing::device_test_name);

}  // namespace
}  // namespace headrace
