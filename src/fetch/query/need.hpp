#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "fetch/windows.hpp"
#include "headrace/fetch/scan.hpp"
#include "headrace/fetch/source.hpp"

namespace headrace::fetch {

/// The parts of a table that a query needs.
struct Need {
  std::vector<std::uint32_t> columns;  ///< Columns of the source, or validity_of() strings where that is enough.
  std::vector<std::shared_ptr<Dictionary>> dictionaries;  ///< By column; null for columns other than strings.
  Fragments fragments;
  Query query;             ///< The query, renumbered to these columns.
  std::size_t pruned = 0;  ///< Skipped fragments, of which no row can pass the filter.
  std::size_t bytes = 0;   ///< Upper bound on the device memory of the columns.
  std::int64_t rows = 0;
};

/// Whether a query has groups. Aggregates without keys make one group of all rows.
[[nodiscard]] inline bool gathers_groups(const Query& query) {
  return !query.keys.empty() || !query.aggregates.empty();
}

/// Throws UsageError for a column that the source lacks.
[[nodiscard]] Need need_of(const Query& query, const Source& source);

}  // namespace headrace::fetch
