#pragma once

#include <cstddef>

#include "headrace/device/device.hpp"

namespace headrace::detail {

/// The machine's physical memory.
[[nodiscard]] std::size_t machine_memory_bytes() noexcept;

/// HEADRACE_CPU_MEMORY, or the memory that this process may use where it is not set. Throws UsageError when it is not a
/// size above 0.
[[nodiscard]] std::size_t cpu_memory_budget();

/// What the machine says of its processor. Reads /proc and sysfs; never throws for what they do not say.
[[nodiscard]] DeviceProperties cpu_properties(std::size_t memory_bytes);

}  // namespace headrace::detail
