#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/device/device.hpp"

namespace headrace {

/// What the management library (NVML) says of a device at this moment. Empty where it does not say.
struct DeviceHealth {
  std::string absence;                    ///< Why it says nothing at all; empty when it does.
  std::optional<bool> persistence;        ///< The driver stays loaded when nobody uses the device.
  std::optional<std::size_t> bar1_bytes;  ///< Window through which PCIe peers and the host see device memory.
  std::optional<int> link_generation;     ///< PCIe, now: an idle device may sleep at a lower rate.
  std::optional<int> link_width;
  std::optional<int> link_generation_max;  ///< The highest that device and machine agree on.
  std::optional<int> link_width_max;
  std::optional<int> device_generation_max;  ///< The highest of the device, wherever it is plugged in.
  int nvlink_count = 0;                      ///< NVLinks that are up.
  std::vector<int> near_processors;          ///< Logical processors nearest to it, as the system numbers them.
};

/// Reads it; a CPU device has none.
[[nodiscard]] DeviceHealth read_health(Device device);

/// Bytes that have passed over all NVLinks of a device since some moment in the past, in steps of 1 KiB.
struct LinkCounters {
  std::string absence;  ///< Why there are none; empty when there are.
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_bytes = 0;
};

[[nodiscard]] LinkCounters read_link_counters(Device device);

}  // namespace headrace
