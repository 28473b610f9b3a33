#pragma once

#include <cstdint>
#include <span>

#include "device/copies/linger_kernel.hpp"
#include "headrace/base/detail/clock.hpp"
#include "headrace/base/result.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/detail/resident_kernel.hpp"

namespace headrace::detail {

/// Copies short lists by a kernel that stays for a while after each: a list that comes in time costs a write by the
/// host and a read by the device, and no launch. Used by one thread at a time.
class LingeringCopier {
 public:
  /// A list takes microseconds, but its kernel may have to wait for room on the device.
  static constexpr Duration kHangAfter = std::chrono::seconds(30);

  /// Throws DeviceError where the memory or a stream cannot be had.
  LingeringCopier(Device device, Duration linger, Duration hang_after = kHangAfter);

  /// Copies, and returns when all of it is done. Nothing orders it after other work of the device. False, and nothing
  /// is copied, where the list is longer than kLingerPartsMax parts or a kernel does not reach all of it. Errc::hung
  /// where it is not done within `hang_after`, and from then on.
  [[nodiscard]] Result<bool> copy(std::span<const Copy> copies) noexcept;

 private:
  /// How many parts the copies are, which are put in parts_; 0 where copy() gives false.
  [[nodiscard]] std::uint32_t list(std::span<const Copy> copies) noexcept;
  /// The parts as the next list.
  void post(std::uint32_t count) noexcept;
  [[nodiscard]] Status begin() noexcept;
  /// Kernels of another generation leave.
  static void replace(const Buffer& words, std::uint32_t generation) noexcept;
  [[nodiscard]] Status launch() noexcept;
  /// Whether some block of the last kernel has left.
  [[nodiscard]] bool left() const noexcept;
  [[nodiscard]] bool answered() const noexcept;
  /// For the answer to what was posted.
  [[nodiscard]] Status wait() noexcept;

  Device device_;
  Duration hang_after_;
  LaunchShape shape_;
  std::shared_ptr<const Buffer> words_;
  LingerView view_;
  Part parts_[kLingerPartsMax];
  bool launched_ = false;         ///< A kernel of generation_ has been.
  std::uint32_t generation_ = 0;  ///< 0 is no kernel's.
  std::uint64_t sequence_ = 0;
  bool hung_ = false;
  ResidentKernel kernel_;
};

}  // namespace headrace::detail
