#pragma once

#include <cstdint>
#include <type_traits>

/// What goes to the retrieval operator and comes back, and the limits of a query.
namespace headrace::operators {

inline constexpr std::uint32_t kQueryTermsMax = 32;   ///< Distinct terms of a query.
inline constexpr std::uint32_t kQueryLeavesMax = 32;  ///< Terms of a query, counting repetitions in different words.
inline constexpr std::uint32_t kAnswerIds = 15;       ///< Document ids that an answer has room for.
inline constexpr std::uint32_t kNoDocument = 0xFFFFFFFFU;

/// Most terms of a query's rest that is told as a truth table.
inline constexpr std::uint32_t kTruthTermsMax = 4;

/// How the matches of a query are found. The first cover_count terms are its cover: their posting lists are walked.
/// What is left of the expression where a document has none of them is its rest.
enum class RetrievalMode : std::uint8_t {
  none,        ///< Nothing can match.
  candidates,  ///< Every match is in one of the cover's lists: the rest matches nothing.
  /// The rest, over the bitmaps of the next scan_count terms, is evaluated for all documents, 128 at a time, and
  /// corrected by what the cover's lists say. With scan_count 0 or 1 its hits are known, and only the first ids are
  /// looked for.
  scan,
};

/// A Boolean query in the form that a device runs; made by Index::compile() for that index, and meaningless for
/// another (but safe to run: no bytes whatever make the operator read outside its index).
///
/// The expression is short-circuit code: step i tests whether a document has a term and goes on to one of two later
/// steps, or to kAccept or kReject. It is the same code for one document and, bit by bit, for many at once.
struct RetrievalQuery {
  struct Step {
    std::uint8_t term;  ///< Index into `terms`.
    std::uint8_t if_present;
    std::uint8_t if_absent;
    friend bool operator==(const Step&, const Step&) = default;
  };
  static constexpr std::uint8_t kAccept = kQueryLeavesMax;
  static constexpr std::uint8_t kReject = kQueryLeavesMax + 1;

  std::uint64_t tag;                    ///< The caller's own: tells equal queries apart. The operator ignores it.
  std::uint32_t terms[kQueryTermsMax];  ///< Term ids: the cover's, then the rest's, then others.
  Step steps[kQueryLeavesMax];
  RetrievalMode mode;
  std::uint8_t term_count;
  std::uint8_t cover_count;
  std::uint8_t step_count;
  std::uint8_t start;  ///< The first step, kAccept or kReject.
  std::uint8_t scan_count;
  /// The rest as a truth table, where scan_count is at most kTruthTermsMax: bit i is its value where the documents'
  /// terms among the rest's are the bits of i.
  std::uint16_t truth;

  friend bool operator==(const RetrievalQuery&, const RetrievalQuery&) = default;
};
static_assert(std::is_trivially_copyable_v<RetrievalQuery> && sizeof(RetrievalQuery) == 240);

struct RetrievalAnswer {
  std::uint32_t hits;             ///< How many documents match.
  std::uint32_t ids[kAnswerIds];  ///< The smallest matching ids in order, then kNoDocument.

  friend bool operator==(const RetrievalAnswer&, const RetrievalAnswer&) = default;
};
static_assert(std::is_trivially_copyable_v<RetrievalAnswer> && sizeof(RetrievalAnswer) == 64);

}  // namespace headrace::operators
