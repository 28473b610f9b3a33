#pragma once

#include "headrace/device/device.hpp"

namespace headrace::measure {

/// What the memory system of a device can do, measured now. Bytes per second; medians of several copies of a size that
/// does not fit in a cache, checked for having arrived.
struct MemoryRoofs {
  double to_device = 0;    ///< Pinned host memory to the device.
  double from_device = 0;  ///< The device to pinned host memory.
  double on_device = 0;    ///< Within the device; bytes read plus bytes written.
};

/// Takes some tenths of a second. Throws DeviceError when the device has no room for two buffers of 64 MiB.
[[nodiscard]] MemoryRoofs measure_memory_roofs(Device device);

}  // namespace headrace::measure
