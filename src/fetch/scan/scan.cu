#include <algorithm>

#include "fetch/scan/kernel.hpp"
#if defined(__CUDACC__)
#include "fetch/scan/block_memory.cuh"
#endif
#include "fetch/scan/tiles.hpp"
#include "headrace/device/kernel.hpp"

namespace headrace::fetch {

namespace {

struct Scan {
  static constexpr const char* kName = "scan of columns";
  static constexpr int kThreadsMax = kScanThreads;
  static constexpr int kBlocksMin = 4;  // enough loads in flight to cover the memory's latency

  /// A tile has kTileRows rows on either device: a few per thread of a CUDA block, all of them for a core.
  template <class Group>
  HEADRACE_HD static void run(const Group& group, const ScanWork& work) {
    scan_tiles<Group::kLanes == 1 ? kTileRows / kScanThreads : kTileRows>(group, work);
  }
};

}  // namespace

Status enqueue_scan(StreamRef stream, const ScanWork& work) noexcept {
  static const auto kernel = make_kernel<Scan, ScanWork>();
  const bool cpu = stream.device().properties().host_cores;
  // Launches only blocks that are resident together, so that each clears and flushes its states only once.
  const std::int64_t most = cpu ? stream.device().properties().multiprocessor_count
                                : stream.device().resident_blocks_max(kernel, kScanThreads);
  const LaunchShape shape{.blocks = static_cast<std::uint32_t>(std::clamp<std::int64_t>(
                              work.tiles - work.first_tile, 1, std::max<std::int64_t>(most, 1))),
                          .threads = kScanThreads};
  // On a CPU device, only a resident launch gives each block a core.
  if (cpu && shape.blocks > 1) return launch_resident(stream, kernel, shape, work);
  return launch(stream, kernel, shape, work);
}

}  // namespace headrace::fetch
