#pragma once

#include <span>
#include <string>
#include <string_view>

namespace headrace {

/// The name of `known` that takes the fewest changes of a character to get to from `name`, whatever the case; empty
/// where they have nothing in common.
[[nodiscard]] std::string_view nearest_name(std::string_view name, std::span<const std::string> known);

/// "; did you mean H100? There are H100, H200, CPU": for the end of a message about a name that is not there.
[[nodiscard]] std::string offer_names(std::string_view name, std::span<const std::string> known);

}  // namespace headrace
