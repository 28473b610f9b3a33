#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "headrace/device/stream.hpp"

namespace headrace::grid {

/// A box of values at one place and room for it at another. Pitches and planes are in values.
struct BoxCopy {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::int64_t from_plane = 0;
  std::int64_t to_plane = 0;
  std::int32_t from_pitch = 0;
  std::int32_t to_pitch = 0;
  std::int32_t size[3] = {};
};

/// Enqueues copies of boxes by a kernel of the stream's device, which must reach all of them.
[[nodiscard]] Status copy_boxes(StreamRef stream, std::span<const BoxCopy> copies, std::size_t value_bytes) noexcept;

}  // namespace headrace::grid
