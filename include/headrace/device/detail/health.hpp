#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/device/device.hpp"

namespace headrace {

/// What the management library (NVML) reports about a device at this moment. A value is empty if it reports none.
struct DeviceHealth {
  std::string absence;                    ///< Why it reports nothing at all; empty if it does.
  std::optional<bool> persistence;        ///< The driver stays loaded while no process uses the device.
  std::optional<std::size_t> bar1_bytes;  ///< Window through which PCIe peers and the host see device memory.
  std::optional<int> link_generation;     ///< Current PCIe generation; an idle device may be at a lower one.
  std::optional<int> link_width;
  std::optional<int> link_generation_max;  ///< The highest that device and machine support.
  std::optional<int> link_width_max;
  std::optional<int> device_generation_max;  ///< The highest that the device supports in any machine.
  int nvlink_count = 0;                      ///< NVLinks that are up.
  std::vector<int> near_processors;          ///< Logical processors nearest to it, as the system numbers them.
};

/// Reads the health of a device; a CPU device has none.
[[nodiscard]] DeviceHealth read_health(Device device);

/// Bytes that have passed over all NVLinks of a device since an arbitrary moment in the past, in steps of 1 KiB.
struct LinkCounters {
  std::string absence;  ///< Why there are no counters; empty if there are.
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_bytes = 0;
};

[[nodiscard]] LinkCounters read_link_counters(Device device);

}  // namespace headrace
