#include "wire/descriptions.hpp"

#include <nlohmann/json.hpp>

#include "headrace/config.hpp"

namespace headrace::wire {

namespace {

using nlohmann::json;

json shape_of(const Tensor& tensor, bool with_batch) {
  json shape = json::array();
  if (with_batch) shape.push_back(-1);
  for (const std::int64_t dimension : tensor.shape) shape.push_back(dimension);
  return shape;
}

json metadata_of(const std::vector<Tensor>& tensors) {
  json list = json::array();
  for (const Tensor& tensor : tensors) {
    list.push_back({{"name", tensor.name}, {"datatype", to_string(tensor.type)}, {"shape", shape_of(tensor, true)}});
  }
  return list;
}

/// Triton's configuration calls a type TYPE_FP32, and leaves the dimension of the batch out.
json config_of(const std::vector<Tensor>& tensors) {
  json list = json::array();
  for (const Tensor& tensor : tensors) {
    json dimensions = shape_of(tensor, false);
    json config{{"name", tensor.name}, {"data_type", "TYPE_" + std::string(to_string(tensor.type))}};
    if (dimensions.empty()) {  // "dims" may not be empty there
      dimensions.push_back(1);
      config["reshape"] = {{"shape", json::array()}};
    }
    config["dims"] = std::move(dimensions);
    list.push_back(std::move(config));
  }
  return list;
}

json duration_of(const Tally& tally) {
  return {{"count", tally.count.load(std::memory_order_relaxed)},
          {"ns", tally.nanoseconds.load(std::memory_order_relaxed)}};
}

json statistics_of(const ServedModel& served) {
  const serve::EngineStatistics engine = served.model.engine->statistics();
  const auto queries = served.queries.load(std::memory_order_relaxed);
  const auto stage = [&](Duration mean) {  // the engine times a sample of its queries
    return json{{"count", queries}, {"ns", static_cast<std::uint64_t>(mean.count()) * queries}};
  };
  return {{"name", served.model.name},
          {"version", served.model.version},
          {"last_inference", served.last_inference.load(std::memory_order_relaxed)},
          {"inference_count", queries},
          {"execution_count", queries},
          {"inference_stats",
           {{"success", duration_of(served.succeeded)},
            {"fail", duration_of(served.failed)},
            {"queue", stage(engine.stages.queue)},
            {"compute_input", stage(engine.stages.copy_in)},
            {"compute_infer", stage(engine.stages.kernel)},
            {"compute_output", stage(engine.stages.copy_out)}}},
          {"batch_stats", json::array()}};
}

}  // namespace

json describe_server() {
  return {{"name", "headrace"},
          {"version", kVersion},
          {"extensions", {"binary_tensor_data", "model_configuration", "statistics"}}};
}

json describe_model(const ServedModel& served) {
  return {{"name", served.model.name},
          {"versions", {served.model.version}},
          {"platform", "headrace"},
          {"inputs", metadata_of(served.model.inputs)},
          {"outputs", metadata_of(served.model.outputs)}};
}

json describe_config(const ServedModel& served) {
  return {{"name", served.model.name},
          {"platform", "headrace"},
          {"backend", "headrace"},
          {"max_batch_size", served.model.batch_max},
          {"input", config_of(served.model.inputs)},
          {"output", config_of(served.model.outputs)}};
}

json describe_repository(const Models& models) {
  json list = json::array();
  for (const auto& served : models.all()) {
    const bool ready = served->ready();
    list.push_back({{"name", served->model.name},
                    {"version", served->model.version},
                    {"state", ready ? "READY" : "UNAVAILABLE"},
                    {"reason", ready ? "" : "its engine has failed"}});
  }
  return list;
}

json describe_statistics(const Models& models, const ServedModel* served) {
  json list = json::array();
  for (const auto& one : models.all()) {
    if (served == nullptr || one.get() == served) list.push_back(statistics_of(*one));
  }
  return {{"model_stats", std::move(list)}};
}

}  // namespace headrace::wire
