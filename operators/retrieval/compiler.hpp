#pragma once

#include <cstdint>
#include <span>

#include "headrace/operators/detail/retrieval_query.hpp"
#include "operators/retrieval/query_parser.hpp"

namespace headrace::operators {

/// A term of an expression, as the index knows it. As it stands, one that no document has.
struct QueryTerm {
  std::uint32_t id = 0;
  std::uint32_t count = 0;  ///< Documents that have it.
};

/// Turns an expression that parse_query() or something as careful made (the last node is the root, operands come
/// before, at most kQueryLeavesMax words over kQueryTermsMax terms) into what the operator runs. Does not allocate.
/// @param terms  those that the nodes' `left` number
[[nodiscard]] RetrievalQuery compile_query(std::span<const ExpressionNode> nodes, std::span<const QueryTerm> terms,
                                           std::uint32_t document_count) noexcept;

}  // namespace headrace::operators
