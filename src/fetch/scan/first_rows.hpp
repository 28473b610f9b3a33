#pragma once

#include <optional>

#include "fetch/query/compiler.hpp"
#include "headrace/device/stream.hpp"

/// The first rows of a table in an order: in one pass, without putting the others in order.
namespace headrace::fetch {

/// The program of a query that asks for few of its rows in an order; none where it is better to order all, or has to
/// be.
[[nodiscard]] std::optional<Compiled> compile_first_rows(const TableView& table, const Query& query,
                                                         CompileOptions options);

/// Runs that program. Some tiles are run at a time: of their rows those that come before the last of the first rows so
/// far are written, and put in order together with these. Each time there are fewer, so more tiles are run. Throws as
/// scan() does.
[[nodiscard]] ScanResult scan_first_rows(StreamRef stream, const TableView& table, const Query& query,
                                         const Compiled& compiled);

}  // namespace headrace::fetch
