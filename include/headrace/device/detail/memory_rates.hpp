#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/device/detail/access.hpp"
#include "headrace/device/device.hpp"

namespace headrace {

/// Bytes of data processed per second. Each byte counts once, whatever the operation.
struct OperationRates {
  double read = 0;
  double write = 0;
  double read_modify_write = 0;
  [[nodiscard]] double of(AccessOperation operation) const noexcept;
};

/// Bytes per second that page faults bring to the device, by how a kernel first touches the pages.
struct FaultRates {
  double grid_stride = 0;
  double block_stride = 0;
  double random = 0;
};

/// The rates of a device's and its host's memory for kernels, from which advise() predicts. In bytes per second and
/// seconds. Measured by measure::measure_memory_rates(), or a row of the table of known machines.
struct MemoryRates {
  std::string name;              ///< The name of the device, or of the row.
  OperationRates device;         ///< A kernel that goes through device memory in order.
  OperationRates device_random;  ///< A kernel whose warps each access 128 bytes at random places of device memory.
  OperationRates link;           ///< A kernel that goes through pinned host memory in order.
  OperationRates link_random;    ///< A kernel that accesses pinned host memory at random.
  /// Address translation covers link_reach_bytes of host memory. Random accesses beyond them have the share
  /// link_beyond_reach of the rate.
  double link_reach_bytes = std::numeric_limits<double>::infinity();
  double link_beyond_reach = 1;
  FaultRates faults;             ///< Managed memory, first touch.
  double prefetch = 0;           ///< The copy engine, pinned host memory to the device.
  double host_copy = 0;          ///< One host thread filling host memory from host memory.
  double device_page = 0;        ///< Seconds to take and map a page of 2 MiB on the device.
  double host_page = 0;          ///< The same for a host page.
  double page_move = 0;          ///< Seconds to move a page between device and host.
  double device_latency = 0;     ///< Seconds of one access to device memory.
  double link_latency = 0;       ///< Seconds of one access to host memory.
  double in_flight_bytes = 0;    ///< Bytes of random accesses that a full device has in flight at once.
  double cache_bytes = 0;        ///< Bytes of the last cache before device memory.
  double cache = 0;              ///< Bytes per second from that cache.
  bool one_memory = false;       ///< Device and host share one memory and its bandwidth.
  std::size_t memory_bytes = 0;  ///< Memory of the device; the free memory if the device is present.
  bool managed = false;          ///< Managed memory with concurrent access.
  /// Most managed memory that may be allocated: the free memory of the device. Empty if unknown.
  std::optional<std::size_t> managed_bytes;
};

/// The machines of the table, by name.
[[nodiscard]] const std::vector<MemoryRates>& known_memory_rates();
/// The machine of the table for `name`, such as "H100" or "NVIDIA H100 80GB HBM3"; case does not matter. Throws
/// UsageError that lists the table.
[[nodiscard]] const MemoryRates& find_memory_rates(std::string_view name);
/// Rates without a measurement: the row of the table that matches the device's name, else the row for its kind of
/// device, with what the device itself reports about managed memory.
[[nodiscard]] MemoryRates memory_rates_of(Device device);

}  // namespace headrace
