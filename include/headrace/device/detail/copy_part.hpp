#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "headrace/device/group.hpp"

namespace headrace::detail {

/// A copy in the form that kernels read, or a part of one, which one team (a warp) copies. The device must reach both
/// sides, and they must not overlap. Packed into 16 bytes, so that one load reads it: neither x86-64 nor CUDA uses more
/// than 56 bits for addresses of user space.
class alignas(16) Part {
 public:
  static constexpr std::uint32_t kBytesMax = 0xffff;

  Part() noexcept = default;
  /// bytes <= kBytesMax.
  HEADRACE_HD Part(const void* to, const void* from, std::uint32_t bytes) noexcept
      : to_((reinterpret_cast<std::uintptr_t>(to) & kAddressMask) | std::uint64_t{bytes & 0xff} << kAddressBits),
        from_((reinterpret_cast<std::uintptr_t>(from) & kAddressMask) | std::uint64_t{bytes >> 8} << kAddressBits) {}

  // NOLINTBEGIN(performance-no-int-to-ptr): lengths are kept in the bits that addresses leave
  [[nodiscard]] HEADRACE_HD std::byte* to() const noexcept { return reinterpret_cast<std::byte*>(to_ & kAddressMask); }
  [[nodiscard]] HEADRACE_HD const std::byte* from() const noexcept {
    return reinterpret_cast<const std::byte*>(from_ & kAddressMask);
  }
  // NOLINTEND(performance-no-int-to-ptr)
  [[nodiscard]] HEADRACE_HD std::uint32_t bytes() const noexcept {
    return static_cast<std::uint32_t>(to_ >> kAddressBits | from_ >> kAddressBits << 8);
  }

 private:
  static constexpr unsigned kAddressBits = 56;
  static constexpr std::uint64_t kAddressMask = (std::uint64_t{1} << kAddressBits) - 1;

  std::uint64_t to_;    ///< Address, and above it the low byte of the length.
  std::uint64_t from_;  ///< Address, and above it the high byte of the length.
};
static_assert(sizeof(Part) == 16);

/// Most bytes that one team copies. Small enough that even a short list has enough teams for the link, and large enough
/// for few packets.
inline constexpr std::uint32_t kPartBytes = 4096;
/// Alignment of the targets of parts: that of the kernels' loads and stores.
inline constexpr std::uint32_t kPartAlignment = 16;

/// Calls `emit(Part)` for the parts of a copy: none is longer than `most` bytes (a multiple of kPartAlignment, at most
/// Part::kBytesMax), and all after the first start on an aligned target.
template <class Emit>
void for_each_part(void* to_first, const void* from_first, std::size_t bytes, std::uint32_t most, Emit emit) {
  auto* to = static_cast<std::byte*>(to_first);
  const auto* from = static_cast<const std::byte*>(from_first);
  std::size_t part = most - reinterpret_cast<std::uintptr_t>(to) % kPartAlignment;
  while (bytes > 0) {
    part = std::min(part, bytes);
    emit(Part(to, from, static_cast<std::uint32_t>(part)));
    to += part;
    from += part;
    bytes -= part;
    part = most;
  }
}

}  // namespace headrace::detail
