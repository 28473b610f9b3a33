#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace headrace::detail {

/// A range of addresses with the same properties for a device. The default is ordinary host memory of unknown extent
/// that no device knows.
struct KnownRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  bool known = false;          ///< The device's driver knows it; otherwise it is pageable or not mapped.
  bool kernels_reach = false;  ///< Kernels of the device may access all of it.
  bool host_reads = true;
};

/// Caches the last ranges that `look_up(address)` returned, because the copies of a list mostly share a few buffers.
/// Memory may be freed and reallocated as another kind, so it must not outlive the list.
template <class LookUp>
class KnownRanges {
 public:
  explicit KnownRanges(LookUp look_up) noexcept : look_up_(look_up) {}

  [[nodiscard]] const KnownRange& find(const void* data) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    for (const KnownRange& range : ranges_) {
      if (address >= range.begin && address < range.end) return range;
    }
    KnownRange& range = ranges_[oldest_];
    oldest_ = (oldest_ + 1) % ranges_.size();
    range = look_up_(data);
    return range;
  }

 private:
  LookUp look_up_;
  std::array<KnownRange, 4> ranges_{};
  std::size_t oldest_ = 0;
};

/// True if all of [data, data + bytes) lies in `range`, which contains `data`.
[[nodiscard]] inline bool holds(const KnownRange& range, const void* data, std::size_t bytes) noexcept {
  return bytes <= range.end - reinterpret_cast<std::uintptr_t>(data);
}

}  // namespace headrace::detail
