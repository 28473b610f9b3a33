#pragma once

#include <cstddef>

namespace headrace::serve {

/// Where a query lies and its answer goes: memory that both the host and the device reach.
struct QueryPlace {
  const std::byte* query;
  std::byte* answer;
};

}  // namespace headrace::serve
