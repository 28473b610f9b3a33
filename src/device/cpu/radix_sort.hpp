#pragma once

#include <cstdint>

#include "device/backend.hpp"

namespace headrace::detail {

/// Sorts pairs with up to `threads` threads, including the caller. Returns whether the result is in the other lists.
/// Errc::out_of_memory if there is no memory for the counters.
[[nodiscard]] Result<bool> radix_sort(const PairLists& pairs, std::uint32_t threads) noexcept;

}  // namespace headrace::detail
