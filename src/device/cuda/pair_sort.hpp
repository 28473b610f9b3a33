#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "device/backend.hpp"

/// Stable sorts with CUB's radix sort. The current device is the stream's.
namespace headrace::detail::cuda {

[[nodiscard]] Result<std::size_t> pair_scratch_bytes(std::size_t count) noexcept;
/// Enqueues the sort. Returns whether the result will be in the other lists.
[[nodiscard]] Result<bool> sort_pairs(const PairLists& pairs, cudaStream_t stream) noexcept;

}  // namespace headrace::detail::cuda
