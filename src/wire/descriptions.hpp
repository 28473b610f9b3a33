#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "wire/served_model.hpp"
#include "wire/shared_regions.hpp"

namespace headrace::wire {

/// The JSON by which a server describes itself and its models, in the words of the Open Inference Protocol and, for
/// what that leaves open, of Triton's extensions of it.
/// @param regions, model_control  tell which extensions there are
[[nodiscard]] nlohmann::json describe_server(const SharedRegions& regions, bool model_control);
[[nodiscard]] nlohmann::json describe_model(const ServedModel& served);
/// Triton's extension model_configuration.
[[nodiscard]] nlohmann::json describe_config(const ServedModel& served);
/// Triton's extension model_repository.
/// @param only_ready  without models that take no queries
[[nodiscard]] nlohmann::json describe_repository(const Models& models, bool only_ready);
/// Triton's extension statistics; of all models where `served` is null.
[[nodiscard]] nlohmann::json describe_statistics(const Models& models, const ServedModel* served);
/// Triton's extension system_shared_memory; of all regions where `name` is empty. Throws RequestError as
/// SharedRegions::list().
[[nodiscard]] nlohmann::json describe_regions(const SharedRegions& regions, std::string_view name);

}  // namespace headrace::wire
