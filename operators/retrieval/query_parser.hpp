#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/operators/detail/text_rules.hpp"

namespace headrace::operators {

enum class ExpressionKind : std::uint8_t { term, negation, conjunction, disjunction };

/// A node of an expression tree. Operands come before the node that uses them.
struct ExpressionNode {
  ExpressionKind kind;
  std::uint32_t left;       ///< The number of a term, or of the first (or only) operand.
  std::uint32_t right = 0;  ///< The second operand.
};

/// A parsed query. The last node is the root.
struct Expression {
  std::vector<ExpressionNode> nodes;
  std::vector<std::string> terms;  ///< Distinct terms in the order of their first occurrence.
};

/// The deepest nesting of parentheses and negations.
inline constexpr std::uint32_t kQueryDepthMax = 64;

/// Parses a query; see Index::compile() for the language and the errors.
/// @param rules  split its words into terms
[[nodiscard]] Expression parse_query(std::string_view text, const TextRules& rules = {});

}  // namespace headrace::operators
