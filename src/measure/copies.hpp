#pragma once

#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <string_view>
#include <vector>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/detail/clock.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/copy_batch.hpp"
#include "headrace/device/device.hpp"

/// What CopyBatch moves from the host to a device, each figure beside the roofs of the same moment.
namespace headrace::measure {

/// How the copies of a batch lie.
enum class CopyLayout : std::uint8_t {
  contiguous,        ///< Each continues the one before on both sides.
  scattered_source,  ///< Targets one after the other, sources in random order.
  scattered,         ///< Both sides in random orders of their own.
};

[[nodiscard]] std::string_view to_string(CopyLayout layout) noexcept;
/// Throws UsageError that lists the layouts.
[[nodiscard]] CopyLayout parse_copy_layout(std::string_view text);
[[nodiscard]] std::string_view to_string(HostStores stores) noexcept;
/// Throws UsageError that lists them.
[[nodiscard]] HostStores parse_host_stores(std::string_view text);

struct CopyCase {
  std::size_t copy_bytes = kKiB;
  std::size_t count = 65536;  ///< Copies of a batch.
  CopyLayout layout = CopyLayout::scattered;
  bool odd = false;                        ///< Sources start 1 byte, targets 3 bytes after an aligned address.
  MemoryKind source = MemoryKind::pinned;  ///< One that the host can write.
  CopyRoute route = CopyRoute::automatic;
  StagingOptions staging{};
  Duration linger{};        ///< CopyBatchOptions::linger.
  std::size_t repeats = 1;  ///< Batches submitted before the run waits for them; each is flushed.
};

struct CopyRuns {
  std::vector<Duration> times{};  ///< The time of each run, from the first add() to the end of wait().
  std::uint64_t bytes = 0;        ///< Bytes that each run moves.
  bool supported = true;          ///< False: the route cannot do it here, and nothing was measured.
  bool verified = false;          ///< Every run's target held the bytes of its sources.
};

/// Runs a case so many times, after one that warms up; the same CopyBatch throughout. The target is cleared before each
/// run and compared after it. Ends early, with fewer runs, when `stop` asks for it. Throws UsageError for a case that
/// can never be, DeviceError when the device has no room for it or fails.
[[nodiscard]] CopyRuns measure_copy_batch(Device device, const CopyCase& of, std::size_t runs,
                                          const std::stop_token& stop = {});

/// What the link gives when nothing stands in the way, in bytes per second, one figure a run.
struct CopyRoofs {
  std::vector<double> engine;  ///< One large copy from pinned memory.
  std::vector<double> kernel;  ///< A kernel that streams through pinned memory and stores to the device.
};

[[nodiscard]] CopyRoofs measure_copy_roofs(Device device, std::size_t bytes, std::size_t runs);

}  // namespace headrace::measure
