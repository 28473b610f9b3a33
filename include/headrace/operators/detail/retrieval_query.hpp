#pragma once

#include <cstdint>
#include <type_traits>

/// Queries and answers of the retrieval operator, and their limits.
namespace headrace::operators {

inline constexpr std::uint32_t kQueryTermsMax = 32;   ///< Most distinct terms of a query.
inline constexpr std::uint32_t kQueryLeavesMax = 32;  ///< Most terms of a query, with repetitions across words.
inline constexpr std::uint32_t kAnswerIds = 15;       ///< Document ids that an answer has room for.
inline constexpr std::uint32_t kNoDocument = 0xFFFFFFFFU;

/// Most terms of a rest that is stored as a truth table.
inline constexpr std::uint32_t kTruthTermsMax = 4;

/// How the matches of a query are found. The first cover_count terms are its cover, whose posting lists are walked. Its
/// rest is what remains of the expression for documents that have none of these terms.
enum class RetrievalMode : std::uint8_t {
  none,        ///< Nothing can match.
  candidates,  ///< Every match is in one of the cover's lists: the rest matches nothing.
  /// The rest is evaluated over the bitmaps of the next scan_count terms for all documents, 128 at a time, and
  /// corrected by the cover's lists. With scan_count 0 or 1 its hits are known, and only the first ids are searched
  /// for.
  scan,
};

/// A Boolean query in the form that a device runs. Index::compile() makes it for one index; for another it is
/// meaningless, but safe to run: no bytes whatever make the operator read outside its index.
///
/// The expression is short-circuit code: step i tests whether a document has a term and continues at one of two later
/// steps, or at kAccept or kReject. The same code serves one document or, bit by bit, many at once.
struct RetrievalQuery {
  struct Step {
    std::uint8_t term;  ///< Index into `terms`.
    std::uint8_t if_present;
    std::uint8_t if_absent;
    friend bool operator==(const Step&, const Step&) = default;
  };
  static constexpr std::uint8_t kAccept = kQueryLeavesMax;
  static constexpr std::uint8_t kReject = kQueryLeavesMax + 1;

  std::uint64_t tag;                    ///< For the caller, to tell equal queries apart. The operator ignores it.
  std::uint32_t terms[kQueryTermsMax];  ///< Term ids: the cover's, then the rest's, then the others.
  Step steps[kQueryLeavesMax];
  RetrievalMode mode;
  std::uint8_t term_count;
  std::uint8_t cover_count;
  std::uint8_t step_count;
  std::uint8_t start;  ///< The first step, or kAccept or kReject.
  std::uint8_t scan_count;
  /// The rest as a truth table if scan_count is at most kTruthTermsMax: bit i is its value for documents with the
  /// rest's terms that the bits of i select.
  std::uint16_t truth;

  friend bool operator==(const RetrievalQuery&, const RetrievalQuery&) = default;
};
static_assert(std::is_trivially_copyable_v<RetrievalQuery> && sizeof(RetrievalQuery) == 240);

struct RetrievalAnswer {
  std::uint32_t hits;             ///< Number of matching documents.
  std::uint32_t ids[kAnswerIds];  ///< The smallest matching ids in order, then kNoDocument.

  friend bool operator==(const RetrievalAnswer&, const RetrievalAnswer&) = default;
};
static_assert(std::is_trivially_copyable_v<RetrievalAnswer> && sizeof(RetrievalAnswer) == 64);

}  // namespace headrace::operators
