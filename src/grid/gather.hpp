#pragma once

#include <cstddef>

#include "grid/share.hpp"

namespace headrace::grid {

/// Brings what every rank has of an array of the domain to rank 0: all call it, each with an array that holds the cells
/// of its own parts. Errc::cancelled once a rank has failed.
[[nodiscard]] Status gather_on_first(const Share& share, const Decomposition& decomposition, std::size_t value_bytes,
                                     std::byte* array) noexcept;

}  // namespace headrace::grid
