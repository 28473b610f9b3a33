#pragma once

#include <cstddef>
#include <span>

#include "headrace/device/stream.hpp"
#include "headrace/grid/detail/box_copy.hpp"

namespace headrace::grid {

/// Enqueues copies of boxes by a kernel of the stream's device, which must reach all of them.
[[nodiscard]] Status copy_boxes(StreamRef stream, std::span<const BoxCopy> copies, std::size_t value_bytes) noexcept;

}  // namespace headrace::grid
