#pragma once

#include <cstdint>

#include "headrace/fetch/detail/arrow_c.hpp"
#include "headrace/fetch/detail/column.hpp"

/// Where a column of strings has values, as a column of booleans.
namespace headrace::fetch {

/// Booleans, of any value, that are there where the strings are. Their bitmap is that of the strings, without a copy,
/// unless it takes the dictionary to say which are missing.
/// @param type  of the array, a dictionary.
/// Throws DataError for an array that is not of the type.
[[nodiscard]] OwnedArray validity_array(OwnedArray strings, const DataType& type);
/// So many booleans, all there or all missing.
[[nodiscard]] OwnedArray validity_array(std::int64_t rows, bool there);

}  // namespace headrace::fetch
