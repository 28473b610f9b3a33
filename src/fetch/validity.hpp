#pragma once

#include <cstdint>

#include "headrace/fetch/detail/arrow_c.hpp"
#include "headrace/fetch/detail/column.hpp"

/// The validity of a column of strings, as a column of booleans.
namespace headrace::fetch {

/// An array of booleans that is missing exactly where the strings are; the values mean nothing. It borrows the bitmap
/// of the strings, unless null entries of the dictionary make more values missing.
/// @param type  the array's type, a dictionary.
/// Throws DataError if the array is not of that type.
[[nodiscard]] OwnedArray validity_array(OwnedArray strings, const DataType& type);
/// `rows` booleans, all present or all missing.
[[nodiscard]] OwnedArray validity_array(std::int64_t rows, bool there);

}  // namespace headrace::fetch
