#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "headrace/device/device.hpp"

namespace headrace {

/// Resources of a multiprocessor that a kernel uses, as its compiler decided.
struct KernelResources {
  std::uint32_t registers = 0;    ///< Registers per thread.
  std::size_t shared_bytes = 0;   ///< Static shared memory per block.
  std::size_t local_bytes = 0;    ///< Local memory per thread, which includes spilled registers.
  std::uint32_t threads_max = 0;  ///< Highest number of threads per block.
  friend bool operator==(const KernelResources&, const KernelResources&) = default;
};

/// The limits of a GPU that determine how many blocks a multiprocessor holds.
struct GpuLimits {
  std::string_view name;
  int compute_capability = 0;  ///< 89 for 8.9.
  std::uint32_t multiprocessors = 0;
  std::uint32_t threads = 0;  ///< From here on, per multiprocessor unless stated otherwise.
  std::uint32_t blocks = 0;
  std::uint32_t registers = 65536;
  std::uint32_t registers_per_block = 65536;
  std::uint32_t registers_per_thread = 255;
  std::uint32_t threads_per_block = 1024;
  std::size_t shared_bytes = 0;
  std::size_t shared_bytes_per_block = 0;    ///< The maximum that a kernel can opt in to.
  std::size_t shared_bytes_reserved = 1024;  ///< Reserved by the system for each block.
};

/// The GPUs of the table, by name.
[[nodiscard]] std::span<const GpuLimits> known_gpus();
/// The GPU of the table for `name`, such as "L40", "h100-sxm" or "NVIDIA L40"; case, spaces and hyphens do not matter.
/// Throws UsageError that lists the table.
[[nodiscard]] const GpuLimits& find_gpu(std::string_view name);
/// The limits that a CUDA device of this machine reports. Throws UsageError for a CPU device and for a compute
/// capability below 8.0.
[[nodiscard]] GpuLimits limits_of(Device device);

/// How many blocks a multiprocessor holds, and which resource limits it: "threads", "blocks", "registers" or "shared
/// memory".
struct Occupancy {
  std::uint32_t blocks = 0;  ///< The minimum of the four below; 0 if a block cannot be launched at all.
  std::uint32_t by_threads = 0;
  std::uint32_t by_blocks = 0;
  std::uint32_t by_registers = 0;
  std::uint32_t by_shared = 0;
  std::string_view limited_by;
};

/// Blocks of `block_threads` threads that one multiprocessor holds at once, for compute capability 8.0 and later. The
/// rules are those of NVIDIA's occupancy calculator (cuda_occupancy.h of the toolkit): warps get registers in units of
/// 256 from four equal parts of the register file, and blocks get shared memory in units of 128 bytes. Throws
/// UsageError unless 1 <= block_threads <= 1024.
[[nodiscard]] Occupancy occupancy(const GpuLimits& gpu, const KernelResources& kernel, std::uint32_t block_threads);

/// Queries that can be resident at once: whole queries of `blocks_per_query` blocks on all multiprocessors together
/// (Guo 2024: 142 x 10 / 32 = 44 on an L40). Throws UsageError when blocks_per_query is 0.
[[nodiscard]] std::uint32_t resident_queries(std::uint32_t multiprocessors, std::uint32_t blocks_per_multiprocessor,
                                             std::uint32_t blocks_per_query);

/// Threads that feed a device, and the number of streams of each.
struct ThreadsAndStreams {
  std::uint32_t threads = 1;
  std::uint32_t streams = 1;
  friend bool operator==(const ThreadsAndStreams&, const ThreadsAndStreams&) = default;
};

/// For each number of threads up to `threads_max`, the most streams of each that stay within `parallelism` together: 31
/// gives 1x31, 2x15, 3x10, 4x7, ... (Guo 2024, Persistent Kernel Pool). Ends when a thread would have no stream.
[[nodiscard]] std::vector<ThreadsAndStreams> combinations(std::uint32_t parallelism, std::uint32_t threads_max = 10);

}  // namespace headrace
