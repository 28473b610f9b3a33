#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "headrace/base/detail/process.hpp"
#include "headrace/ingest/detail/frames.hpp"
#include "headrace/ingest/detail/intervals.hpp"

namespace headrace::ingest {

/// Keeps a frame's buffer from being filled again. Its destructor releases the frame if that has been taken.
class FrameLease {
 public:
  FrameLease(std::shared_ptr<FrameRing> ring, std::uint64_t number) noexcept
      : ring_(std::move(ring)), number_(number) {}
  FrameLease(const FrameLease&) = delete;
  FrameLease& operator=(const FrameLease&) = delete;
  ~FrameLease() {
    // In a forked child, a thread that exists only in the parent may hold the ring's lock.
    if (ring_ && !birth_.inherited()) static_cast<void>(ring_->release(number_));
  }

  [[nodiscard]] const FrameRing& ring() const noexcept { return *ring_; }

 private:
  Birth birth_;
  std::shared_ptr<FrameRing> ring_;
  std::uint64_t number_;
};

/// A frame that has been taken, or a part of one that is being filled. The buffer goes back to its ring when the last
/// HeldFrame of the frame is destroyed.
class HeldFrame {
 public:
  HeldFrame(std::shared_ptr<FrameRing> ring, const Frame& frame)
      : HeldFrame(std::make_shared<const FrameLease>(std::move(ring), frame.number), frame) {}
  /// @param missing  the bytes of the stream in it that never came and are zeros.
  HeldFrame(std::shared_ptr<const FrameLease> lease, const Frame& frame, std::vector<Interval> missing = {}) noexcept
      : lease_(std::move(lease)), frame_(frame), missing_(std::move(missing)) {}

  [[nodiscard]] const Frame& frame() const noexcept { return frame_; }
  /// Stream offsets of bytes that never came and are zeros, for frames without Frame::presence.
  [[nodiscard]] std::span<const Interval> missing() const noexcept { return missing_; }
  [[nodiscard]] const FrameRing& ring() const noexcept { return lease_->ring(); }
  [[nodiscard]] bool is_float() const noexcept { return to_float(ring().options().conversion); }
  [[nodiscard]] std::size_t item_count() const noexcept {
    return is_float() ? frame_.bytes / sizeof(float) : frame_.bytes;
  }

 private:
  std::shared_ptr<const FrameLease> lease_;
  Frame frame_;
  std::vector<Interval> missing_;
};

}  // namespace headrace::ingest
