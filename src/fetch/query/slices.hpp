#pragma once

#include <cstddef>
#include <vector>

#include "headrace/fetch/scan.hpp"

namespace headrace::fetch {

/// Some of the values of a query, as a query of its own over the same rows in the same order.
struct Slice {
  Query query;
  std::size_t values = 0;  ///< Number of values that belong to the result; further ones exist only for ordering.
};

/// Cuts a query of rows into slices that each fit one program; returns the query itself if it fits. Uses only the
/// columns of `table`, not its rows. Throws UsageError for a query that cannot be cut to fit.
[[nodiscard]] std::vector<Slice> slices_of(const Query& query, const TableView& table);

}  // namespace headrace::fetch
