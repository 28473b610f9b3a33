#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "headrace/ingest/detail/held_frame.hpp"

/// The Python form of frames. A reference to a frame keeps its buffer from being refilled.
namespace headrace::python {

using ingest::HeldFrame;

/// headrace.ingest.Frame.
struct FrameHandle {
  std::shared_ptr<HeldFrame> held;  ///< Null once released.
  std::uint32_t stream = 0;
  std::string peer{};  ///< Empty if unknown.

  [[nodiscard]] const FrameHandle& as_frame() const noexcept { return *this; }
};

/// headrace.FramePart: bytes of an incomplete frame.
struct PartHandle {
  FrameHandle frame;

  [[nodiscard]] const FrameHandle& as_frame() const noexcept { return frame; }
};

}  // namespace headrace::python
