#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "headrace/device/detail/listed_copies.hpp"

/// CUDA's own functions for many small copies whose list lies on the device. The caller has made the device current.
namespace headrace::detail::cuda {

/// cub::DeviceMemcpy::Batched.
[[nodiscard]] cudaError_t batched_memcpy(const ListedCopies& copies, cudaStream_t stream) noexcept;
[[nodiscard]] cudaError_t batched_memcpy_scratch(std::uint32_t count, std::size_t& bytes) noexcept;

/// Launches one warp whose lanes each call cudaMemcpyAsync, or cudaMemcpy2DAsync for up to `merge` consecutive copies
/// of the same shape (Ito 2024). Launches it repeatedly, because the number of pending copies is limited.
[[nodiscard]] cudaError_t device_runtime_copies(const ListedCopies& copies, cudaStream_t stream) noexcept;

}  // namespace headrace::detail::cuda
