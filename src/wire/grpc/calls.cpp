#include "wire/grpc/calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
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
constexpr std::array<std::pair<std::string_view, Method>, 18> kMethods{{
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
    {"SystemSharedMemoryStatus", Method::system_region_status},
    {"SystemSharedMemoryRegister", Method::system_region_register},
    {"SystemSharedMemoryUnregister", Method::system_region_unregister},
    {"CudaSharedMemoryStatus", Method::cuda_region_status},
    {"CudaSharedMemoryRegister", Method::cuda_region_register},
    {"CudaSharedMemoryUnregister", Method::cuda_region_unregister},
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

/// A SystemSharedMemoryRegisterRequest.
std::string register_system_region(SharedRegions& regions, std::string_view message) {
  std::string name;
  std::string key;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  for (ProtoReader fields(message); fields.next();) {
    switch (fields.field()) {
      case 1: name = fields.text(); break;
      case 2: key = fields.text(); break;
      case 3: offset = fields.number(); break;
      case 4: bytes = fields.number(); break;
      default: break;
    }
  }
  regions.add_system(std::move(name), std::move(key), offset, bytes);
  return {};
}

/// A CudaSharedMemoryRegisterRequest.
std::string register_cuda_region(SharedRegions& regions, std::string_view message) {
  std::string name;
  std::string_view handle;
  std::int64_t device = 0;
  std::uint64_t bytes = 0;
  for (ProtoReader fields(message); fields.next();) {
    switch (fields.field()) {
      case 1: name = fields.text(); break;
      case 2: handle = fields.bytes(); break;
      case 3: device = static_cast<std::int64_t>(fields.number()); break;
      case 4: bytes = fields.number(); break;
      default: break;
    }
  }
  regions.add_cuda(std::move(name), std::as_bytes(std::span(handle)), device, bytes);
  return {};
}

/// The region that a message for its status, or to unregister it, names.
std::string_view named_region(std::string_view message) {
  std::string_view name;
  for (ProtoReader fields(message); fields.next();) {
    if (fields.field() == 1) name = fields.text();
  }
  return name;
}

std::string region_status(const SharedRegions& regions, RegionKind kind, std::string_view message) {
  json entries = json::array();
  for (json& one : describe_regions(regions, kind, named_region(message))) {
    json name = one["name"];
    entries.push_back({{"key", std::move(name)}, {"value", std::move(one)}});
  }
  return write_described({{"regions", std::move(entries)}},
                         kind == RegionKind::system ? kSystemRegionStatus : kCudaRegionStatus);
}

std::string unregister_region(SharedRegions& regions, RegionKind kind, std::string_view message) {
  const std::string_view name = named_region(message);
  if (name.empty()) {
    regions.remove_all(kind);
  } else {
    regions.remove(kind, name);
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
    case Method::system_region_status: return {.message = region_status(service.regions, RegionKind::system, message)};
    case Method::cuda_region_status: return {.message = region_status(service.regions, RegionKind::cuda, message)};
    case Method::system_region_register: return {.message = register_system_region(service.regions, message)};
    case Method::cuda_region_register: return {.message = register_cuda_region(service.regions, message)};
    case Method::system_region_unregister:
      return {.message = unregister_region(service.regions, RegionKind::system, message)};
    case Method::cuda_region_unregister:
      return {.message = unregister_region(service.regions, RegionKind::cuda, message)};
    case Method::model_infer:
    case Method::model_stream_infer:
      if (service.draining) throw RequestError(kUnavailable, "the server is about to stop");
      return {.inference = read_infer_request(models, message, service.regions, pool)};
  }
  return {};
}

}  // namespace headrace::wire::grpc
