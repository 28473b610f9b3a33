#pragma once

#include <optional>

#include "fetch/query/compiler.hpp"
#include "headrace/device/stream.hpp"

/// Finds the first rows of a table in an order in one pass, without sorting the others.
namespace headrace::fetch {

/// Compiles a query that asks for few of its rows in an order; empty if sorting all rows is better or necessary.
[[nodiscard]] std::optional<Compiled> compile_first_rows(const TableView& table, const Query& query,
                                                         CompileOptions options);

/// Runs that program, some tiles at a time. Each run writes only rows that come before the last of the best rows so
/// far, and sorts them together with these. As fewer rows qualify each time, more tiles are run at once. Throws as
/// scan() does.
[[nodiscard]] ScanResult scan_first_rows(StreamRef stream, const TableView& table, const Query& query,
                                         const Compiled& compiled);

}  // namespace headrace::fetch
