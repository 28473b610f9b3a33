#pragma once

#include <cstddef>
#include <cstdint>

#include "device/copy_piece.hpp"
#include "headrace/device/device.hpp"
#include "headrace/device/kernel.hpp"

/// The kernel that takes one short list of copies after the other, and leaves when none comes any more.
namespace headrace::detail {

/// A list of copies that is posted: which kernel may take it, how many pieces, and its number.
struct LingerPost {
  std::uint32_t generation = 0;  ///< Kernels of another generation leave.
  std::uint32_t count = 0;
  std::uint32_t sequence = 0;

  static constexpr std::uint32_t kGenerationMax = 0xFFFFFF;
  static constexpr std::uint32_t kCountMax = 0xFF;

  [[nodiscard]] HEADRACE_HD std::uint64_t word() const noexcept {
    return std::uint64_t{generation} << 40 | std::uint64_t{count} << 32 | sequence;
  }
  [[nodiscard]] HEADRACE_HD static LingerPost of(std::uint64_t word) noexcept {
    return {static_cast<std::uint32_t>(word >> 40), static_cast<std::uint32_t>(word >> 32) & kCountMax,
            static_cast<std::uint32_t>(word)};
  }
};

/// What host and kernel share, in memory of the host. Every word has one writer.
struct LingerView {
  const std::uint64_t* posted = nullptr;  ///< A LingerPost, by the host.
  const Piece* pieces = nullptr;          ///< Of the list that is posted.
  std::uint32_t* answered = nullptr;      ///< One a block: the number of the last list of which it has done its part.
  std::uint32_t* left = nullptr;          ///< One a block: the generation of the kernel that has left, written last.
  std::uint64_t linger_ns = 0;            ///< How long it waits for the next list.
};

/// (LingerView, uint32_t generation). Block b copies pieces b, b + blocks, ... of every list that it has not answered.
[[nodiscard]] Kernel linger_kernel();
/// So many blocks that each team has one piece of the longest list.
[[nodiscard]] LaunchShape linger_shape(Device device);

inline constexpr std::uint32_t kLingerPiecesMax = 64;
inline constexpr std::uint32_t kLingerBlocksMax = 8;

}  // namespace headrace::detail
