#pragma once

#include <cstdint>

#include "device/backend.hpp"

namespace headrace::detail {

/// Sorts pairs with up to so many threads, the caller's among them; whether the result is in the other lists.
/// Errc::out_of_memory where there is none for its counters.
[[nodiscard]] Result<bool> radix_sort(const PairLists& pairs, std::uint32_t threads) noexcept;

}  // namespace headrace::detail
