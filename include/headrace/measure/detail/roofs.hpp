#pragma once

#include <cstddef>
#include <vector>

#include "headrace/device/device.hpp"

namespace headrace::measure {

/// The rates of a device's memory system, measured now. In bytes per second; medians of several verified copies of a
/// size that does not fit in a cache.
struct MemoryRoofs {
  double to_device = 0;    ///< Pinned host memory to the device.
  double from_device = 0;  ///< The device to pinned host memory.
  double on_device = 0;    ///< Within the device; bytes read plus bytes written.
};

/// Takes some tenths of a second. Throws DeviceError if the device has no room: two buffers of 64 MiB, on a GPU two
/// more of 512 MiB.
[[nodiscard]] MemoryRoofs measure_memory_roofs(Device device);

/// Bytes read plus bytes written per second, summed over all devices, by simultaneous copies of `bytes` within the
/// memory of each: one figure per run, after a warm-up run. A run repeats the copy until the time to start and wait is
/// negligible. This is what a pass over that many bytes can reach, including bytes that fit in a cache. Throws
/// UsageError for no device, no bytes or no run, and DeviceError if there is no room or the copied bytes differ.
[[nodiscard]] std::vector<double> measure_memory_copies(const std::vector<Device>& devices, std::size_t bytes,
                                                        int runs = 5);

}  // namespace headrace::measure
