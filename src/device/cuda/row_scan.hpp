#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "device/cuda/gather.hpp"
#include "headrace/device/stream.hpp"

namespace headrace::detail::cuda {

/// The copies at the front of a list that have one length, and the windows that their two sides lie in.
struct RowScan {
  std::size_t count = 0;
  std::size_t bytes = 0;
  std::uintptr_t to = std::numeric_limits<std::uintptr_t>::max();  ///< Lowest address of the targets.
  std::uintptr_t to_end = 0;
  std::uintptr_t from = std::numeric_limits<std::uintptr_t>::max();
  std::uintptr_t from_end = 0;
  std::uintptr_t odd = 0;  ///< All addresses, or-ed together.

  /// At most `most` copies.
  RowScan(std::span<const Copy> copies, std::size_t most) noexcept : bytes(copies.front().bytes) {
    const std::size_t limit = std::min(copies.size(), most);
    for (; count < limit && copies[count].bytes == bytes; ++count) {
      const auto target = reinterpret_cast<std::uintptr_t>(copies[count].to);
      const auto source = reinterpret_cast<std::uintptr_t>(copies[count].from);
      to = std::min(to, target);
      to_end = std::max(to_end, target);
      from = std::min(from, source);
      from_end = std::max(from_end, source);
      odd |= target | source;
    }
    to_end += bytes;
    from_end += bytes;
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
