#include "operators/retrieval/compiler.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <tuple>

#include "operators/retrieval/query_plan.hpp"

namespace headrace::operators {

namespace {

/// Posting lists whose union contains every match of a node, or all documents.
struct Cover {
  std::uint64_t cost;  ///< The maximum number of candidates.
  TermSet terms;       ///< A bit for each term whose list is included.
  bool all;            ///< Every document.

  [[nodiscard]] bool nothing() const noexcept { return !all && cost == 0; }
};

class Compiler {
 public:
  Compiler(std::span<const ExpressionNode> nodes, std::span<const QueryTerm> terms, std::uint32_t document_count)
      : nodes_(nodes), terms_(terms), document_count_(document_count) {
    assert(!nodes.empty() && nodes.size() <= kQueryNodesMax && terms.size() <= kQueryTermsMax);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      covers_[0][i] = find_cover(nodes[i], false);
      covers_[1][i] = find_cover(nodes[i], true);
    }
  }

  RetrievalQuery compile() {
    const auto root = static_cast<std::uint32_t>(nodes_.size() - 1);
    const Cover& cover = covers_[0][root];
    const Label start = emit(root, false, RetrievalQuery::kAccept, RetrievalQuery::kReject);
    query_.start = turned(start);
    if (cover.nothing()) return query_;  // in mode none
    const QueryPlan plan = plan_query(nodes_, terms_, document_count_, cover.all ? 0 : cover.terms);
    query_.mode = plan.rest_matches ? RetrievalMode::scan : RetrievalMode::candidates;
    place_terms(plan);
    for (std::size_t i = 0; i < query_.step_count; ++i) {
      const auto& step = steps_[query_.step_count - 1 - i];
      query_.steps[i] = {places_[step.term], turned(step.if_present), turned(step.if_absent)};
    }
    return query_;
  }

 private:
  /// A step counted from the last one, because code is generated from its end. kAccept and kReject keep their values.
  using Label = std::uint8_t;

  [[nodiscard]] Cover find_cover(const ExpressionNode& node, bool negated) const noexcept {
    if (node.kind == ExpressionKind::negation) return covers_[negated ? 0 : 1][node.left];
    if (node.kind == ExpressionKind::term) {
      const std::uint32_t count = terms_[node.left].count;
      if (!negated) return {count, count == 0 ? 0 : term_bit(node.left), false};
      return {document_count_, 0, true};
    }
    const Cover& left = covers_[negated ? 1 : 0][node.left];
    const Cover& right = covers_[negated ? 1 : 0][node.right];
    if (is_conjunction(node, negated)) return right.cost < left.cost ? right : left;
    if (left.all || right.all) return {document_count_, 0, true};
    return join(left, right);
  }

  [[nodiscard]] Cover join(const Cover& left, const Cover& right) const noexcept {
    Cover both{0, left.terms | right.terms, false};
    for (std::size_t i = 0; i < terms_.size(); ++i) both.cost += (both.terms >> i & 1U) != 0 ? terms_[i].count : 0;
    return both;
  }

  /// De Morgan: a negated OR is an AND of negations.
  [[nodiscard]] static bool is_conjunction(const ExpressionNode& node, bool negated) noexcept {
    return (node.kind == ExpressionKind::conjunction) != negated;
  }

  /// Generates code that continues at `yes` if the node (negated or not) holds and at `no` otherwise. Returns its first
  /// step. An expression that can never hold generates no code.
  Label emit(std::uint32_t at, bool negated, Label yes, Label no) noexcept {
    const ExpressionNode& node = nodes_[at];
    if (covers_[negated ? 1 : 0][at].nothing()) return no;
    if (covers_[negated ? 0 : 1][at].nothing()) return yes;
    if (node.kind == ExpressionKind::negation) return emit(node.left, !negated, yes, no);
    if (node.kind == ExpressionKind::term) {
      assert(query_.step_count < kQueryLeavesMax);
      steps_[query_.step_count] = {static_cast<std::uint8_t>(node.left), negated ? no : yes, negated ? yes : no};
      used_ |= term_bit(node.left);
      return query_.step_count++;
    }
    // An AND tests the operand that rarely holds first, and an OR the one that often holds, so that the other is rarely
    // tested.
    const bool conjunction = is_conjunction(node, negated);
    const auto& covers = covers_[negated ? 1 : 0];
    const bool swap = conjunction ? covers[node.right].cost < covers[node.left].cost
                                  : covers[node.right].cost > covers[node.left].cost;
    const Label second = emit(swap ? node.left : node.right, negated, yes, no);
    const std::uint32_t first = swap ? node.right : node.left;
    return conjunction ? emit(first, negated, second, no) : emit(first, negated, yes, second);
  }

  [[nodiscard]] Label turned(Label label) const noexcept {
    return label >= RetrievalQuery::kAccept ? label : static_cast<Label>(query_.step_count - 1 - label);
  }

  /// Assigns positions in the query to all used terms: those of the cover, then those of the rest, then the others;
  /// rare ones first in each group.
  void place_terms(const QueryPlan& plan) noexcept {
    std::array<std::uint8_t, kQueryTermsMax> order{};
    std::size_t count = 0;
    for (TermSet used = used_ | plan.cover | plan.rest; used != 0; used &= used - 1) {
      order[count++] = static_cast<std::uint8_t>(std::countr_zero(used));
    }
    const auto rank = [&](std::uint8_t i) {
      const int part = (plan.cover >> i & 1U) != 0 ? 0 : (plan.rest >> i & 1U) != 0 ? 1 : 2;
      return std::tuple(part, terms_[i].count, terms_[i].id);
    };
    std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count),
              [&](std::uint8_t a, std::uint8_t b) { return rank(a) < rank(b); });
    for (std::size_t i = 0; i < count; ++i) {
      places_[order[i]] = static_cast<std::uint8_t>(i);
      query_.terms[i] = terms_[order[i]].id;
    }
    query_.term_count = static_cast<std::uint8_t>(count);
    query_.cover_count = static_cast<std::uint8_t>(std::popcount(plan.cover));
    query_.scan_count = static_cast<std::uint8_t>(std::popcount(plan.rest));
    query_.truth = truth({order.data() + query_.cover_count, query_.scan_count});
  }

  /// The rest's truth table over these terms, or 0 if they are too many for one.
  [[nodiscard]] std::uint16_t truth(std::span<const std::uint8_t> terms) const noexcept {
    if (terms.size() > kTruthTermsMax) return 0;
    std::uint32_t table = 0;
    for (std::uint32_t row = 0; row < 1U << terms.size(); ++row) {
      TermSet present = 0;
      for (std::size_t i = 0; i < terms.size(); ++i) present |= (row >> i & 1U) != 0 ? term_bit(terms[i]) : 0;
      table |= (holds(nodes_, present) ? 1U : 0U) << row;
    }
    return static_cast<std::uint16_t>(table);
  }

  std::span<const ExpressionNode> nodes_;
  std::span<const QueryTerm> terms_;
  std::uint32_t document_count_;
  std::array<std::array<Cover, kQueryNodesMax>, 2> covers_;  ///< The cover of each node, plain and negated.
  std::array<RetrievalQuery::Step, kQueryLeavesMax> steps_;
  std::array<std::uint8_t, kQueryTermsMax> places_{};
  TermSet used_ = 0;
  RetrievalQuery query_{};
};

}  // namespace

RetrievalQuery compile_query(std::span<const ExpressionNode> nodes, std::span<const QueryTerm> terms,
                             std::uint32_t document_count) noexcept {
  return Compiler(nodes, terms, document_count).compile();
}

}  // namespace headrace::operators
