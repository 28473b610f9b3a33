#pragma once

#include <cstddef>
#include <string_view>

namespace headrace::operators {

/// The offset of the first byte that does not belong to a well-formed UTF-8 sequence (Unicode 15, table 3-7), or
/// text.size() when all of it is well-formed.
[[nodiscard]] std::size_t valid_utf8_prefix(std::string_view text) noexcept;

}  // namespace headrace::operators
