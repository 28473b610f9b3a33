#pragma once

#include <cstdint>
#include <span>

#include "device/copies/linger_kernel.hpp"
#include "headrace/base/detail/clock.hpp"
#include "headrace/base/result.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/detail/resident_kernel.hpp"

namespace headrace::detail {

/// Copies short lists with a kernel that lingers after each list: a list that arrives in time costs a write by the host
/// and a read by the device, but no launch. Used by one thread at a time.
class LingeringCopier {
 public:
  /// Copying a list takes microseconds, but its kernel may have to wait for room on the device.
  static constexpr Duration kHangAfter = std::chrono::seconds(30);

  /// Throws DeviceError if memory or a stream cannot be allocated.
  LingeringCopier(Device device, Duration linger, Duration hang_after = kHangAfter);

  /// Copies and returns when all copies are done. Nothing orders them after other work of the device. Returns false and
  /// copies nothing if the list has more than kLingerPartsMax parts or a kernel cannot reach all of it. Errc::hung if
  /// the copies take longer than `hang_after`, and from then on.
  [[nodiscard]] Result<bool> copy(std::span<const Copy> copies) noexcept;

 private:
  /// Cuts the copies into parts_ and returns how many there are; 0 if copy() must return false.
  [[nodiscard]] std::uint32_t list(std::span<const Copy> copies) noexcept;
  /// Posts the parts as the next list.
  void post(std::uint32_t count) noexcept;
  [[nodiscard]] Status begin() noexcept;
  /// Makes kernels of other generations exit.
  static void replace(const Buffer& words, std::uint32_t generation) noexcept;
  [[nodiscard]] Status launch() noexcept;
  /// Whether a block of the last kernel has exited.
  [[nodiscard]] bool left() const noexcept;
  [[nodiscard]] bool answered() const noexcept;
  /// Waits for the answer to the posted list.
  [[nodiscard]] Status wait() noexcept;

  Device device_;
  Duration hang_after_;
  LaunchShape shape_;
  std::shared_ptr<const Buffer> words_;
  LingerView view_;
  Part parts_[kLingerPartsMax];
  bool launched_ = false;         ///< A kernel of generation_ has been launched.
  std::uint32_t generation_ = 0;  ///< 0 belongs to no kernel.
  std::uint64_t sequence_ = 0;
  bool hung_ = false;
  ResidentKernel kernel_;
};

}  // namespace headrace::detail
