#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/base/result.hpp"
#include "headrace/device/stream.hpp"

namespace headrace::detail {

/// Copies that a device's kernels reach, with their list in device memory.
struct ListedCopies {
  void* const* to;
  const void* const* from;
  const std::uint32_t* bytes;
  std::uint32_t count;
  /// Most copies that one call takes if they have one length and even spacing; for ListedWay::device_runtime.
  std::uint32_t merge = 1;
  void* scratch = nullptr;  ///< See listed_scratch_bytes().
  std::size_t scratch_bytes = 0;
};

enum class ListedWay : std::uint8_t {
  batched_memcpy,  ///< cub::DeviceMemcpy::Batched.
  device_runtime   ///< cudaMemcpyAsync and cudaMemcpy2DAsync, called in a kernel.
};

/// Enqueues the copies with CUDA's own functions for that. Errc::not_supported on other devices.
[[nodiscard]] Status copy_listed(StreamRef stream, const ListedCopies& copies, ListedWay way) noexcept;
/// Bytes of device memory that copy_listed() needs for `count` copies. Errc::not_supported in the same cases.
[[nodiscard]] Result<std::size_t> listed_scratch_bytes(StreamRef stream, std::uint32_t count, ListedWay way) noexcept;

}  // namespace headrace::detail
