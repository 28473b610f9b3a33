#pragma once

#include "headrace/device/device.hpp"

namespace headrace {

/// The memory of the host that this process may use, and how much of it can be had without pushing anything out: the
/// least of what the machine and each control group above the process allow. Swap does not count. Free is all of it
/// where nothing says.
[[nodiscard]] MemoryInfo host_memory();

}  // namespace headrace
