#pragma once

#include <string>

#include "wire/served_model.hpp"

namespace headrace::wire {

/// The JSON by which a server describes itself and its models, in the words of the Open Inference Protocol and, for
/// what that leaves open, of Triton's extensions of it.
[[nodiscard]] std::string describe_server();
[[nodiscard]] std::string describe_model(const ServedModel& served);
/// Triton's extension model_configuration.
[[nodiscard]] std::string describe_config(const ServedModel& served);
/// Triton's extension model_repository.
[[nodiscard]] std::string describe_repository(const Models& models);
/// Triton's extension statistics; of all models where `served` is null.
[[nodiscard]] std::string describe_statistics(const Models& models, const ServedModel* served);

}  // namespace headrace::wire
