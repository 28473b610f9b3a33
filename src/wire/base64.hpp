#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace headrace::wire {

/// Decodes base64 with the standard alphabet and padding (RFC 4648, section 4). Empty if the text is anything else,
/// such as one with line breaks.
[[nodiscard]] std::optional<std::vector<std::byte>> decode_base64(std::string_view text);

}  // namespace headrace::wire
