#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "headrace/base/detail/bytes.hpp"

/// The routes for many copies, and what each is good for.
namespace headrace {

enum class CopyRoute : std::uint8_t {
  automatic,   ///< The route that choose_copy_route() selects.
  engine,      ///< One call of the copy engine per copy.
  batch_call,  ///< cudaMemcpyBatchAsync: one call, yet the driver handles the copies one by one. CUDA only.
  merged,      ///< The host gathers copies in a pinned slot, and the copy engine moves the slot as one.
  gather,      ///< One kernel that reads the sources in place, in pinned memory over the link.
};

[[nodiscard]] std::string_view to_string(CopyRoute route) noexcept;
/// Throws UsageError that lists the routes.
[[nodiscard]] CopyRoute parse_copy_route(std::string_view text);

/// The input to the choice of a route.
struct CopyShape {
  std::size_t count = 0;           ///< Copies.
  std::size_t bytes = 0;           ///< Bytes of all copies.
  std::size_t target_runs = 0;     ///< Runs of copies in which each target continues the previous one.
  bool kernel_can_start = true;    ///< False while a resident kernel may fill the device.
  bool reachable = true;           ///< Kernels reach both sides of each copy.
  bool host_reads_source = false;  ///< The host can read the sources.
};

/// Measured on an H100 (PCIe 5 x16, CUDA 13.0): a copy costs the engine 2.5 us besides its bytes at 55 GB/s; with
/// cudaMemcpyBatchAsync it costs 1.0 to 1.5 us below 64 KiB; a gather kernel moves 49 GB/s at any size from 1 KiB.
namespace copy_thresholds {
/// From this size on, the engine (48.7 GB/s at 1 MiB, and more above) is at least as fast as a kernel.
inline constexpr std::size_t kEngineBytesMin = kMiB;
/// Below this size, the host gathers a copy (10 GB/s per thread) faster than the engine would begin the next.
inline constexpr std::size_t kMergedBytesMax = 16 * kKiB;
/// Gathering fewer copies than this per run of targets does not pay off.
inline constexpr std::size_t kMergedCopiesMin = 4;
/// From this size on, threads help the caller to fill slots: waking them costs some 50 us, in which one thread moves
/// half of this.
inline constexpr std::size_t kThreadedBytesMin = kMiB;
}  // namespace copy_thresholds

/// The route for a batch, or for one copy of it (count then is the batch's, bytes that copy's times the count).
/// Never `automatic`.
[[nodiscard]] constexpr CopyRoute choose_copy_route(const CopyShape& shape) noexcept {
  using namespace copy_thresholds;
  if (shape.count <= 1) return CopyRoute::engine;
  const std::size_t mean_bytes = shape.bytes / shape.count;
  if (mean_bytes >= kEngineBytesMin) return CopyRoute::engine;
  if (shape.reachable && shape.kernel_can_start) return CopyRoute::gather;
  const bool worth_merging = mean_bytes <= kMergedBytesMax && shape.count >= kMergedCopiesMin * shape.target_runs;
  if (shape.host_reads_source && shape.target_runs > 0 && worth_merging) return CopyRoute::merged;
  return shape.reachable ? CopyRoute::batch_call : CopyRoute::engine;
}

}  // namespace headrace
