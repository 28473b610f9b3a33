#pragma once

#include <cstddef>
#include <filesystem>
#include <limits>

#include "headrace/device/device.hpp"

namespace headrace::detail {

inline constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

/// What host_memory() reads, with the folders that are /proc and /sys/fs/cgroup. Either number is kNoLimit where no
/// file says anything.
[[nodiscard]] MemoryInfo host_memory_of(const std::filesystem::path& proc, const std::filesystem::path& groups);

}  // namespace headrace::detail
