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

/// Measures CopyBatch from the host to a device, with the roofs measured at the same time.
namespace headrace::measure {

/// The layout of the copies of a batch.
enum class CopyLayout : std::uint8_t {
  contiguous,        ///< Each copy continues the previous one on both sides.
  scattered_source,  ///< Contiguous targets, sources in random order.
  scattered,         ///< Both sides in separate random orders.
};

[[nodiscard]] std::string_view to_string(CopyLayout layout) noexcept;
/// Throws UsageError that lists the layouts.
[[nodiscard]] CopyLayout parse_copy_layout(std::string_view text);
[[nodiscard]] std::string_view to_string(HostStores stores) noexcept;
/// Throws UsageError that lists the names.
[[nodiscard]] HostStores parse_host_stores(std::string_view text);

struct CopyCase {
  std::size_t copy_bytes = kKiB;
  std::size_t count = 65536;  ///< Copies per batch.
  CopyLayout layout = CopyLayout::scattered;
  bool odd = false;                        ///< Sources start 1 byte, targets 3 bytes after an aligned address.
  MemoryKind source = MemoryKind::pinned;  ///< A kind of memory that the host can write.
  CopyRoute route = CopyRoute::automatic;
  StagingOptions staging{};
  Duration linger{};        ///< CopyBatchOptions::linger.
  std::size_t repeats = 1;  ///< Batches that the run submits before it waits; each is flushed.
};

struct CopyRuns {
  std::vector<Duration> times{};  ///< The time of each run, from the first add() to the end of wait().
  std::uint64_t bytes = 0;        ///< Bytes that each run moves.
  bool supported = true;          ///< False: the route does not work here, and nothing was measured.
  bool verified = false;          ///< Every run's target held the bytes of its sources.
};

/// Runs a case `runs` times after a warm-up run, with the same CopyBatch throughout. Clears the target before each run
/// and compares it afterwards. Ends early, with fewer runs, if `stop` is requested. Throws UsageError for an invalid
/// case, DeviceError if the device has no room or fails.
[[nodiscard]] CopyRuns measure_copy_batch(Device device, const CopyCase& of, std::size_t runs,
                                          const std::stop_token& stop = {});

/// The highest rates of the link, in bytes per second, one figure per run.
struct CopyRoofs {
  std::vector<double> engine;  ///< One large copy from pinned memory.
  std::vector<double> kernel;  ///< A kernel that streams through pinned memory and stores to the device.
};

[[nodiscard]] CopyRoofs measure_copy_roofs(Device device, std::size_t bytes, std::size_t runs);

}  // namespace headrace::measure
