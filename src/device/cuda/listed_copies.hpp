#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "headrace/device/detail/listed_copies.hpp"

/// What CUDA itself has for many small copies whose list lies on the device. The caller has made the device current.
namespace headrace::detail::cuda {

/// cub::DeviceMemcpy::Batched.
[[nodiscard]] cudaError_t batched_memcpy(const ListedCopies& copies, cudaStream_t stream) noexcept;
[[nodiscard]] cudaError_t batched_memcpy_scratch(std::uint32_t count, std::size_t& bytes) noexcept;

/// One warp whose lanes each call cudaMemcpyAsync, or cudaMemcpy2DAsync for up to `merge` copies in a row that are
/// alike (Ito 2024). Launched again and again, since only so many copies may be pending.
[[nodiscard]] cudaError_t device_runtime_copies(const ListedCopies& copies, cudaStream_t stream) noexcept;

}  // namespace headrace::detail::cuda
