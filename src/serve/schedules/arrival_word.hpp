#pragma once

#include <atomic>
#include <cstdint>

#include "headrace/base/error.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/stream.hpp"
#include "headrace/serve/detail/arrival.hpp"

namespace headrace::serve::detail {

/// The host's side of an ArrivalCell: knows whether all signalling launches have ended. One thread at a time.
class ArrivalWord {
 public:
  /// Throws DeviceError if the memory cannot be allocated.
  explicit ArrivalWord(StreamRef stream)
      : told_(stream.device(), MemoryKind::mapped, kLine), cell_(stream.device(), MemoryKind::device, kLine) {
    *told_.as<std::uint32_t>() = 0;
    const Buffer first(stream.device(), MemoryKind::pinned, sizeof(ArrivalCell));
    *first.as<ArrivalCell>() = {0, 0, told_.as<std::uint32_t>()};
    constexpr const char* kDoing = "preparing the word by which kernels signal completion";
    stream.copy(cell_.data(), first.data(), sizeof(ArrivalCell)).or_throw(kDoing);
    stream.wait().or_throw(kDoing);
  }

  /// For the kernel's argument.
  [[nodiscard]] ArrivalCell* cell() const noexcept { return cell_.as<ArrivalCell>(); }
  /// Call it once a signalling launch has been enqueued.
  void expect() noexcept { ++expected_; }
  /// Whether that launch has ended. Then everything that it wrote is visible.
  [[nodiscard]] bool told() const noexcept {
    return std::atomic_ref(*told_.as<std::uint32_t>()).load(std::memory_order_acquire) == expected_;
  }

 private:
  static constexpr std::size_t kLine = 64;  ///< Keeps words of different writers on separate cache lines.

  Buffer told_;  ///< Written by the device.
  Buffer cell_;
  std::uint32_t expected_ = 0;
};

}  // namespace headrace::serve::detail
