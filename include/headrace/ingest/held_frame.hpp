#pragma once

#include <memory>
#include <utility>

#include "headrace/ingest/frames.hpp"

namespace headrace::ingest {

/// A frame that has been taken. Its buffer goes back to its ring with this.
class HeldFrame {
 public:
  HeldFrame(std::shared_ptr<FrameRing> ring, const Frame& frame) noexcept : ring_(std::move(ring)), frame_(frame) {}
  HeldFrame(const HeldFrame&) = delete;
  HeldFrame& operator=(const HeldFrame&) = delete;
  ~HeldFrame() {
    if (ring_) static_cast<void>(ring_->release(frame_.number));
  }

  [[nodiscard]] const Frame& frame() const noexcept { return frame_; }
  [[nodiscard]] const FrameRing& ring() const noexcept { return *ring_; }
  [[nodiscard]] bool is_float() const noexcept { return to_float(ring_->options().conversion); }
  [[nodiscard]] std::size_t item_count() const noexcept {
    return is_float() ? frame_.bytes / sizeof(float) : frame_.bytes;
  }

 private:
  std::shared_ptr<FrameRing> ring_;
  Frame frame_;
};

}  // namespace headrace::ingest
