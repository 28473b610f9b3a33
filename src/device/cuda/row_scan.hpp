#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "device/cuda/gather.hpp"
#include "device/cuda/reach.hpp"
#include "headrace/device/detail/copy_route.hpp"
#include "headrace/device/stream.hpp"

namespace headrace::detail::cuda {

/// The address ranges that contain the two sides of copies.
struct CopyWindows {
  std::uintptr_t to = std::numeric_limits<std::uintptr_t>::max();  ///< Lowest address of the targets.
  std::uintptr_t to_end = 0;
  std::uintptr_t from = std::numeric_limits<std::uintptr_t>::max();
  std::uintptr_t from_end = 0;

  void take(const Copy& copy) noexcept {
    const auto target = reinterpret_cast<std::uintptr_t>(copy.to);
    const auto source = reinterpret_cast<std::uintptr_t>(copy.from);
    to = std::min(to, target);
    to_end = std::max(to_end, target + copy.bytes);
    from = std::min(from, source);
    from_end = std::max(from_end, source + copy.bytes);
  }
  /// Whether there is at least one copy and kernels reach both ranges.
  [[nodiscard]] bool within(Reach& reach) const noexcept {
    // NOLINTBEGIN(performance-no-int-to-ptr): compared as numbers, because they may belong to several allocations
    return to < to_end && reach.covers(reinterpret_cast<const void*>(to), to_end - to) &&
           reach.covers(reinterpret_cast<const void*>(from), from_end - from);
    // NOLINTEND(performance-no-int-to-ptr)
  }
};

/// Whether all copies have sizes that a kernel gathers and lie in one reachable range on either side.
[[nodiscard]] inline bool all_for_gather(std::span<const Copy> copies, Reach& reach) noexcept {
  CopyWindows windows;
  for (const Copy& copy : copies) {
    if (copy.bytes >= copy_thresholds::kEngineBytesMin) return false;
    if (copy.bytes != 0) windows.take(copy);
  }
  return windows.within(reach);
}

/// The copies at the front of a list that have the same length.
struct RowScan : CopyWindows {
  std::size_t count = 0;
  std::size_t bytes = 0;
  std::uintptr_t odd = 0;  ///< All addresses, or-ed together.

  /// Scans at most `most` copies.
  RowScan(std::span<const Copy> copies, std::size_t most) noexcept : bytes(copies.front().bytes) {
    const std::size_t limit = std::min(copies.size(), most);
    for (; count < limit && copies[count].bytes == bytes; ++count) {
      const Copy& copy = copies[count];
      take(copy);
      odd |= reinterpret_cast<std::uintptr_t>(copy.to) | reinterpret_cast<std::uintptr_t>(copy.from);
    }
  }

  [[nodiscard]] std::uint32_t shift() const noexcept {
    return odd % (std::uintptr_t{1} << kAlignedRowShift) == 0 ? kAlignedRowShift : 0;
  }
  /// Whether 32-bit offsets reach every row.
  [[nodiscard]] bool fits() const noexcept {
    constexpr std::uint64_t kOffsets = std::uint64_t{1} << 32;
    return (to_end - to) >> shift() < kOffsets && (from_end - from) >> shift() < kOffsets;
  }
  /// Copy number i of the list as a row.
  [[nodiscard]] Row row(const Copy& copy) const noexcept {
    return {static_cast<std::uint32_t>((reinterpret_cast<std::uintptr_t>(copy.to) - to) >> shift()),
            static_cast<std::uint32_t>((reinterpret_cast<std::uintptr_t>(copy.from) - from) >> shift())};
  }
};

}  // namespace headrace::detail::cuda
