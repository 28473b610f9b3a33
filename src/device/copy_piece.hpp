#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "headrace/device/group.hpp"

namespace headrace::detail {

/// A copy, or a part of one, that one team of a kernel does (a warp). Both sides must be reachable from the device and
/// not overlap.
/// Packed into 16 bytes: addresses of user space have at most 56 bits, of which neither x86-64 nor CUDA uses more.
class Piece {
 public:
  Piece() noexcept = default;
  /// `bytes` at most kBytesMax.
  Piece(std::byte* to, const std::byte* from, std::size_t bytes) noexcept
      : to_(reinterpret_cast<std::uintptr_t>(to) | (std::uint64_t{bytes} & 0xff) << kAddressBits),
        from_(reinterpret_cast<std::uintptr_t>(from) | (std::uint64_t{bytes} >> 8) << kAddressBits) {}

  static constexpr std::size_t kBytesMax = 0xffff;

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
static_assert(sizeof(Piece) == 16);

/// What one team copies at most: enough teams for the link even when the list is short.
inline constexpr std::size_t kPieceBytes = 4096;
static_assert(kPieceBytes <= Piece::kBytesMax);

/// Calls `emit(Piece)` for the parts of a copy.
template <class Emit>
void for_each_piece(void* to_first, const void* from_first, std::size_t bytes, Emit emit) {
  auto* to = static_cast<std::byte*>(to_first);
  const auto* from = static_cast<const std::byte*>(from_first);
  // Parts after the first start on an aligned target.
  std::size_t part = kPieceBytes - reinterpret_cast<std::uintptr_t>(to) % 16;
  while (bytes > 0) {
    part = std::min(part, bytes);
    emit(Piece(to, from, part));
    to += part;
    from += part;
    bytes -= part;
    part = kPieceBytes;
  }
}

}  // namespace headrace::detail
