#include <algorithm>

#include "fetch/kernel.hpp"
#include "fetch/machine.hpp"
#include "headrace/device/kernel.hpp"

namespace headrace::fetch {

namespace {

struct Scan {
  static constexpr const char* kName = "scan of columns";

  /// A tile is kTileRows rows on either device: a few for each thread of a CUDA block, all of them for a core.
  template <class Group>
  HEADRACE_HD static void run(const Group& group, const ScanWork& work) {
    scan_tiles<Group::kLanes == 1 ? kTileRows / kScanThreads : kTileRows>(group, work);
  }
};

/// Blocks of a multiprocessor: as many as 64 registers a thread and the block's shared memory let it hold.
constexpr int kBlocksPerMultiprocessor = 4;

}  // namespace

Status enqueue_scan(StreamRef stream, const ScanWork& work) noexcept {
  static const Kernel kernel = make_kernel<Scan, ScanWork>();
  const DeviceProperties& device = stream.device().properties();
  const bool cpu = stream.device().kind() == DeviceKind::cpu;
  const std::int64_t most = std::int64_t{device.multiprocessor_count} * (cpu ? 1 : kBlocksPerMultiprocessor);
  const LaunchShape shape{.blocks = static_cast<std::uint32_t>(std::clamp<std::int64_t>(work.tiles, 1, std::max<std::int64_t>(most, 1))),
                          .threads = kScanThreads};
  // A CPU device gives only the blocks of a resident launch a core each.
  if (cpu && shape.blocks > 1) return launch_resident(stream, kernel, shape, work);
  return launch(stream, kernel, shape, work);
}

}  // namespace headrace::fetch
