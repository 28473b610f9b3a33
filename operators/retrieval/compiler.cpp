#include "operators/retrieval/compiler.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <tuple>

#include "headrace/operators/retrieval_evaluate.hpp"

namespace headrace::operators {

namespace {

/// More than one document of this many as candidates, and it is quicker to scan them all, 64 at a time. It is at least
/// kBitmapShare, so that terms with a bitmap are never walked as lists.
constexpr std::uint64_t kScanShare = 128;
static_assert(kScanShare >= boolean::kBitmapShare);

/// Every leaf, every join of two, and as many negations.
constexpr std::size_t kNodesMax = 4 * std::size_t{kQueryLeavesMax};

/// Posting lists that together hold every match of a node, or all documents.
struct Cover {
  std::uint64_t cost;   ///< Candidates at most.
  std::uint32_t terms;  ///< A bit for each term whose list belongs to it.
  bool all;             ///< Every document.

  [[nodiscard]] bool nothing() const noexcept { return !all && cost == 0; }
};

class Compiler {
 public:
  Compiler(std::span<const ExpressionNode> nodes, std::span<const QueryTerm> terms, std::uint32_t document_count)
      : nodes_(nodes), terms_(terms), document_count_(document_count) {
    assert(!nodes.empty() && nodes.size() <= kNodesMax && terms.size() <= kQueryTermsMax);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      covers_[0][i] = find_cover(nodes[i], false);
      covers_[1][i] = find_cover(nodes[i], true);
    }
  }

  RetrievalQuery compile() {
    const auto root = static_cast<std::uint32_t>(nodes_.size() - 1);
    const Cover& cover = covers_[0][root];
    const Label start = emit(root, false, RetrievalQuery::kAccept, RetrievalQuery::kReject);
    query_.mode = RetrievalMode::candidates;
    if (cover.nothing()) query_.mode = RetrievalMode::none;
    if (cover.cost * kScanShare > document_count_) query_.mode = RetrievalMode::scan;
    query_.start = turned(start);
    place_terms(query_.mode == RetrievalMode::candidates ? cover.terms : 0);
    for (std::size_t i = 0; i < query_.step_count; ++i) {
      const auto& step = steps_[query_.step_count - 1 - i];
      query_.steps[i] = {places_[step.term], turned(step.if_present), turned(step.if_absent)};
    }
    return query_;
  }

 private:
  /// A step counted from the last, since code is made from its end; kAccept and kReject stand for themselves.
  using Label = std::uint8_t;

  [[nodiscard]] Cover find_cover(const ExpressionNode& node, bool negated) const noexcept {
    if (node.kind == ExpressionKind::negation) return covers_[negated ? 0 : 1][node.left];
    if (node.kind == ExpressionKind::term) {
      const std::uint32_t count = terms_[node.left].count;
      if (!negated) return {count, count == 0 ? 0 : 1U << node.left, false};
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

  /// Makes the code that goes to `yes` where the node (negated or not) holds and to `no` elsewhere; returns where it
  /// starts. What cannot hold at all makes no code.
  Label emit(std::uint32_t at, bool negated, Label yes, Label no) noexcept {
    const ExpressionNode& node = nodes_[at];
    if (covers_[negated ? 1 : 0][at].nothing()) return no;
    if (covers_[negated ? 0 : 1][at].nothing()) return yes;
    if (node.kind == ExpressionKind::negation) return emit(node.left, !negated, yes, no);
    if (node.kind == ExpressionKind::term) {
      assert(query_.step_count < kQueryLeavesMax);
      steps_[query_.step_count] = {static_cast<std::uint8_t>(node.left), negated ? no : yes, negated ? yes : no};
      used_ |= 1U << node.left;
      return query_.step_count++;
    }
    // An AND asks first what is rarely so, an OR what is often so: then the other is seldom asked.
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

  /// Gives each term that is used its place in the query: those of the cover first, then the others, rare ones first.
  void place_terms(std::uint32_t cover) noexcept {
    std::array<std::uint8_t, kQueryTermsMax> order{};
    std::size_t count = 0;
    for (std::uint32_t used = used_ | cover; used != 0; used &= used - 1) {
      order[count++] = static_cast<std::uint8_t>(std::countr_zero(used));
    }
    const auto rank = [&](std::uint8_t i) {
      const bool covers = (cover >> i & 1U) != 0;
      return std::tuple(!covers, terms_[i].count, terms_[i].id);
    };
    std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count),
              [&](std::uint8_t a, std::uint8_t b) { return rank(a) < rank(b); });
    for (std::size_t i = 0; i < count; ++i) {
      places_[order[i]] = static_cast<std::uint8_t>(i);
      query_.terms[i] = terms_[order[i]].id;
    }
    query_.term_count = static_cast<std::uint8_t>(count);
    query_.cover_count = static_cast<std::uint8_t>(std::popcount(cover));
  }

  std::span<const ExpressionNode> nodes_;
  std::span<const QueryTerm> terms_;
  std::uint32_t document_count_;
  std::array<std::array<Cover, kNodesMax>, 2> covers_;  ///< Of each node as it is, and negated.
  std::array<RetrievalQuery::Step, kQueryLeavesMax> steps_;
  std::array<std::uint8_t, kQueryTermsMax> places_{};
  std::uint32_t used_ = 0;
  RetrievalQuery query_{};
};

}  // namespace

RetrievalQuery compile_query(std::span<const ExpressionNode> nodes, std::span<const QueryTerm> terms,
                             std::uint32_t document_count) noexcept {
  return Compiler(nodes, terms, document_count).compile();
}

}  // namespace headrace::operators
