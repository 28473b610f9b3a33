#pragma once

#include <nlohmann/json_fwd.hpp>

#include "wire/front.hpp"

namespace headrace::wire {

/// The data of the server's page: counters, models and their tensors, devices and limits. Durations are in seconds.
/// @param served_models  the models of the calling thread
[[nodiscard]] nlohmann::json describe_status(const Shared& shared, const Models& served_models);

}  // namespace headrace::wire
