#pragma once

#include <cstdint>
#include <string>

namespace headrace::wire {

/// What a client asks to be done with a model of a server: Triton's extension model_repository.
struct ModelRequest {
  std::uint64_t number = 0;  ///< Tells it from others of the same server.
  std::string model;         ///< A name that the server knows.
  bool load = false;         ///< To be loaded, anew if it is already; otherwise to be unloaded.
};

}  // namespace headrace::wire
