#pragma once

#include <string>

#include "headrace/serve/detail/ladder.hpp"

/// Notes for a rung's row if its figure alone would mislead.
namespace headrace::serve::detail {

/// Why a load was not sustained: ": p99 was 0.8 ms at 5000 queries/s".
[[nodiscard]] std::string describe_failure(const measure::LoadResult& failure, Duration bound);

/// If `now` is below `before`, the previous rung with figures: by how much, and the likely reason that the two rows
/// show (capacity by threads, stages). Else empty.
[[nodiscard]] std::string why_lower(const RungResult& before, const RungResult& now);

}  // namespace headrace::serve::detail
