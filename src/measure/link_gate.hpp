#pragma once

#include <cstdint>

#include "headrace/base/detail/clock.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/detail/resident_kernel.hpp"

namespace headrace::measure {

/// Holds streams, of one device or several, until all of their work is enqueued: then what events between measure is
/// the device's time and not that of enqueueing. A kernel waits on a word in mapped memory, for so long and no longer.
/// Its destruction opens it.
class Gate {
 public:
  /// Throws DeviceError when there is no mapped memory.
  Gate(Device device, Duration bound);

  /// The gates closed from now on are another opening's.
  void next() noexcept;
  [[nodiscard]] Status close(StreamRef stream);
  void open() noexcept;
  /// Once the streams have been waited for: whether the bound passed before open(), so that what was measured is worth
  /// nothing.
  [[nodiscard]] bool expired() const noexcept;

 private:
  [[nodiscard]] std::uint32_t& word() const noexcept { return words_->as<std::uint32_t>()[0]; }
  /// A line away from word(): one is written by the host, the other by the device.
  [[nodiscard]] std::uint32_t& expired_word() const noexcept { return words_->as<std::uint32_t>()[kWordsBetween]; }
  static constexpr std::size_t kWordsBetween = 64;

  std::shared_ptr<const Buffer> words_;
  std::uint64_t bound_ns_;
  std::uint32_t ticket_ = 0;
  ResidentKernel kernels_;  ///< One in each stream that is held.
};

}  // namespace headrace::measure
