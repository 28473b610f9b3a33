#include "operators/retrieval/query_plan.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "headrace/operators/detail/retrieval_postings.hpp"

namespace headrace::operators {

namespace {

/// Testing a document of a list costs about as much as eight vectors of a bitmap: it is a read from a random address,
/// of which a GPU's multiprocessor issues one a cycle, and on a CPU some twenty instructions. So of two terms the rarer
/// one is walked if it has less than one document of 512.
constexpr std::uint64_t kWalkCost = 8;
/// In a collection whose bitmaps have up to kSmall vectors, a test costs as much as 32 vectors: a CPU has the bitmaps
/// in its first-level cache and processes four vectors with an instruction; a block of a GPU scans them in a few rounds
/// (not measured).
constexpr std::uint64_t kSmallWalkCost = 32;
constexpr std::uint64_t kSmall = 1024;
/// The cost of the first round of a scan, even of a short one.
constexpr std::uint64_t kScanCost = 64;

/// An expression simplified by the absence of some terms.
struct Partial {
  TermSet terms;  ///< The terms that it depends on; none for a constant.
  bool value;     ///< The value of a constant.
};

Partial join(Partial left, Partial right, bool conjunction) noexcept {
  if (left.terms != 0 && right.terms != 0) return {left.terms | right.terms, false};
  const Partial constant = left.terms == 0 ? left : right;
  const Partial other = left.terms == 0 ? right : left;
  return constant.value == conjunction ? other : constant;  // x AND true is x, x AND false is false
}

class Planner {
 public:
  Planner(std::span<const ExpressionNode> nodes, std::span<const QueryTerm> terms,
          std::uint32_t document_count) noexcept
      : nodes_(nodes),
        terms_(terms),
        document_count_(document_count),
        walk_cost_(document_count / boolean::Vector::kBits <= kSmall ? kSmallWalkCost : kWalkCost) {
    for (std::size_t i = 0; i < terms.size(); ++i) {
      const bool there = terms[i].count != 0;
      if (there) by_count_[there_count_++] = static_cast<std::uint8_t>(i);
      if (boolean::has_bitmap(terms[i].count, document_count)) with_bitmap_ |= term_bit(static_cast<std::uint32_t>(i));
      if (!there) never_ |= term_bit(static_cast<std::uint32_t>(i));
    }
    std::sort(by_count_.begin(), by_count_.begin() + there_count_, [&](std::uint8_t a, std::uint8_t b) {
      return terms[a].count != terms[b].count ? terms[a].count < terms[b].count : terms[a].id < terms[b].id;
    });
  }

  [[nodiscard]] QueryPlan best(TermSet cover) const noexcept {
    QueryPlan best;
    if (cover != 0) best = assess(cover);
    TermSet walked = 0;
    for (std::uint32_t i = 0; i <= there_count_; ++i) {
      const QueryPlan unpruned = assess(walked);
      const QueryPlan plan = prune(unpruned);
      if (plan.cost < best.cost) best = plan;
      // A rest that is a constant remains one, and prune() would remove every further term.
      if (unpruned.rest == 0 || i == there_count_) break;
      // Plans that also walk this term, or a later one, cost more.
      if (walk_cost_ * terms_[by_count_[i]].count >= best.cost) break;
      walked |= term_bit(by_count_[i]);
    }
    return best;
  }

 private:
  [[nodiscard]] QueryPlan assess(TermSet cover) const noexcept {
    const Partial rest = rest_of(cover);
    QueryPlan plan{cover, rest.terms, rest.terms != 0 || rest.value, 0};
    if ((rest.terms & ~with_bitmap_) != 0) {  // a term of the rest has no bitmap to scan
      plan.cost = ~std::uint64_t{0};
      return plan;
    }
    for (TermSet left = cover; left != 0; left &= left - 1) {
      plan.cost += walk_cost_ * terms_[static_cast<std::size_t>(std::countr_zero(left))].count;
    }
    if (plan.rest_matches) plan.cost += kScanCost + scanned_vectors(rest.terms);
    return plan;
  }

  [[nodiscard]] std::uint64_t scanned_vectors(TermSet terms) const noexcept {
    const std::uint64_t vectors = document_count_ / boolean::Vector::kBits;
    const auto count = static_cast<std::uint64_t>(std::popcount(terms));
    if (count != 1) return count * vectors;
    // The hits are known, so the scan ends once it has found enough ids.
    const std::uint64_t with = terms_[static_cast<std::size_t>(std::countr_zero(terms))].count;
    return std::min(vectors, kAnswerIds * vectors / with);
  }

  /// Drops terms from the cover, the most frequent first, if that does not raise the cost.
  [[nodiscard]] QueryPlan prune(QueryPlan plan) const noexcept {
    for (std::uint32_t i = there_count_; i-- > 0;) {
      const TermSet term = term_bit(by_count_[i]);
      if ((plan.cover & term) == 0) continue;
      const QueryPlan without = assess(plan.cover & ~term);
      if (without.cost <= plan.cost) plan = without;
    }
    return plan;
  }

  [[nodiscard]] Partial rest_of(TermSet cover) const noexcept {
    std::array<Partial, kQueryNodesMax> values;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const auto& node = nodes_[i];
      switch (node.kind) {
        case ExpressionKind::term:
          values[i] = {((cover | never_) >> node.left & 1U) != 0 ? 0 : term_bit(node.left), false};
          break;
        case ExpressionKind::negation: values[i] = {values[node.left].terms, !values[node.left].value}; break;
        default:
          values[i] = join(values[node.left], values[node.right], node.kind == ExpressionKind::conjunction);
          break;
      }
    }
    return values[nodes_.size() - 1];
  }

  std::span<const ExpressionNode> nodes_;
  std::span<const QueryTerm> terms_;
  std::uint32_t document_count_;
  std::uint64_t walk_cost_;                              ///< The cost of testing a document of a list.
  std::array<std::uint8_t, kQueryTermsMax> by_count_{};  ///< The terms that occur in documents, rare ones first.
  std::uint32_t there_count_ = 0;
  TermSet with_bitmap_ = 0;
  TermSet never_ = 0;  ///< Terms that no document has.
};

}  // namespace

QueryPlan plan_query(std::span<const ExpressionNode> nodes, std::span<const QueryTerm> terms,
                     std::uint32_t document_count, TermSet cover) noexcept {
  return Planner(nodes, terms, document_count).best(cover);
}

bool holds(std::span<const ExpressionNode> nodes, TermSet present) noexcept {
  std::array<bool, kQueryNodesMax> values;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto& node = nodes[i];
    switch (node.kind) {
      case ExpressionKind::term: values[i] = (present >> node.left & 1U) != 0; break;
      case ExpressionKind::negation: values[i] = !values[node.left]; break;
      case ExpressionKind::conjunction: values[i] = values[node.left] && values[node.right]; break;
      case ExpressionKind::disjunction: values[i] = values[node.left] || values[node.right]; break;
    }
  }
  return values[nodes.size() - 1];
}

}  // namespace headrace::operators
