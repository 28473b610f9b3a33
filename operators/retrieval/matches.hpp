#pragma once

#include "headrace/operators/index.hpp"
#include "operators/retrieval/id_set.hpp"
#include "operators/retrieval/query_parser.hpp"

namespace headrace::operators {

/// The documents that satisfy a parsed query. The set borrows from the index.
[[nodiscard]] IdSet find_matches(const Index& index, const Expression& expression);

}  // namespace headrace::operators
