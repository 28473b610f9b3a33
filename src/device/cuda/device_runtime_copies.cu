#include <algorithm>

#include "device/cuda/listed_copies.hpp"

namespace headrace::detail::cuda {

namespace {

constexpr std::uint32_t kLanes = 32;
/// Copies that one kernel may leave pending: somewhat fewer than the device runtime reserves memory for by default
/// (CUDA C++ Programming Guide, "cudaLimitDevRuntimePendingLaunchCount").
constexpr std::uint32_t kPendingMax = 1920;

/// Whether copies [first, first + count) have one length and are evenly spaced on both sides.
__device__ bool alike(const ListedCopies& copies, std::uint32_t first, std::uint32_t count) {
  const auto at = [](const void* address) { return reinterpret_cast<std::uintptr_t>(address); };
  const std::uintptr_t to_pitch = at(copies.to[first + 1]) - at(copies.to[first]);
  const std::uintptr_t from_pitch = at(copies.from[first + 1]) - at(copies.from[first]);
  const std::uint32_t bytes = copies.bytes[first];
  if (to_pitch < bytes || from_pitch < bytes || to_pitch >> 31 != 0 || from_pitch >> 31 != 0) return false;
  for (std::uint32_t i = first + 1; i < first + count; ++i) {
    if (copies.bytes[i] != bytes || at(copies.to[i]) - at(copies.to[i - 1]) != to_pitch ||
        at(copies.from[i]) - at(copies.from[i - 1]) != from_pitch) {
      return false;
    }
  }
  return true;
}

/// Each lane takes `merge` consecutive copies. If a copy cannot be started, the kernel traps, and the host sees the
/// fault like any other.
__global__ void copy_from_device(ListedCopies copies) {
  cudaStream_t stream = nullptr;
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) __trap();
  for (std::uint32_t first = threadIdx.x * copies.merge; first < copies.count; first += kLanes * copies.merge) {
    const std::uint32_t here = min(copies.merge, copies.count - first);
    if (here > 1 && alike(copies, first, here)) {
      const auto pitch = [](const void* a, const void* b) {
        return static_cast<std::size_t>(static_cast<const char*>(b) - static_cast<const char*>(a));
      };
      if (cudaMemcpy2DAsync(copies.to[first], pitch(copies.to[first], copies.to[first + 1]), copies.from[first],
                            pitch(copies.from[first], copies.from[first + 1]), copies.bytes[first], here,
                            cudaMemcpyDeviceToDevice, stream) != cudaSuccess) {
        __trap();
      }
      continue;
    }
    for (std::uint32_t i = first; i < first + here; ++i) {
      if (cudaMemcpyAsync(copies.to[i], copies.from[i], copies.bytes[i], cudaMemcpyDeviceToDevice, stream) !=
          cudaSuccess) {
        __trap();
      }
    }
  }
  cudaStreamDestroy(stream);
}

}  // namespace

cudaError_t device_runtime_copies(const ListedCopies& copies, cudaStream_t stream) noexcept {
  for (std::uint32_t first = 0; first < copies.count; first += kPendingMax) {
    ListedCopies now = copies;
    now.to += first;
    now.from += first;
    now.bytes += first;
    now.count = std::min(kPendingMax, copies.count - first);
    copy_from_device<<<1, kLanes, 0, stream>>>(now);
    const cudaError_t status = cudaGetLastError();
    if (status != cudaSuccess) return status;
  }
  return cudaSuccess;
}

}  // namespace headrace::detail::cuda
