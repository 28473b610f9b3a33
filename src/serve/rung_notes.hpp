#pragma once

#include <string>

#include "headrace/serve/detail/ladder.hpp"

/// What a rung's row says where its figure alone would mislead.
namespace headrace::serve::detail {

/// Why a load was not sustained: ": p99 was 0.8 ms at 5000 queries/s".
[[nodiscard]] std::string describe_failure(const measure::LoadResult& failure, Duration bound);

/// Where `now` is below `before`, the rung before it that has figures: by what, and the likely reason that the two rows
/// themselves show (capacity by threads, stages). Else empty.
[[nodiscard]] std::string why_lower(const RungResult& before, const RungResult& now);

}  // namespace headrace::serve::detail
