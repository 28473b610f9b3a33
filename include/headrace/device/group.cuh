#pragma once

#include <cstdint>
#include <cuda/atomic>

#include "headrace/device/group.hpp"

namespace headrace {

/// CpuGroup's interface over the threads of a CUDA launch: blockIdx.x counts the blocks of an item,
/// blockIdx.y the items. A block has at most 1,024 threads.
class CudaGroup {
 public:
  static constexpr std::uint32_t kLanes = 1;

  [[nodiscard]] __device__ static std::uint32_t rank() noexcept { return threadIdx.x; }
  [[nodiscard]] __device__ static std::uint32_t size() noexcept { return blockDim.x; }
  [[nodiscard]] __device__ static std::uint32_t block() noexcept { return blockIdx.x; }
  [[nodiscard]] __device__ static std::uint32_t block_count() noexcept { return gridDim.x; }
  [[nodiscard]] __device__ static std::uint32_t thread() noexcept { return blockIdx.x * blockDim.x + threadIdx.x; }
  [[nodiscard]] __device__ static std::uint32_t thread_count() noexcept { return gridDim.x * blockDim.x; }
  [[nodiscard]] __device__ static std::uint32_t item() noexcept { return blockIdx.y; }
  [[nodiscard]] __device__ static std::uint32_t item_count() noexcept { return gridDim.y; }

  __device__ static void sync() noexcept { __syncthreads(); }

  template <class T>
  [[nodiscard]] __device__ static T sum(T value) noexcept {
    T total;
    static_cast<void>(sum_before(value, total));
    return total;
  }

  template <class T>
  [[nodiscard]] __device__ static T sum_before(T value, T& total) noexcept {
    __shared__ T warp_sums[kWarpsMax];
    const std::uint32_t lane = threadIdx.x % kWarp;
    const std::uint32_t warp = threadIdx.x / kWarp;
    const std::uint32_t warps = (blockDim.x + kWarp - 1) / kWarp;
    const std::uint32_t members = __activemask();
    T inclusive = value;
    for (std::uint32_t step = 1; step < kWarp; step *= 2) {
      const T below = __shfl_up_sync(members, inclusive, step);
      if (lane >= step) inclusive += below;
    }
    const bool last = lane == kWarp - 1 || threadIdx.x == blockDim.x - 1;
    if (last) warp_sums[warp] = inclusive;
    __syncthreads();
    T before{};
    total = T{};
    for (std::uint32_t w = 0; w < warps; ++w) {
      const T s = warp_sums[w];
      if (w < warp) before += s;
      total += s;
    }
    __syncthreads();  // warp_sums may be written again by the next call
    return before + inclusive - value;
  }

  template <class T>
  [[nodiscard]] __device__ static T broadcast(T value) noexcept {
    __shared__ T shared;
    if (threadIdx.x == 0) shared = value;
    __syncthreads();
    const T result = shared;
    __syncthreads();
    return result;
  }

  template <class T>
  [[nodiscard]] __device__ static T& shared() noexcept {
    __shared__ T storage;
    return storage;
  }

  template <class T>
  [[nodiscard]] __device__ static T load(const T& word) noexcept {
    return ::cuda::atomic_ref<T, ::cuda::thread_scope_system>(const_cast<T&>(word)).load(::cuda::memory_order_acquire);
  }

  template <class T>
  __device__ static void store(T& word, T value) noexcept {
    ::cuda::atomic_ref<T, ::cuda::thread_scope_system>(word).store(value, ::cuda::memory_order_release);
  }

  __device__ static void relax() noexcept { __nanosleep(kRelaxNanoseconds); }

 private:
  static constexpr std::uint32_t kWarp = 32;
  static constexpr std::uint32_t kWarpsMax = 32;
  static constexpr std::uint32_t kRelaxNanoseconds = 100;
};

}  // namespace headrace
