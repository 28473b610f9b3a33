#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/operators/detail/text_rules.hpp"

namespace headrace::operators {

enum class ExpressionKind : std::uint8_t { term, negation, conjunction, disjunction };

/// A node of an expression tree. Operands come before the node that has them.
struct ExpressionNode {
  ExpressionKind kind;
  std::uint32_t left;       ///< A term's number, or the first (or only) operand's.
  std::uint32_t right = 0;  ///< The second operand.
};

/// A parsed query. The last node is the root.
struct Expression {
  std::vector<ExpressionNode> nodes;
  std::vector<std::string> terms;  ///< Distinct, in the order in which they first come.
};

/// Parentheses and negations inside each other.
inline constexpr std::uint32_t kQueryDepthMax = 64;

/// Parses a query; see Index::compile() for the language and the errors.
/// @param rules  by which its words are split into terms.
[[nodiscard]] Expression parse_query(std::string_view text, const TextRules& rules = {});

}  // namespace headrace::operators
