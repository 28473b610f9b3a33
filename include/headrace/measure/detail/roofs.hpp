#pragma once

#include <cstddef>
#include <vector>

#include "headrace/device/device.hpp"

namespace headrace::measure {

/// What the memory system of a device can do, measured now. Bytes per second; medians of several copies of a size that
/// does not fit in a cache, checked for having arrived.
struct MemoryRoofs {
  double to_device = 0;    ///< Pinned host memory to the device.
  double from_device = 0;  ///< The device to pinned host memory.
  double on_device = 0;    ///< Within the device; bytes read plus bytes written.
};

/// Takes some tenths of a second. Throws DeviceError when the device has no room: two buffers of 64 MiB, of a GPU two
/// more of 512 MiB.
[[nodiscard]] MemoryRoofs measure_memory_roofs(Device device);

/// Bytes read plus bytes written per second, of all devices together, by copies of `bytes` within the memory of each,
/// at the same time: one figure a run, after a run that warms up. A run copies again and again, until starting and
/// waiting count for nothing. What a pass over that many bytes can reach: bytes that fit in a cache are there. Throws
/// UsageError for no device, no bytes or no run, and DeviceError where there is no room or what arrived is not what was
/// copied.
[[nodiscard]] std::vector<double> measure_memory_copies(const std::vector<Device>& devices, std::size_t bytes,
                                                        int runs = 5);

}  // namespace headrace::measure
