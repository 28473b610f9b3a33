#pragma once

#include <cstdint>
#include <vector>

#include "headrace/operators/retrieval.hpp"

namespace headrace::python {

/// A page of the matches.
struct Hits {
  std::uint32_t hits = 0;
  std::vector<std::uint32_t> ids;
  std::uint64_t offset = 0;
  friend bool operator==(const Hits&, const Hits&) = default;
};

/// The documents that an operator's answer lists.
[[nodiscard]] Hits hits_of(const operators::RetrievalAnswer& answer);

/// A page of the matches, the most relevant documents first.
struct Ranking {
  std::uint32_t hits = 0;
  std::vector<operators::RankedDocument> documents;
};

}  // namespace headrace::python
