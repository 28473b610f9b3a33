#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "headrace/ingest/detail/held_frame.hpp"

/// Frames as Python has them: whoever looks at one keeps its buffer from being filled anew.
namespace headrace::python {

using ingest::HeldFrame;

/// headrace.ingest.Frame.
struct FrameHandle {
  std::shared_ptr<HeldFrame> held;  ///< Null once released.
  std::uint32_t stream = 0;
  std::string peer{};  ///< Empty: not known.

  [[nodiscard]] const FrameHandle& as_frame() const noexcept { return *this; }
};

/// headrace.FramePart: bytes of a frame that is not full.
struct PartHandle {
  FrameHandle frame;

  [[nodiscard]] const FrameHandle& as_frame() const noexcept { return frame; }
};

}  // namespace headrace::python
