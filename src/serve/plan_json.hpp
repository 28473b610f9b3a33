#pragma once

#include <string>
#include <string_view>

#include "base/json.hpp"
#include "headrace/serve/plan.hpp"

namespace headrace::serve {

/// Every choice of a plan as an object: choices by name, durations in microseconds (`..._us`), the rest as numbers.
[[nodiscard]] Json to_json(const Plan& plan);
/// The plan that to_json() wrote. A missing member has its default. Throws UsageError that names an unknown member or
/// one with an invalid value.
[[nodiscard]] Plan plan_from_json(const Json& json);
/// plan_from_json() of a text. Throws DataError if the text is not JSON.
[[nodiscard]] Plan parse_plan(std::string_view text);

}  // namespace headrace::serve
