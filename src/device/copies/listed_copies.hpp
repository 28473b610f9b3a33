#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace::detail {

/// Copies within the reach of a device's kernels, whose list lies in its memory.
struct ListedCopies {
  void* const* to;
  const void* const* from;
  const std::uint32_t* bytes;
  std::uint32_t count;
  /// Copies that one call takes at most, where they are alike and evenly spaced; for ListedWay::device_runtime.
  std::uint32_t merge = 1;
  void* scratch = nullptr;  ///< See StreamBackend::listed_scratch_bytes().
  std::size_t scratch_bytes = 0;
};

enum class ListedWay : std::uint8_t {
  batched_memcpy,  ///< cub::DeviceMemcpy::Batched.
  device_runtime   ///< cudaMemcpyAsync and cudaMemcpy2DAsync, called in a kernel.
};

}  // namespace headrace::detail
