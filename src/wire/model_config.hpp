#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "headrace/wire/detail/model_request.hpp"
#include "wire/served_model.hpp"

namespace headrace::wire {

/// A model's configuration with the values in force, by Triton's extension model_configuration: ModelConfig of
/// model_config.proto.
[[nodiscard]] nlohmann::json describe_config(const ServedModel& served);

/// Reads the parameter "config" of a load request: a configuration, or the part of one that is to change. Throws
/// RequestError that names the first member that is not valid, that the model cannot have, or that cannot change.
/// @param entry  the model's, which may not be loaded
[[nodiscard]] ModelChange read_config(const RepositoryEntry& entry, std::string_view text);

}  // namespace headrace::wire
