#pragma once

#include <cstddef>

#include "headrace/device/device.hpp"

namespace headrace::detail {

/// The machine's physical memory.
[[nodiscard]] std::size_t machine_memory_bytes() noexcept;

/// HEADRACE_CPU_MEMORY, or the memory that this process may use if it is not set. Throws UsageError if the variable is
/// not a size above 0.
[[nodiscard]] std::size_t cpu_memory_budget();

/// Properties of the machine's processor from /proc and sysfs. Does not throw if they lack a value.
[[nodiscard]] DeviceProperties cpu_properties(std::size_t memory_bytes);

}  // namespace headrace::detail
