#pragma once

#include <string>
#include <string_view>

#include "base/json.hpp"
#include "headrace/serve/plan.hpp"

namespace headrace::serve {

/// Every choice of a plan as an object: choices by name, durations in microseconds (`..._us`), the rest as numbers.
[[nodiscard]] Json to_json(const Plan& plan);
/// The plan that to_json() wrote. A member that is missing has its default; throws UsageError naming the member that is
/// unknown or whose value cannot be.
[[nodiscard]] Plan plan_from_json(const Json& json);
/// plan_from_json() of a text. Throws DataError for one that is not JSON.
[[nodiscard]] Plan parse_plan(std::string_view text);

}  // namespace headrace::serve
