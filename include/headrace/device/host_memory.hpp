#pragma once

#include "headrace/device/device.hpp"

namespace headrace {

/// The machine's memory, and how much of it can be had without pushing anything out. Free is all of it where the
/// machine does not say.
[[nodiscard]] MemoryInfo host_memory();

}  // namespace headrace
