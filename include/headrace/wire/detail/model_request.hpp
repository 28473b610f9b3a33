#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "headrace/serve/plan.hpp"

namespace headrace::wire {

/// New values of what may change while a server serves a model, see Server::change(). An empty one stays as it is.
struct ModelChange {
  serve::PlanChange plan = {};                    ///< For the engine, see serve::Engine::change().
  std::optional<std::uint32_t> waiting_max = {};  ///< Model::waiting_max.
};

/// A client's request to load, change or unload a model of a server: Triton's extension model_repository.
struct ModelRequest {
  std::uint64_t number = 0;  ///< Identifies the request within the server.
  std::string model;         ///< A name that the server knows.
  bool load = false;         ///< True to load, reload or change the model, false to unload it.
  /// Set if a loaded model is to be changed and not to be loaded again; an unloaded one is to be loaded with it.
  std::optional<ModelChange> change = {};
};

}  // namespace headrace::wire
