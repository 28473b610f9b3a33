#pragma once

#include <cstddef>

#include "headrace/device/copy_batch.hpp"

namespace headrace::detail {

/// Copies between memory of the host that does not overlap. What is written is visible to a device that is given a copy
/// of it afterwards.
void host_copy(std::byte* to, const std::byte* from, std::size_t bytes, HostStores stores) noexcept;

}  // namespace headrace::detail
