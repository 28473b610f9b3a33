#pragma once

#include <cstddef>
#include <filesystem>
#include <limits>

#include "headrace/device/device.hpp"

namespace headrace::detail {

inline constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

/// host_memory() for the given folders in place of /proc and /sys/fs/cgroup. A number is kNoLimit if no file has it.
[[nodiscard]] MemoryInfo host_memory_of(const std::filesystem::path& proc, const std::filesystem::path& groups);

}  // namespace headrace::detail
