#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "headrace/fetch/detail/column.hpp"

namespace headrace::fetch {

/// Years of stamps of which the range is known. How many mean years a stamp is after `base` is a multiplication, and
/// `first_year` with that added is its year or the one before: one comparison with when the next one starts tells.
struct YearTable {
  std::int64_t base = 0;
  std::int64_t first_year = 0;
  std::uint32_t factor = 0;  ///< The factor of near_year().
  std::uint8_t shift = 0;
  std::vector<std::int64_t> starts;  ///< From `first_year` + 1 on. No stamp further from the base is in the table.
};

/// For stamps of so many units a day; nothing where the years are more than `most`.
[[nodiscard]] std::optional<YearTable> make_year_table(const ValueRange& stamps, std::int64_t units_per_day,
                                                       std::size_t most);

}  // namespace headrace::fetch
