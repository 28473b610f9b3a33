#pragma once

#include <cstddef>
#include <vector>

#include "headrace/fetch/scan.hpp"

namespace headrace::fetch {

/// Some of the values of a query, as a query of its own over the same rows in the same order.
struct Slice {
  Query query;
  std::size_t values = 0;  ///< Those that belong to the result; any behind them are there to be ordered by.
};

/// A query of rows cut into as many as a program has room for: the query itself where it fits one. `table` says what
/// its columns are; no row is looked at. Throws UsageError for a query that no cut makes fit.
[[nodiscard]] std::vector<Slice> slices_of(const Query& query, const TableView& table);

}  // namespace headrace::fetch
