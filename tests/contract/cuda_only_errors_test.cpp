#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "cuda_only.hpp"
#include "device/cuda/error.hpp"
#include "device/cuda/gather.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/kernel.hpp"
#include "headrace/device/stream.hpp"

namespace headrace {
namespace {

using detail::cuda::to_error;

TEST(CudaErrors, KeepTheNativeCodeAndSayWhatToActOn) {
  EXPECT_EQ(to_error(cudaErrorMemoryAllocation), (Error{Errc::out_of_memory, cudaErrorMemoryAllocation}));
  EXPECT_EQ(to_error(cudaErrorNotSupported), (Error{Errc::not_supported, cudaErrorNotSupported}));
  EXPECT_EQ(to_error(cudaErrorInvalidValue), (Error{Errc::invalid_argument, cudaErrorInvalidValue}));
  EXPECT_EQ(to_error(cudaErrorNoDevice), (Error{Errc::not_found, cudaErrorNoDevice}));
  for (const auto sticky : {cudaErrorIllegalAddress, cudaErrorLaunchFailure, cudaErrorAssert, cudaErrorECCUncorrectable,
                            cudaErrorMisalignedAddress, cudaErrorIllegalInstruction, cudaErrorUnknown}) {
    EXPECT_EQ(to_error(sticky), (Error{Errc::device_fault, sticky}));
  }
}

TEST(CudaErrors, AQueryThatIsNotReadyIsNoError) {
  const auto not_ready = detail::cuda::to_ready(cudaErrorNotReady);
  ASSERT_TRUE(not_ready);
  EXPECT_FALSE(*not_ready);
  EXPECT_FALSE(detail::cuda::to_ready(cudaErrorLaunchFailure));
}

class CudaErrorsOn : public ::testing::TestWithParam<Device> {};

TEST_P(CudaErrorsOn, ARefusedAllocationDoesNotFailWhatFollows) {
  const auto refused = Buffer::allocate(GetParam(), MemoryKind::device, std::size_t{1} << 50);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), (Error{Errc::out_of_memory, cudaErrorMemoryAllocation}));
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  EXPECT_TRUE(Buffer::allocate(GetParam(), MemoryKind::device, 4096));
}

TEST_P(CudaErrorsOn, AKernelWithoutACudaEntryIsRefused) {
  const Stream stream(GetParam());
  const Kernel kernel{.name = "host only"};
  EXPECT_EQ(stream.launch(kernel, {}, {}).error().code, Errc::not_supported);
  EXPECT_EQ(stream.launch_resident(kernel, {}, {}).error().code, Errc::not_supported);
  EXPECT_EQ(GetParam().resident_blocks_max(kernel, 32), 0U);
}

TEST_P(CudaErrorsOn, MoreItemsThanAGridHoldsAreRefused) {
  const Stream stream(GetParam());
  Kernel kernel{.name = "gather"};
  kernel.set_entry(DeviceKind::cuda, detail::cuda::gather_inline_kernel(1));
  const auto status = stream.launch(kernel, {.blocks = 1, .threads = 32, .items = 65536}, {});
  EXPECT_EQ(status.error(), (Error{Errc::invalid_argument, cudaErrorInvalidConfiguration}));
  EXPECT_TRUE(stream.wait());
}

TEST_P(CudaErrorsOn, AResidentKernelThatDoesNotFitIsToldHowMuchDoes) {
  const Stream stream(GetParam());
  Kernel kernel{.name = "gather"};
  kernel.set_entry(DeviceKind::cuda, detail::cuda::gather_list_kernel());
  const std::uint32_t most = GetParam().resident_blocks_max(kernel, detail::cuda::kGatherThreads);
  ASSERT_GT(most, 0U);
  const auto status = stream.launch_resident(kernel, {.blocks = most + 1, .threads = detail::cuda::kGatherThreads}, {});
  EXPECT_EQ(status.error(), (Error{Errc::not_supported, static_cast<int>(most)}));
}

TEST_P(CudaErrorsOn, TimeBetweenEventsNeedsTimingAndTheirEnd) {
  const Stream stream(GetParam());
  const Event untimed(GetParam());
  const Event begin(GetParam(), EventTiming::on);
  const Event end(GetParam(), EventTiming::on);
  EXPECT_EQ(end.since(begin).error().code, Errc::invalid_argument);  // never recorded
  ASSERT_TRUE(stream.record(begin));
  ASSERT_TRUE(stream.record(untimed));
  ASSERT_TRUE(stream.record(end));
  ASSERT_TRUE(end.wait());
  EXPECT_EQ(untimed.since(begin).error().code, Errc::invalid_argument);
  const auto between = end.since(begin);
  ASSERT_TRUE(between);
  EXPECT_GE(between->count(), 0);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CudaErrorsOn);
INSTANTIATE_TEST_SUITE_P(Devices, CudaErrorsOn, ::testing::ValuesIn(testing::cuda_devices()),
                         testing::device_test_name);

}  // namespace
}  // namespace headrace
