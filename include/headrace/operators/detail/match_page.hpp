#pragma once

#include <cstdint>
#include <vector>

#include "headrace/operators/detail/retrieval_query.hpp"

/// Lists of what satisfies a query, page by page.
namespace headrace::operators {

/// Which of the matching documents are listed, counted from 0.
struct PageRange {
  std::uint64_t offset = 0;
  std::uint64_t limit = kAnswerIds;
};

struct MatchPage {
  std::uint32_t hits = 0;          ///< How many documents match, listed or not.
  std::vector<std::uint32_t> ids;  ///< Those of the page, ascending; none where it begins behind the last one.
  friend bool operator==(const MatchPage&, const MatchPage&) = default;
};

/// Parameters of BM25 (Robertson, Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond, 2009).
struct Bm25 {
  double k1 = 1.2;  ///< How much a word that comes again adds; at least 0, where repetitions add nothing.
  double b = 0.75;  ///< How much the length of a document counts: 0, not at all, to 1.
};

struct RankedDocument {
  std::uint32_t id;
  double score;
  friend bool operator==(const RankedDocument&, const RankedDocument&) = default;
};

struct RankedPage {
  std::uint32_t hits = 0;                 ///< How many documents match, listed or not.
  std::vector<RankedDocument> documents;  ///< The best first; those of equal score in the order of their ids.
};

}  // namespace headrace::operators
