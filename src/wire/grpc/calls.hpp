#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "wire/inference.hpp"
#include "wire/inference_pool.hpp"
#include "wire/model_calls.hpp"
#include "wire/shared_regions.hpp"

namespace headrace::wire::grpc {

/// The methods of inference.GRPCInferenceService that the server offers.
enum class Method : std::uint8_t {
  server_live,
  server_ready,
  model_ready,
  server_metadata,
  model_metadata,
  model_config,
  model_infer,
  model_stream_infer,
  model_statistics,
  repository_index,
  model_load,
  model_unload,
  system_region_status,
  system_region_register,
  system_region_unregister,
  cuda_region_status,
  cuda_region_register,
  cuda_region_unregister,
};

/// The method of a path such as "/inference.GRPCInferenceService/ModelInfer"; empty for any other path.
[[nodiscard]] std::optional<Method> find_method(std::string_view path) noexcept;
/// Throws RequestError (501) for a path without a method.
[[noreturn]] void refuse_path(std::string_view path);

/// Whether a method is a health check, which needs no token.
[[nodiscard]] bool is_health(Method method) noexcept;

/// State that all connections of a server share.
struct Service {
  const Models& models;
  SharedRegions& regions;
  bool draining = false;
  bool model_control = false;  ///< Models may be loaded and unloaded.
};

/// Result of a call: a reply message, an inference to submit, or a model to load or unload.
struct Outcome {
  std::string message = {};
  std::shared_ptr<Inference> inference = {};
  std::shared_ptr<ModelCall> call = {};
};

/// Executes a call. Throws RequestError if that is not possible.
/// @param pool    provides the inference
[[nodiscard]] Outcome call(const Service& service, Method method, std::string_view message, InferencePool& pool);

}  // namespace headrace::wire::grpc
