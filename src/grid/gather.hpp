#pragma once

#include <cstddef>

#include "grid/share.hpp"

namespace headrace::grid {

/// Gathers an array of the domain on rank 0. All ranks call it, each with an array that holds the cells of its own
/// parts. Returns Errc::cancelled once a rank has failed.
[[nodiscard]] Status gather_on_first(const Share& share, const Decomposition& decomposition, std::size_t value_bytes,
                                     std::byte* array) noexcept;

}  // namespace headrace::grid
