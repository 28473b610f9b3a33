#pragma once

#include <nlohmann/json_fwd.hpp>

#include "wire/front.hpp"

namespace headrace::wire {

/// What the server's page shows: what the server has counted, its models and their tensors, its devices and its limits.
/// Durations are in seconds.
/// @param served_models  of the thread that asks
[[nodiscard]] nlohmann::json describe_status(const Shared& shared, const Models& served_models);

}  // namespace headrace::wire
