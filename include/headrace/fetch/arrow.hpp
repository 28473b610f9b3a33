#pragma once

// Columns come from any Arrow producer through the C data interface: these functions read its schemas and take its
// arrays as columns, without a copy.
//
//     auto column_of = [](const ArrowSchema& schema, const ArrowArray& array) {
//       std::optional<headrace::fetch::DataType> type = headrace::fetch::type_of(schema);
//       if (!type) std::printf("no column can have the format %s\n", schema.format);
//       return type ? headrace::fetch::view_of(array, *type) : headrace::fetch::ColumnView{};
//     };

#include <optional>
#include <string_view>

#include "headrace/fetch/detail/arrow_c.hpp"
#include "headrace/fetch/detail/column.hpp"

namespace headrace::fetch {

/// The type that a format string of the C data interface stands for ("i", "tsu:UTC", "d:12,2"); empty if columns cannot
/// have it. The schema of a dictionary has the format of its indices: see type_of().
[[nodiscard]] std::optional<DataType> parse_format(std::string_view format) noexcept;

/// The type of a column by its schema; empty if columns cannot have it. A dictionary must be one of strings or bytes.
[[nodiscard]] std::optional<DataType> type_of(const ArrowSchema& schema) noexcept;

/// A view of the array's buffers as a column of that type, without a copy. The array must outlive it. Throws DataError
/// for an array that cannot be of that type: another number of buffers, no values, negative lengths.
[[nodiscard]] ColumnView view_of(const ArrowArray& array, const DataType& type);

}  // namespace headrace::fetch
