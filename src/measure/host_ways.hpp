#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "headrace/base/detail/clock.hpp"
#include "headrace/device/device.hpp"

namespace headrace::measure {

/// How bytes in ordinary host memory, such as a mapped file, get to a device.
enum class HostWay : std::uint8_t {
  pageable,    ///< The driver copies them from pageable memory.
  staged,      ///< The threads of a CopyBatch copy them to pinned slots.
  pool,        ///< The host copies them to a persistent pinned buffer, from which they are transferred.
  registered,  ///< They are page-locked in place and transferred from there.
  read,        ///< They are page-locked in place, and a kernel reads them over the link.
};

[[nodiscard]] std::string_view to_string(HostWay way) noexcept;

/// The cost of a way: `once` before the first pass, `back` after the last, the others in each pass.
struct HostWayCost {
  HostWay way = HostWay::pageable;
  bool supported = true;  ///< False: the device cannot do it, or the system refuses to lock more memory.
  std::uint64_t bytes = 0;
  Duration once{};
  Duration back{};
  std::vector<Duration> fill{};      ///< Time of one host thread, before the transfer.
  std::vector<Duration> transfer{};  ///< Time from enqueueing until the transfer is done.
  bool verified = false;             ///< The device held the bytes after the last pass.
};

/// Measures every way with `bytes` bytes, rounded up to pages, in `passes` passes. Throws UsageError if either is 0,
/// DeviceError if the device has no room or fails.
[[nodiscard]] std::vector<HostWayCost> measure_host_ways(Device device, std::size_t bytes, std::size_t passes);

}  // namespace headrace::measure
