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

/// The terms whose lists are walked, and those whose bitmaps are scanned, a bit each (see boolean::answer_query).
struct QueryPlan {
  TermSet cover = 0;
  TermSet rest = 0;                        ///< The terms that the rest depends on.
  bool rest_matches = false;               ///< Whether any document can match the rest.
  std::uint64_t cost = ~std::uint64_t{0};  ///< The approximate number of 16-byte reads.
};

/// The cheapest of the plans considered. These walk the lists of `cover`, or of any number of the rarest terms, without
/// those that do not pay.
/// @param cover  terms whose lists together contain all matches, or 0
[[nodiscard]] QueryPlan plan_query(std::span<const ExpressionNode> nodes, std::span<const QueryTerm> terms,
                                   std::uint32_t document_count, TermSet cover) noexcept;

/// Whether the expression holds for a document with exactly the terms in `present`.
[[nodiscard]] bool holds(std::span<const ExpressionNode> nodes, TermSet present) noexcept;

}  // namespace headrace::operators
