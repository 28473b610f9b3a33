#include "device/occupancy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <string>
#include <vector>

#include "base/nearest.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"

namespace headrace {

namespace {

constexpr std::uint32_t kWarp = 32;
constexpr std::uint32_t kRegisterUnit = 256;  ///< Registers are allocated to warps in units of this size.
constexpr std::uint32_t kParts = 4;           ///< Parts of the register file; a warp's registers lie in one part.
constexpr std::size_t kSharedUnit = 128;
constexpr int kOldest = 80;  ///< Before 8.0, allocation units and carve-outs differ.

/// Limits of a compute capability: CUDA C++ Programming Guide 13.0, "Technical Specifications per Compute Capability".
constexpr GpuLimits limits(std::string_view name, int capability, std::uint32_t multiprocessors) {
  GpuLimits gpu;
  gpu.name = name;
  gpu.compute_capability = capability;
  gpu.multiprocessors = multiprocessors;
  const bool large = capability == 80 || capability / 10 == 9 || capability == 100;
  gpu.threads = large ? 2048 : 1536;
  gpu.blocks = large ? 32 : (capability == 86 ? 16 : 24);
  gpu.shared_bytes = (capability == 80 ? 164 : large ? 228 : 100) * kKiB;
  gpu.shared_bytes_per_block = gpu.shared_bytes - kKiB;
  return gpu;
}

/// Multiprocessors as in NVIDIA's architecture white papers and data sheets (CUDA cores / 128; A100: / 64).
constexpr std::array kGpus{
    limits("A10", 86, 72),        limits("A100", 80, 108),      limits("B200", 100, 148),
    limits("H100 PCIe", 90, 114), limits("H100 SXM", 90, 132),  limits("H200", 90, 132),
    limits("L4", 89, 58),         limits("L40", 89, 142),       limits("L40S", 89, 142),
    limits("RTX 4090", 89, 128),  limits("RTX 5090", 120, 170), limits("RTX 6000 Ada", 89, 142),
    limits("RTX A6000", 86, 84),
};

/// The name in lower case, letters and digits only, without the vendor's name.
std::string plain(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  constexpr std::string_view kMaker = "nvidia";
  return text.starts_with(kMaker) ? text.substr(kMaker.size()) : text;
}

std::uint32_t blocks_by_registers(const GpuLimits& gpu, const KernelResources& kernel, std::uint32_t warps) {
  if (kernel.registers > gpu.registers_per_thread) return 0;
  const auto of_warp = static_cast<std::uint32_t>(align_up(std::size_t{kernel.registers} * kWarp, kRegisterUnit));
  if (of_warp == 0) return std::numeric_limits<std::uint32_t>::max();
  // The hardware checks a block as if its warps filled all parts evenly.
  const std::uint32_t checked_warps = (warps + kParts - 1) / kParts * kParts;
  if (of_warp * checked_warps > gpu.registers_per_block) return 0;
  return gpu.registers / kParts / of_warp * kParts / warps;
}

std::uint32_t blocks_by_shared(const GpuLimits& gpu, const KernelResources& kernel) {
  if (kernel.shared_bytes > gpu.shared_bytes_per_block) return 0;
  const std::size_t of_block = align_up(kernel.shared_bytes + gpu.shared_bytes_reserved, kSharedUnit);
  if (of_block == 0) return std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(gpu.shared_bytes / of_block);
}

}  // namespace

std::span<const GpuLimits> known_gpus() { return kGpus; }

const GpuLimits& find_gpu(std::string_view name) {
  std::vector<std::string> known;
  for (const GpuLimits& gpu : kGpus) {
    if (plain(gpu.name) == plain(name)) return gpu;
    known.emplace_back(gpu.name);
  }
  throw UsageError(fmt::format("the table of GPUs has no '{}'{}", name, offer_names(name, known)), Errc::not_found);
}

GpuLimits limits_of(Device device) {
  const DeviceProperties& properties = device.properties();
  if (device.properties().host_cores) {
    throw UsageError(fmt::format("{} has no multiprocessors to occupy; name a GPU", device.name()),
                     Errc::not_supported);
  }
  if (properties.compute_capability < kOldest) {
    throw UsageError(fmt::format("{}: occupancy is known only for compute capability 8.0 and later", properties.name),
                     Errc::not_supported);
  }
  GpuLimits gpu;
  gpu.name = properties.name;
  gpu.compute_capability = properties.compute_capability;
  gpu.multiprocessors = static_cast<std::uint32_t>(properties.multiprocessor_count);
  gpu.threads = static_cast<std::uint32_t>(properties.threads_per_multiprocessor);
  gpu.blocks = static_cast<std::uint32_t>(properties.blocks_per_multiprocessor);
  gpu.registers = static_cast<std::uint32_t>(properties.registers_per_multiprocessor);
  gpu.shared_bytes = properties.shared_bytes_per_multiprocessor;
  gpu.shared_bytes_per_block = gpu.shared_bytes - gpu.shared_bytes_reserved;
  return gpu;
}

Occupancy occupancy(const GpuLimits& gpu, const KernelResources& kernel, std::uint32_t block_threads) {
  if (block_threads < 1 || block_threads > gpu.threads_per_block) {
    throw UsageError(fmt::format("a block must have 1 to {} threads, not {}", gpu.threads_per_block, block_threads));
  }
  const std::uint32_t warps = (block_threads + kWarp - 1) / kWarp;
  Occupancy result;
  result.by_threads = kernel.threads_max != 0 && block_threads > kernel.threads_max ? 0 : gpu.threads / kWarp / warps;
  result.by_blocks = gpu.blocks;
  result.by_registers = blocks_by_registers(gpu, kernel, warps);
  result.by_shared = blocks_by_shared(gpu, kernel);
  result.blocks = std::min({result.by_threads, result.by_blocks, result.by_registers, result.by_shared});
  result.limited_by = result.blocks == result.by_threads     ? "threads"
                      : result.blocks == result.by_registers ? "registers"
                      : result.blocks == result.by_shared    ? "shared memory"
                                                             : "blocks";
  return result;
}

std::uint32_t resident_queries(std::uint32_t multiprocessors, std::uint32_t blocks_per_multiprocessor,
                               std::uint32_t blocks_per_query) {
  if (blocks_per_query == 0) throw UsageError("a query needs at least 1 block");
  return static_cast<std::uint32_t>(std::uint64_t{multiprocessors} * blocks_per_multiprocessor / blocks_per_query);
}

std::vector<ThreadsAndStreams> combinations(std::uint32_t parallelism, std::uint32_t threads_max) {
  std::vector<ThreadsAndStreams> found;
  for (std::uint32_t threads = 1; threads <= std::min(parallelism, threads_max); ++threads) {
    found.push_back({threads, parallelism / threads});
  }
  return found;
}

}  // namespace headrace
