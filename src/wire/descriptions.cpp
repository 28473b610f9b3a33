#include "wire/descriptions.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "headrace/config.hpp"
#include "wire/device_region.hpp"
#include "wire/posix_region.hpp"

namespace headrace::wire {

namespace {

using nlohmann::json;

/// With the number of queries, which varies, in front.
json shape_of(const Tensor& tensor) {
  json shape{-1};
  for (const std::int64_t dimension : tensor.shape) shape.push_back(dimension);
  return shape;
}

json metadata_of(const std::vector<Tensor>& tensors) {
  json list = json::array();
  for (const Tensor& tensor : tensors) {
    list.push_back({{"name", tensor.name}, {"datatype", to_string(tensor.type)}, {"shape", shape_of(tensor)}});
  }
  return list;
}

json duration_of(std::uint64_t count, Duration sum) {
  return {{"count", count}, {"ns", static_cast<std::uint64_t>(sum.count())}};
}

/// Requests that were read but not answered.
std::uint64_t unanswered(const Outcomes& requests) { return requests.total() - requests.answered - requests.invalid; }

json statistics_of(const ServedModel& served) {
  const serve::EngineStatistics engine = served.model.engine->statistics();
  const ModelStatistics counted = served.statistics();
  const std::uint64_t queries =
      counted.http.queries.answered + counted.grpc.queries.answered + counted.shm.queries.answered;
  const std::uint64_t answered =
      counted.http.requests.answered + counted.grpc.requests.answered + counted.shm.requests.answered;
  const std::uint64_t failed =
      unanswered(counted.http.requests) + unanswered(counted.grpc.requests) + unanswered(counted.shm.requests);
  const auto stage = [&](Duration mean) {  // the engine times a sample of its queries
    return duration_of(queries, mean * static_cast<Duration::rep>(queries));
  };
  return {{"name", counted.name},
          {"version", counted.version},
          {"last_inference", counted.last_inference},
          {"inference_count", queries},
          {"execution_count", queries},
          {"inference_stats",
           {{"success", duration_of(answered, counted.http.durations.sum + counted.grpc.durations.sum +
                                                  counted.shm.durations.sum)},
            {"fail", duration_of(failed, counted.http.unanswered + counted.grpc.unanswered + counted.shm.unanswered)},
            {"queue", stage(engine.stages.queue)},
            {"compute_input", stage(engine.stages.copy_in)},
            {"compute_infer", stage(engine.stages.kernel)},
            {"compute_output", stage(engine.stages.copy_out)}}},
          {"batch_stats", json::array()}};
}

}  // namespace

json describe_server(const SharedRegions& regions, bool model_control) {
  json extensions = json::array({"binary_tensor_data", "model_configuration", "statistics"});
  if (regions.offers(RegionKind::system)) extensions.push_back("system_shared_memory");
  if (regions.offers(RegionKind::cuda)) extensions.push_back("cuda_shared_memory");
  if (model_control) extensions.push_back("model_repository");
  return {{"name", "headrace"}, {"version", kVersion}, {"extensions", std::move(extensions)}};
}

json describe_model(const ServedModel& served) {
  return {{"name", served.model.name},
          {"versions", {served.model.version}},
          {"platform", "headrace"},
          {"inputs", metadata_of(served.model.inputs)},
          {"outputs", metadata_of(served.model.outputs)}};
}

json describe_repository(const Models& models, bool only_ready) {
  json list = json::array();
  for (const RepositoryEntry& entry : models.entries()) {
    const bool ready = entry.served != nullptr && entry.served->ready();
    if (only_ready && !ready) continue;
    const char* const reason = ready ? "" : entry.served == nullptr ? entry.reason.c_str() : "its engine has failed";
    list.push_back({{"name", entry.name},
                    {"version", entry.version},
                    {"state", ready ? "READY" : "UNAVAILABLE"},
                    {"reason", reason}});
  }
  return list;
}

json describe_statistics(const Models& models, const ServedModel* served) {
  json list = json::array();
  for (const RepositoryEntry& entry : models.entries()) {
    if (entry.served != nullptr && (served == nullptr || entry.served.get() == served)) {
      list.push_back(statistics_of(*entry.served));
    }
  }
  return {{"model_stats", std::move(list)}};
}

json describe_regions(const SharedRegions& regions, RegionKind kind, std::string_view name) {
  json list = json::array();
  for (const auto& region : regions.list(kind, name)) {
    json described{{"name", region->name()}, {"byte_size", region->bytes()}};
    if (kind == RegionKind::system) {
      const auto& system = static_cast<const PosixRegion&>(*region);
      described["key"] = system.key();
      described["offset"] = system.offset();
    } else {
      described["device_id"] = static_cast<const DeviceRegion&>(*region).device_id();
    }
    list.push_back(std::move(described));
  }
  return list;
}

}  // namespace headrace::wire
