#pragma once

#include <cstddef>

namespace headrace::serve {

/// Addresses of a query and its answer, in memory that both host and device reach.
struct QueryPlace {
  const std::byte* query;
  std::byte* answer;
};

}  // namespace headrace::serve
