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

/// Bytes of data gone through per second, each byte counted once whatever is done with it.
struct OperationRates {
  double read = 0;
  double write = 0;
  double read_modify_write = 0;
  [[nodiscard]] double of(AccessOperation operation) const noexcept;
};

/// What page faults bring to the device per second, by how a kernel touches the pages first.
struct FaultRates {
  double grid_stride = 0;
  double block_stride = 0;
  double random = 0;
};

/// What the memory of a device and of its host can do for a kernel: what advise() predicts from. Bytes per second and
/// seconds. Measured by measure::measure_memory_rates(), or a row of the table of known machines.
struct MemoryRates {
  std::string name;              ///< The name of the device, or of the row.
  OperationRates device;         ///< A kernel that goes through device memory in order.
  OperationRates device_random;  ///< One that takes 128 bytes at random places of it, a warp each.
  OperationRates link;           ///< In order through pinned host memory.
  OperationRates link_random;    ///< At random in pinned host memory.
  /// Address translation holds so many bytes of host memory; accesses at random beyond them have this share of the
  /// rate.
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
  double in_flight_bytes = 0;    ///< Bytes of accesses at random that a full device has on their way at once.
  double cache_bytes = 0;        ///< Bytes of the last cache before device memory.
  double cache = 0;              ///< Bytes per second out of that cache.
  bool one_memory = false;       ///< The device's memory is the host's: what the one carries the other cannot.
  std::size_t memory_bytes = 0;  ///< Memory of the device; what is free, where it is here.
  bool managed = false;          ///< Managed memory with concurrent access.
  /// Most managed memory that may be taken: what the device has free. Empty when not known.
  std::optional<std::size_t> managed_bytes;
};

/// The machines of the table, by name.
[[nodiscard]] const std::vector<MemoryRates>& known_memory_rates();
/// The machine of the table that `name` names, such as "H100" or "NVIDIA H100 80GB HBM3"; case does not matter. Throws
/// UsageError that lists the table.
[[nodiscard]] const MemoryRates& find_memory_rates(std::string_view name);
/// Rates without measuring: the row of the table that the device's name fits, else that for its kind of device, with
/// what the device itself says of managed memory.
[[nodiscard]] MemoryRates memory_rates_of(Device device);

}  // namespace headrace
