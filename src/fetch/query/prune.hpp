#pragma once

#include <cstdint>

#include "headrace/fetch/expression.hpp"
#include "headrace/fetch/source.hpp"

namespace headrace::fetch {

/// Whether the filter can be true for any row of the fragment, judging by the source's chunk bounds. True if nothing is
/// known.
[[nodiscard]] bool may_pass(const Expression& filter, const Source& source, std::uint32_t fragment);

}  // namespace headrace::fetch
