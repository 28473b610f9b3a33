#include <cub/device/device_memcpy.cuh>

#include "device/cuda/listed_copies.hpp"

namespace headrace::detail::cuda {

cudaError_t batched_memcpy(const ListedCopies& copies, cudaStream_t stream) noexcept {
  std::size_t scratch_bytes = copies.scratch_bytes;
  return cub::DeviceMemcpy::Batched(copies.scratch, scratch_bytes, copies.from, copies.to, copies.bytes, copies.count,
                                    stream);
}

cudaError_t batched_memcpy_scratch(std::uint32_t count, std::size_t& bytes) noexcept {
  const void* const* const from = nullptr;
  void* const* const to = nullptr;
  const std::uint32_t* const sizes = nullptr;
  return cub::DeviceMemcpy::Batched(nullptr, bytes, from, to, sizes, count);
}

}  // namespace headrace::detail::cuda
