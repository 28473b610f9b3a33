#include "device/cuda/size_class_pool.hpp"

#include <cuda_runtime_api.h>

#include <bit>
#include <new>

#include "device/cuda/error.hpp"
#include "headrace/base/detail/bytes.hpp"

namespace headrace::detail::cuda {

std::size_t SizeClassPool::rounded(std::size_t bytes) noexcept {
  constexpr std::size_t kSmallest = std::size_t{1} << kSmallestLog2;
  if (bytes <= kSmallest) return kSmallest;
  const auto log2 = static_cast<std::size_t>(std::bit_width(bytes - 1)) - 1;
  return align_up(bytes, std::size_t{1} << (log2 - kStepsLog2));
}

std::size_t SizeClassPool::index(std::size_t rounded_bytes) noexcept {
  const auto log2 = static_cast<std::size_t>(std::bit_width(rounded_bytes)) - 1;
  const std::size_t step = (rounded_bytes >> (log2 - kStepsLog2)) & ((std::size_t{1} << kStepsLog2) - 1);
  return ((log2 - kSmallestLog2) << kStepsLog2) + step;
}

Result<void*> SizeClassPool::take(std::size_t bytes) noexcept {
  if (bytes > std::size_t{1} << 62) return Errc::out_of_memory;
  const std::size_t block_bytes = rounded(bytes);
  {
    const std::lock_guard lock(mutex_);
    auto& blocks = free_[index(block_bytes)];
    if (!blocks.empty()) {
      void* const data = blocks.back();
      blocks.pop_back();
      return data;
    }
  }
  void* data = nullptr;
  cudaError_t status = cudaMalloc(&data, block_bytes);
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    trim();  // free blocks of other classes may occupy the memory
    status = cudaMalloc(&data, block_bytes);
  }
  if (status != cudaSuccess) return to_error(status);
  return data;
}

void SizeClassPool::give(void* data, std::size_t bytes) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    free_[index(rounded(bytes))].push_back(data);
  } catch (const std::bad_alloc&) {
    static_cast<void>(to_status(cudaFree(data)));
  }
}

void SizeClassPool::trim() noexcept {
  const std::lock_guard lock(mutex_);
  for (auto& blocks : free_) {
    for (void* const data : blocks) static_cast<void>(to_status(cudaFree(data)));
    blocks.clear();
  }
}

}  // namespace headrace::detail::cuda
