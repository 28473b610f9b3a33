#pragma once

#include <cstddef>

#include "headrace/device/copy_batch.hpp"

namespace headrace::detail {

/// Copies between host memory ranges that do not overlap. Device copies that are enqueued afterwards see the written
/// bytes.
void host_copy(std::byte* to, const std::byte* from, std::size_t bytes, HostStores stores) noexcept;

}  // namespace headrace::detail
