#pragma once

#include <cstddef>
#include <cstdint>

/// The kernels that copy many small pieces, and how they are launched. Everything here is addresses and numbers; who
/// enqueues them is copy_lists.cpp.
namespace headrace::detail::cuda {

/// A copy, or a part of one, that one warp does. Both sides must be reachable from the device and not overlap.
struct Piece {
  std::byte* to;
  const std::byte* from;
  std::uint64_t bytes;
};

inline constexpr std::uint32_t kGatherThreads = 256;  ///< Of a block, in both kernels.
inline constexpr std::uint32_t kGatherWarps = kGatherThreads / 32;

/// A short list, passed as a kernel argument (of at most 4 KiB): nothing to upload, nothing to recycle.
struct InlineList {
  static constexpr std::uint32_t kCapacity = 128;
  std::uint32_t count;
  Piece pieces[kCapacity];
};
static_assert(sizeof(InlineList) <= 4096);

/// Blocks that an inline list of `count` pieces needs: a warp a piece.
[[nodiscard]] constexpr std::uint32_t inline_blocks(std::uint32_t count) noexcept {
  return (count + kGatherWarps - 1) / kGatherWarps;
}

/// Pieces that a block fetches from a list in host memory in one go, so that reading the list costs one round over the
/// link and not one a piece.
inline constexpr std::uint32_t kPiecesPerBlockMax = 64;

/// Address of `gather_inline(InlineList list)`; launch inline_blocks(list.count) blocks of kGatherThreads.
[[nodiscard]] const void* gather_inline_kernel() noexcept;
/// Address of `gather_list(const Piece* pieces, uint32_t count, uint32_t per_block)`; launch ceil(count / per_block)
/// blocks of kGatherThreads. `pieces` may lie in mapped host memory; per_block is at most kPiecesPerBlockMax.
[[nodiscard]] const void* gather_list_kernel() noexcept;

}  // namespace headrace::detail::cuda
