#include <cuda_occupancy.h>
#include <gtest/gtest.h>

#include "device/occupancy.hpp"

namespace headrace {
namespace {

/// Result of NVIDIA's own calculator, which needs no device, for the same GPU.
std::uint32_t by_nvidia(const GpuLimits& gpu, const KernelResources& kernel, std::uint32_t threads) {
  cudaOccDeviceProp device;
  device.computeMajor = gpu.compute_capability / 10;
  device.computeMinor = gpu.compute_capability % 10;
  device.maxThreadsPerBlock = static_cast<int>(gpu.threads_per_block);
  device.maxThreadsPerMultiprocessor = static_cast<int>(gpu.threads);
  device.regsPerBlock = static_cast<int>(gpu.registers_per_block);
  device.regsPerMultiprocessor = static_cast<int>(gpu.registers);
  device.warpSize = 32;
  device.sharedMemPerBlock = 48 * 1024;
  device.sharedMemPerMultiprocessor = gpu.shared_bytes;
  device.numSms = static_cast<int>(gpu.multiprocessors);
  device.sharedMemPerBlockOptin = gpu.shared_bytes_per_block;
  device.reservedSharedMemPerBlock = gpu.shared_bytes_reserved;
  cudaOccFuncAttributes function;
  function.maxThreadsPerBlock = 1024;
  function.numRegs = static_cast<int>(kernel.registers);
  function.sharedSizeBytes = kernel.shared_bytes;
  function.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  function.numBlockBarriers = 1;
  const cudaOccDeviceState state;
  cudaOccResult result{};
  EXPECT_EQ(cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &state, static_cast<int>(threads), 0),
            CUDA_OCC_SUCCESS);
  return static_cast<std::uint32_t>(result.activeBlocksPerMultiprocessor);
}

TEST(CudaOnlyOccupancy, AgreesWithNvidiasCalculator) {
  for (const GpuLimits& gpu : known_gpus()) {
    for (std::uint32_t threads = 32; threads <= 1024; threads += 48) {
      for (std::uint32_t registers = 16; registers <= 255; registers += 7) {
        for (const std::size_t shared : {0, 1, 1000, 4096, 17000, 49152}) {
          const KernelResources kernel{.registers = registers, .shared_bytes = shared};
          ASSERT_EQ(occupancy(gpu, kernel, threads).blocks, by_nvidia(gpu, kernel, threads))
              << gpu.name << ", " << threads << " threads, " << registers << " registers, " << shared << " bytes";
        }
      }
    }
  }
}

}  // namespace
}  // namespace headrace
