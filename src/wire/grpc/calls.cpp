#include "wire/grpc/calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "wire/descriptions.hpp"
#include "wire/grpc/described.hpp"
#include "wire/grpc/infer_messages.hpp"
#include "wire/grpc/proto_reader.hpp"
#include "wire/grpc/proto_writer.hpp"
#include "wire/model_config.hpp"
#include "wire/request_error.hpp"

namespace headrace::wire::grpc {

namespace {

using nlohmann::json;

constexpr std::string_view kService = "/inference.GRPCInferenceService/";
constexpr std::array<std::pair<std::string_view, Method>, 15> kMethods{{
    {"ServerLive", Method::server_live},
    {"ServerReady", Method::server_ready},
    {"ModelReady", Method::model_ready},
    {"ServerMetadata", Method::server_metadata},
    {"ModelMetadata", Method::model_metadata},
    {"ModelConfig", Method::model_config},
    {"ModelInfer", Method::model_infer},
    {"ModelStreamInfer", Method::model_stream_infer},
    {"ModelStatistics", Method::model_statistics},
    {"RepositoryIndex", Method::repository_index},
    {"RepositoryModelLoad", Method::model_load},
    {"RepositoryModelUnload", Method::model_unload},
    {"SystemSharedMemoryStatus", Method::region_status},
    {"SystemSharedMemoryRegister", Method::region_register},
    {"SystemSharedMemoryUnregister", Method::region_unregister},
}};

std::string flag_message(bool flag) {
  std::string message;
  if (flag) put_number_field(message, 1, 1);
  return message;
}

/// The model that a message names in its fields 1 and 2; null if it names none.
ServedModel* named_model(const Models& models, std::string_view message) {
  std::string_view name;
  std::string_view version;
  for (ProtoReader fields(message); fields.next();) {
    if (fields.field() == 1) name = fields.text();
    if (fields.field() == 2) version = fields.text();
  }
  return name.empty() ? nullptr : &find_model(models, name, version);
}

ServedModel& required_model(const Models& models, std::string_view message) {
  ServedModel* const served = named_model(models, message);
  if (served == nullptr) throw RequestError(kBadRequest, "the request names no model");
  return *served;
}

/// Whether the named model takes queries. A model that is not loaded is not an error.
bool is_ready(const Service& service, std::string_view message) {
  for (ProtoReader fields(message); fields.next();) {
    if (fields.field() != 1) continue;
    const RepositoryEntry* const entry = service.models.entry(fields.text());
    if (entry != nullptr && entry->served == nullptr) return false;
  }
  return required_model(service.models, message).ready() && !service.draining;
}

/// A RepositoryModelLoadRequest or RepositoryModelUnloadRequest.
std::shared_ptr<ModelCall> read_model_call(const Service& service, std::string_view message, bool load) {
  std::string_view name;
  ModelParameters parameters;
  for (ProtoReader fields(message); fields.next();) {
    if (fields.field() == 1 && !fields.text().empty()) {
      throw RequestError(kNotImplemented,
                         "this server has one repository, which has no name; leave \"repository_name\" empty");
    }
    if (fields.field() == 2) name = fields.text();
    if (fields.field() != 3) continue;
    std::string_view parameter;
    bool is_false = false;
    std::optional<std::string_view> text;
    for (ProtoReader entry = fields.message(); entry.next();) {
      if (entry.field() == 1) parameter = entry.text();
      if (entry.field() != 2) continue;
      for (ProtoReader value = entry.message(); value.next();) {
        is_false = value.field() == 1 && value.number() == 0;
        text = value.field() == 3 ? std::optional(value.text()) : std::nullopt;
      }
    }
    parameters.note(parameter, load, is_false, text);
  }
  return make_model_call(service.models, service.model_control, service.draining, name, load, parameters);
}

std::string index_message(const Models& models, std::string_view message) {
  bool only_ready = false;
  for (ProtoReader fields(message); fields.next();) {
    if (fields.field() == 2) only_ready = fields.number() != 0;
  }
  json list = describe_repository(models, only_ready);
  return write_described({{"models", std::move(list)}}, kRepositoryIndex);
}

std::string config_message(const ServedModel& served) {
  json config = describe_config(served);
  json entries = json::array();
  for (auto& [name, value] : config["parameters"].items()) entries.push_back({{"key", name}, {"value", value}});
  config["parameters"] = std::move(entries);
  return write_described({{"config", std::move(config)}}, kModelConfigResponse);
}

/// The region that a message describes.
struct Region {
  std::string name;
  std::string key;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

Region read_region(std::string_view message) {
  Region region;
  for (ProtoReader fields(message); fields.next();) {
    switch (fields.field()) {
      case 1: region.name = fields.text(); break;
      case 2: region.key = fields.text(); break;
      case 3: region.offset = fields.number(); break;
      case 4: region.bytes = fields.number(); break;
      default: break;
    }
  }
  return region;
}

std::string region_message(SharedRegions& regions, Method method, std::string_view message) {
  Region region = read_region(message);
  if (method == Method::region_status) {
    json entries = json::array();
    for (json& one : describe_regions(regions, region.name)) {
      json name = one["name"];
      entries.push_back({{"key", std::move(name)}, {"value", std::move(one)}});
    }
    return write_described({{"regions", std::move(entries)}}, kRegionStatus);
  }
  if (method == Method::region_register) {
    regions.add(std::move(region.name), std::move(region.key), region.offset, region.bytes);
  } else if (region.name.empty()) {
    regions.remove_all();
  } else {
    regions.remove(region.name);
  }
  return {};
}

}  // namespace

std::optional<Method> find_method(std::string_view path) noexcept {
  if (!path.starts_with(kService)) return std::nullopt;
  const auto found =
      std::ranges::find(kMethods, path.substr(kService.size()), &std::pair<std::string_view, Method>::first);
  return found == kMethods.end() ? std::nullopt : std::optional(found->second);
}

void refuse_path(std::string_view path) {
  if (!path.starts_with(kService)) {
    throw RequestError(kNotImplemented, "this server offers only the service inference.GRPCInferenceService");
  }
  throw RequestError(kNotImplemented, fmt::format("this server does not offer '{}'", path.substr(kService.size())));
}

bool is_health(Method method) noexcept { return method == Method::server_live || method == Method::server_ready; }

Outcome call(const Service& service, Method method, std::string_view message, InferencePool& pool) {
  const Models& models = service.models;
  switch (method) {
    case Method::server_live: return {.message = flag_message(true)};
    case Method::server_ready: return {.message = flag_message(models.ready() && !service.draining)};
    case Method::model_ready: return {.message = flag_message(is_ready(service, message))};
    case Method::server_metadata:
      return {.message = write_described(describe_server(service.regions, service.model_control), kServerMetadata)};
    case Method::model_metadata:
      return {.message = write_described(describe_model(required_model(models, message)), kModelMetadata)};
    case Method::model_config: return {.message = config_message(required_model(models, message))};
    case Method::model_statistics: {
      const ServedModel* const served = named_model(models, message);
      return {.message = write_described(describe_statistics(models, served), kModelStatistics)};
    }
    case Method::model_load:
    case Method::model_unload: return {.call = read_model_call(service, message, method == Method::model_load)};
    case Method::repository_index: return {.message = index_message(models, message)};
    case Method::region_status:
    case Method::region_register:
    case Method::region_unregister: return {.message = region_message(service.regions, method, message)};
    case Method::model_infer:
    case Method::model_stream_infer:
      if (service.draining) throw RequestError(kUnavailable, "the server is about to stop");
      return {.inference = read_infer_request(models, message, service.regions, pool)};
  }
  return {};
}

}  // namespace headrace::wire::grpc
