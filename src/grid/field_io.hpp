#pragma once

#include <cstddef>

#include "grid/part.hpp"

namespace headrace::grid {

/// Fills a field of a part, ghosts included, from a host array of the whole domain or with one value for all cells, and
/// waits.
[[nodiscard]] Status upload_field(Part& part, int field, const Decomposition& decomposition, const std::byte* from,
                                  bool one_for_all) noexcept;
/// Copies a part's owned cells of a field to an array of the whole domain, and waits.
[[nodiscard]] Status download_field(Part& part, int field, const Decomposition& decomposition, std::byte* to) noexcept;

}  // namespace headrace::grid
