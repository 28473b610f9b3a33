#pragma once

#include <cstddef>

#include "grid/part.hpp"

namespace headrace::grid {

/// Copies what a part has of a field, ghosts included, from a whole array of the domain in host memory, or from one
/// value for all cells, and waits.
[[nodiscard]] Status upload_field(Part& part, int field, const Extent& extent, const std::byte* from,
                                  bool one_for_all) noexcept;
/// Copies what a part owns of a field to a whole array, and waits.
[[nodiscard]] Status download_field(Part& part, int field, const Extent& extent, std::byte* to) noexcept;

}  // namespace headrace::grid
