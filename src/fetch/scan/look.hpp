#pragma once

#include <cstdint>

#include "headrace/fetch/scan.hpp"

namespace headrace::fetch {

/// What is known of a column of strings without a look at its values: its indices are those that its dictionary has
/// given out, and a chunk says whether one is missing.
void learn_indices(TableView& table, std::uint32_t column);

}  // namespace headrace::fetch
