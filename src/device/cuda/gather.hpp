#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "headrace/device/detail/copy_part.hpp"

/// The kernels that copy many small parts, and their launch shapes. copy_lists.cpp enqueues them.
///
/// The link limits them. With one direction of PCIe 5 x16 at 50.9 GB/s for reads by a kernel and 1.5 us of latency, 76
/// KB must be in flight; a warp has 4 KiB of loads in flight, so 19 warps would do, and a list has hundreds. The
/// remaining losses are therefore other bytes on the link: the list itself (24 bytes for a copy of 1 KiB would be 2.3%,
/// Row makes it 0.8%), and parts of 128-byte lines requested twice because a warp's load covers lines of its neighbour
/// (so warps start at line boundaries of the source).
namespace headrace::detail::cuda {

inline constexpr std::uint32_t kGatherThreads = 256;  ///< Threads per block, in every kernel.
inline constexpr std::uint32_t kGatherWarps = kGatherThreads / 32;

/// A short list, passed as a kernel argument (of at most 4 KiB): nothing to upload, nothing to recycle.
template <std::uint32_t Capacity>
struct ListArgument {
  static constexpr std::uint32_t kCapacity = Capacity;
  std::uint32_t count;
  std::uint64_t number;  ///< Each block writes it to its word of `done`, at system scope, once its parts are copied.
  std::uint64_t* done;   ///< In mapped memory, one word per block; null if no thread polls.
  Part parts[kCapacity];
};
using InlineList = ListArgument<254>;
/// A prefix of an InlineList: an InlineList of few parts is passed as one, so that a launch carries 1 KiB instead of 4.
using ShortInlineList = ListArgument<64>;
static_assert(sizeof(InlineList) <= 4096);

/// Blocks for an inline list of `count` parts, with one warp per part.
[[nodiscard]] constexpr std::uint32_t inline_blocks(std::uint32_t count) noexcept {
  return (count + kGatherWarps - 1) / kGatherWarps;
}
inline constexpr std::uint32_t kInlineBlocksMax = inline_blocks(InlineList::kCapacity);

/// Parts that a block fetches at once from a list in host memory, so that reading the list costs one round trip over
/// the link instead of one per part.
inline constexpr std::uint32_t kPartsPerBlockMax = 64;

/// Parts that a block should copy of a list of `count`: two blocks per multiprocessor before a block gets more than one
/// part per warp. A multiple of kGatherWarps, so that blocks share few lines of the list.
[[nodiscard]] constexpr std::uint32_t parts_per_block(std::uint32_t count,
                                                      std::uint32_t multiprocessor_count) noexcept {
  const std::uint32_t even = (count / (2 * multiprocessor_count) + 1) / kGatherWarps * kGatherWarps;
  return std::clamp(even, kGatherWarps, kPartsPerBlockMax);
}

/// A copy in a list whose copies have one length: offsets from a base on either side.
struct Row {
  std::uint32_t to;
  std::uint32_t from;
};
static_assert(sizeof(Row) == 8);

/// The arguments of the kernel for lists of rows.
struct RowList {
  const Row* rows;  ///< May lie in mapped host memory.
  std::byte* to;
  const std::byte* from;
  std::uint32_t count;
  std::uint32_t bytes;      ///< Bytes of each row.
  std::uint32_t shift;      ///< Offsets count units of 2^shift bytes.
  std::uint32_t parts;      ///< Parts of kPartBytes per row, one warp each.
  std::uint32_t per_block;  ///< Rows per block.
};

/// With it, the window of a row list is 64 GiB if rows are aligned; otherwise it is 4 GiB.
inline constexpr std::uint32_t kAlignedRowShift = 4;

/// Sets parts and per_block from count and bytes, and returns the number of blocks.
[[nodiscard]] constexpr std::uint32_t shape_rows(RowList& list, std::uint32_t multiprocessor_count) noexcept {
  list.parts = static_cast<std::uint32_t>((std::size_t{list.bytes} + kPartBytes - 1) / kPartBytes);
  list.per_block = std::max(1U, parts_per_block(list.count * list.parts, multiprocessor_count) / list.parts);
  return (list.count + list.per_block - 1) / list.per_block;
}

/// Address of `gather_inline(InlineList list)`, or of its ShortInlineList version if `count` parts fit one; launch
/// inline_blocks(count) blocks of kGatherThreads.
[[nodiscard]] const void* gather_inline_kernel(std::uint32_t count) noexcept;
/// Address of `gather_list(const Part* parts, uint32_t count, uint32_t per_block)`; launch ceil(count / per_block)
/// blocks of kGatherThreads. `parts` may lie in mapped host memory; per_block is at most kPartsPerBlockMax.
[[nodiscard]] const void* gather_list_kernel() noexcept;
/// Address of `gather_rows(RowList list)`; launch shape_rows(list) blocks of kGatherThreads.
[[nodiscard]] const void* gather_rows_kernel() noexcept;

}  // namespace headrace::detail::cuda
