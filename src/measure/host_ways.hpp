#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "headrace/base/detail/clock.hpp"
#include "headrace/device/device.hpp"

namespace headrace::measure {

/// How bytes that lie in the host's ordinary memory, such as a mapped file's, get to a device.
enum class HostWay : std::uint8_t {
  pageable,    ///< The driver copies them as they lie.
  staged,      ///< A CopyBatch's threads put them into pinned slots.
  pool,        ///< They are copied to pinned memory that is kept, and go from there.
  registered,  ///< They are page-locked where they lie, and go from there.
  read,        ///< They are page-locked where they lie, and a kernel reads them over the link.
};

[[nodiscard]] std::string_view to_string(HostWay way) noexcept;

/// What a way costs: `once` before the first pass and `back` after the last, the others each pass.
struct HostWayCost {
  HostWay way = HostWay::pageable;
  bool supported = true;  ///< False: the device cannot do it, or the system locks no more memory.
  std::uint64_t bytes = 0;
  Duration once{};
  Duration back{};
  std::vector<Duration> fill{};      ///< The time of one thread of the host, before the transfer.
  std::vector<Duration> transfer{};  ///< From when it is enqueued until it is done.
  bool verified = false;             ///< The device held the bytes after the last pass.
};

/// Measures every way with so many bytes, rounded up to pages, and passes. Throws UsageError for none of either,
/// DeviceError when the device has no room or fails.
[[nodiscard]] std::vector<HostWayCost> measure_host_ways(Device device, std::size_t bytes, std::size_t passes);

}  // namespace headrace::measure
