#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "headrace/device/group.hpp"

namespace headrace::ingest {

/// A copy as kernels read it: what is left of a Piece once it has been cut. 16 bytes, so that one load takes it; a
/// third less than a Piece, which counts where payloads have 64 bytes.
class alignas(16) Part {
 public:
  static constexpr std::uint32_t kBytesMax = 0xffff;

  Part() noexcept = default;
  /// bytes <= kBytesMax. Addresses keep their lower 56 bits, of which no device uses more.
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

  std::uint64_t to_ = 0;    ///< Address, and above it the low byte of the length.
  std::uint64_t from_ = 0;  ///< Address, and above it the high byte of the length.
};
static_assert(sizeof(Part) == 16);

/// What stores and loads of kernels are made of.
inline constexpr std::uint32_t kLineBytes = 16;

/// Calls `emit(Part)` for the parts of a copy: none is longer than `most` bytes, a multiple of kLineBytes of
/// Part::kBytesMax at most, and all after the first start on an aligned target.
template <class Emit>
void for_each_part(std::byte* to, const std::byte* from, std::size_t bytes, std::uint32_t most, Emit emit) {
  std::size_t part = most - reinterpret_cast<std::uintptr_t>(to) % kLineBytes;
  while (bytes > 0) {
    part = std::min(part, bytes);
    emit(Part(to, from, static_cast<std::uint32_t>(part)));
    to += part;
    from += part;
    bytes -= part;
    part = most;
  }
}

}  // namespace headrace::ingest
