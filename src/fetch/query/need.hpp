#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "fetch/windows.hpp"
#include "headrace/fetch/scan.hpp"
#include "headrace/fetch/source.hpp"

namespace headrace::fetch {

/// What of a table a query needs.
struct Need {
  std::vector<std::uint32_t> columns;  ///< Columns of the source; for strings of which that is enough, their validity.
  std::vector<std::shared_ptr<Dictionary>> dictionaries;  ///< By column, null for others than strings.
  Fragments fragments;
  Query query;             ///< Over these columns.
  std::size_t pruned = 0;  ///< Fragments that are left out, because no row of them passes the filter.
  std::size_t bytes = 0;   ///< The bytes that they take on the device, at most.
  std::int64_t rows = 0;
};

/// Whether a query has groups: one of all rows where it has aggregates and no keys.
[[nodiscard]] inline bool gathers_groups(const Query& query) {
  return !query.keys.empty() || !query.aggregates.empty();
}

/// Throws UsageError for a column that the source has not.
[[nodiscard]] Need need_of(const Query& query, const Source& source);

}  // namespace headrace::fetch
