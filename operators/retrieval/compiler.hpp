#pragma once

#include <cstdint>
#include <span>

#include "headrace/operators/detail/retrieval_query.hpp"
#include "operators/retrieval/query_parser.hpp"

namespace headrace::operators {

/// A term of an expression, as found in the index. By default, a term that no document has.
struct QueryTerm {
  std::uint32_t id = 0;
  std::uint32_t count = 0;  ///< Number of documents that have it.
};

/// Compiles an expression for the operator without allocating. The expression must come from parse_query() or meet the
/// same conditions: the last node is the root, operands come before their nodes, and there are at most kQueryLeavesMax
/// words over kQueryTermsMax terms.
/// @param terms  those that `left` of the nodes refers to
[[nodiscard]] RetrievalQuery compile_query(std::span<const ExpressionNode> nodes, std::span<const QueryTerm> terms,
                                           std::uint32_t document_count) noexcept;

}  // namespace headrace::operators
