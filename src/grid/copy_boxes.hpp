#pragma once

#include <cstddef>
#include <span>

#include "headrace/device/stream.hpp"
#include "headrace/grid/detail/box_copy.hpp"

namespace headrace::grid {

/// Enqueues box copies as a kernel on the stream's device. That device must be able to access all of the boxes.
[[nodiscard]] Status copy_boxes(StreamRef stream, std::span<const BoxCopy> copies, std::size_t value_bytes) noexcept;

}  // namespace headrace::grid
