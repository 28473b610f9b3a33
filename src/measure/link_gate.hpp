#pragma once

#include <cstdint>

#include "headrace/base/detail/clock.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/detail/resident_kernel.hpp"

namespace headrace::measure {

/// Holds streams, of one device or several, until all their work is enqueued, so that events in the streams measure the
/// device's time without enqueueing. A kernel waits on a word in mapped memory, at most for a bound. The destructor
/// opens the gate.
class Gate {
 public:
  /// Throws DeviceError if there is no mapped memory.
  Gate(Device device, Duration bound);

  /// Starts a new round: gates closed from now on wait for the next open().
  void next() noexcept;
  [[nodiscard]] Status close(StreamRef stream);
  void open() noexcept;
  /// Call it once the streams have been waited for: whether the bound passed before open(), which makes the measurement
  /// invalid.
  [[nodiscard]] bool expired() const noexcept;

 private:
  [[nodiscard]] std::uint32_t& word() const noexcept { return words_->as<std::uint32_t>()[0]; }
  /// On another cache line than word(), because the host writes one and the device the other.
  [[nodiscard]] std::uint32_t& expired_word() const noexcept { return words_->as<std::uint32_t>()[kWordsBetween]; }
  static constexpr std::size_t kWordsBetween = 64;

  std::shared_ptr<const Buffer> words_;
  std::uint64_t bound_ns_;
  std::uint32_t ticket_ = 0;
  ResidentKernel kernels_;  ///< One in each held stream.
};

}  // namespace headrace::measure
