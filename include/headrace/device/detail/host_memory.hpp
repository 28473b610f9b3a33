#pragma once

#include "headrace/device/device.hpp"

namespace headrace {

/// The host memory that this process may use, and how much of it is available without evicting anything: the minimum
/// over the machine and every control group above the process. Swap does not count. If no file tells, all of it counts
/// as free.
[[nodiscard]] MemoryInfo host_memory();

}  // namespace headrace
