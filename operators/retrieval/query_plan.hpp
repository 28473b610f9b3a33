#pragma once

#include <cstdint>
#include <span>

#include "operators/retrieval/compiler.hpp"
#include "operators/retrieval/query_parser.hpp"

namespace headrace::operators {

/// A bit for each of a query's terms.
using TermSet = std::uint64_t;
static_assert(kQueryTermsMax <= 64);

[[nodiscard]] constexpr TermSet term_bit(std::uint32_t term) noexcept { return TermSet{1} << term; }

/// Every leaf of a query, every join of two, and a negation of each.
inline constexpr std::size_t kQueryNodesMax = 4 * std::size_t{kQueryLeavesMax};

/// Which terms' lists are walked and which terms' bitmaps are scanned, a bit each (see boolean::answer_query).
struct QueryPlan {
  TermSet cover = 0;
  TermSet rest = 0;                        ///< The terms that the rest depends on.
  bool rest_matches = false;               ///< Whether any document can match the rest.
  std::uint64_t cost = ~std::uint64_t{0};  ///< Reads of 16 bytes, about.
};

/// The cheapest plan of those considered: the terms' lists in whose union all matches are, if there are such; and the
/// rarest terms, 0 to all of them, without those whose walk does not pay.
/// @param cover  terms in whose lists all matches are, or 0
[[nodiscard]] QueryPlan plan_query(std::span<const ExpressionNode> nodes, std::span<const QueryTerm> terms,
                                   std::uint32_t document_count, TermSet cover) noexcept;

/// Whether the expression holds where a document has just the terms of `present`.
[[nodiscard]] bool holds(std::span<const ExpressionNode> nodes, TermSet present) noexcept;

}  // namespace headrace::operators
