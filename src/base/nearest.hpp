#pragma once

#include <span>
#include <string>
#include <string_view>

namespace headrace {

/// The name in `known` that is fewest character changes away from `name`, ignoring case. Empty if they have nothing in
/// common.
[[nodiscard]] std::string_view nearest_name(std::string_view name, std::span<const std::string> known);

/// "; did you mean H100? There are H100, H200, CPU": the end of a message about an unknown name.
[[nodiscard]] std::string offer_names(std::string_view name, std::span<const std::string> known);

}  // namespace headrace
