#pragma once

#include <cstdint>
#include <string>

namespace headrace::wire {

/// A client's request to load or unload a model of a server: Triton's extension model_repository.
struct ModelRequest {
  std::uint64_t number = 0;  ///< Identifies the request within the server.
  std::string model;         ///< A name that the server knows.
  bool load = false;         ///< True to load or reload the model, false to unload it.
};

}  // namespace headrace::wire
