#pragma once

#include <memory>
#include <utility>

#include "headrace/ingest/frames.hpp"

/// Frames as Python has them: whoever looks at one keeps its buffer from being filled anew.
namespace headrace::python {

/// A frame that has been taken. Goes back to its ring with the last array over it.
class HeldFrame {
 public:
  /// `ring` keeps alive what fills the ring, too, where that has to be.
  HeldFrame(std::shared_ptr<ingest::FrameRing> ring, const ingest::Frame& frame)
      : ring_(std::move(ring)), frame_(frame) {}
  HeldFrame(const HeldFrame&) = delete;
  HeldFrame& operator=(const HeldFrame&) = delete;
  ~HeldFrame() { static_cast<void>(ring_->release(frame_.number)); }

  [[nodiscard]] const ingest::Frame& frame() const noexcept { return frame_; }
  [[nodiscard]] const ingest::FrameRing& ring() const noexcept { return *ring_; }
  [[nodiscard]] bool is_float() const noexcept { return to_float(ring_->options().conversion); }
  [[nodiscard]] std::size_t item_count() const noexcept {
    return is_float() ? frame_.bytes / sizeof(float) : frame_.bytes;
  }

 private:
  std::shared_ptr<ingest::FrameRing> ring_;
  ingest::Frame frame_;
};

/// headrace.Frame.
struct FrameHandle {
  std::shared_ptr<HeldFrame> held;  ///< Null once released.
};

}  // namespace headrace::python
