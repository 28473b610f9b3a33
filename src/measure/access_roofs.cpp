#include <algorithm>
#include <array>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"
#include "measure/access_bench.hpp"

namespace headrace::measure {

namespace {

constexpr std::size_t kDeviceBytes = kGiB;  // far beyond any cache
constexpr std::size_t kLinkBytes = 256 * kMiB;
constexpr std::size_t kCpuBytes = 64 * kMiB;  // a single thread processes it
constexpr int kAccessRuns = 5;
constexpr std::array<std::uint32_t, 3> kThreadCounts{256, 512, 1024};

std::size_t pages_of(std::size_t bytes) noexcept { return std::max<std::size_t>(1, bytes / kPageBytes); }

/// The best median over the launch shapes, in either order.
double rate(AccessBench& bench, AccessOperation operation, MemoryKind kind, std::size_t page_count) {
  const std::size_t bytes = page_count * kPageBytes;
  const Buffer data(bench.device(), kind, bytes);
  bench.fill(data.data(), page_count);
  const bool on_cpu = bench.device().properties().host_cores;
  std::uint32_t run = 0;
  double best = 0;
  for (const AccessPattern pattern : {AccessPattern::grid_stride, AccessPattern::block_stride}) {
    for (const std::uint32_t threads : kThreadCounts) {
      if (on_cpu && (threads != kThreadCounts.front() || pattern != AccessPattern::grid_stride)) continue;
      const AccessWork work{.pattern = pattern, .operation = operation, .threads = threads};
      std::array<Duration, kAccessRuns> times{};
      static_cast<void>(bench.time(work, data.data(), page_count, ++run));
      for (Duration& time : times) time = bench.time(work, data.data(), page_count, ++run);
      std::nth_element(times.begin(), times.begin() + kAccessRuns / 2, times.end());
      const double seconds = std::chrono::duration<double>(times[kAccessRuns / 2]).count();
      if (seconds > 0) best = std::max(best, static_cast<double>(bytes) / seconds);
    }
  }
  return best;
}

}  // namespace

AccessRoofs measure_access_roofs(Device device, AccessOperation operation, std::size_t bytes) {
  AccessBench bench(device);
  const bool on_cpu = device.properties().host_cores;
  const std::size_t on_device = pages_of(std::min(bytes, on_cpu ? kCpuBytes : kDeviceBytes));
  const std::size_t over_link = pages_of(std::min(bytes, on_cpu ? kCpuBytes : kLinkBytes));
  return {.operation = operation,
          .on_device = rate(bench, operation, MemoryKind::device, on_device),
          .over_link = rate(bench, operation, MemoryKind::mapped, over_link)};
}

}  // namespace headrace::measure
