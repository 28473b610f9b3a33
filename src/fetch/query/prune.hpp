#pragma once

#include <cstdint>

#include "headrace/fetch/expression.hpp"
#include "headrace/fetch/source.hpp"

namespace headrace::fetch {

/// Whether the filter can be true for a row of the fragment, by what the source knows of its chunks. True where nothing
/// is known.
[[nodiscard]] bool may_pass(const Expression& filter, const Source& source, std::uint32_t fragment);

}  // namespace headrace::fetch
