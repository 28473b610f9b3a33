#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "wire/served_model.hpp"
#include "wire/shared_regions.hpp"

namespace headrace::wire {

/// JSON in which a server describes itself and its models, as defined by the Open Inference Protocol and, where that
/// defines nothing, by Triton's extensions.
/// @param regions, model_control  determine the list of extensions
[[nodiscard]] nlohmann::json describe_server(const SharedRegions& regions, bool model_control);
[[nodiscard]] nlohmann::json describe_model(const ServedModel& served);
/// Triton's extension model_repository.
/// @param only_ready  omit models that take no queries
[[nodiscard]] nlohmann::json describe_repository(const Models& models, bool only_ready);
/// Triton's extension statistics; for all models if `served` is null.
[[nodiscard]] nlohmann::json describe_statistics(const Models& models, const ServedModel* served);
/// Triton's extensions system_shared_memory and cuda_shared_memory; for all regions of the kind if `name` is empty.
/// Throws RequestError as SharedRegions::list() does.
[[nodiscard]] nlohmann::json describe_regions(const SharedRegions& regions, RegionKind kind, std::string_view name);

}  // namespace headrace::wire
