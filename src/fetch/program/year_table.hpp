#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "headrace/fetch/detail/column.hpp"

namespace headrace::fetch {

/// Finds the years of stamps whose range is known. A multiplication gives the number of mean years between `base` and a
/// stamp. `first_year` plus that number is the stamp's year or the one before; one comparison with the start of the
/// next year decides.
struct YearTable {
  std::int64_t base = 0;
  std::int64_t first_year = 0;
  std::uint32_t factor = 0;  ///< The factor for near_year().
  std::uint8_t shift = 0;
  std::vector<std::int64_t> starts;  ///< Starts of the years from `first_year` + 1 on; later stamps are not covered.
};

/// Makes a table for stamps with `units_per_day`; empty if it would have more than `most` entries.
[[nodiscard]] std::optional<YearTable> make_year_table(const ValueRange& stamps, std::int64_t units_per_day,
                                                       std::size_t most);

}  // namespace headrace::fetch
