#pragma once

#include <cstdint>

#include "headrace/fetch/scan.hpp"

namespace headrace::fetch {

/// Fills in what is known of a column of strings without reading its values: the dictionary bounds its indices, and
/// each chunk says whether values are missing.
void learn_indices(TableView& table, std::uint32_t column);

}  // namespace headrace::fetch
