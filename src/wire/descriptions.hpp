#pragma once

#include <nlohmann/json_fwd.hpp>

#include "wire/served_model.hpp"

namespace headrace::wire {

/// The JSON by which a server describes itself and its models, in the words of the Open Inference Protocol and, for
/// what that leaves open, of Triton's extensions of it.
[[nodiscard]] nlohmann::json describe_server();
[[nodiscard]] nlohmann::json describe_model(const ServedModel& served);
/// Triton's extension model_configuration.
[[nodiscard]] nlohmann::json describe_config(const ServedModel& served);
/// Triton's extension model_repository.
[[nodiscard]] nlohmann::json describe_repository(const Models& models);
/// Triton's extension statistics; of all models where `served` is null.
[[nodiscard]] nlohmann::json describe_statistics(const Models& models, const ServedModel* served);

}  // namespace headrace::wire
