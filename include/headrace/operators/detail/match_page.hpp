#pragma once

#include <cstdint>
#include <vector>

#include "headrace/operators/detail/retrieval_query.hpp"

/// Pages of the documents that satisfy a query.
namespace headrace::operators {

/// The range of matching documents to list, counted from 0.
struct PageRange {
  std::uint64_t offset = 0;
  std::uint64_t limit = kAnswerIds;
};

struct MatchPage {
  std::uint32_t hits = 0;          ///< How many documents match, listed or not.
  std::vector<std::uint32_t> ids;  ///< The ids of the page, ascending; empty if the page begins after the last match.
  friend bool operator==(const MatchPage&, const MatchPage&) = default;
};

/// Parameters of BM25 (Robertson, Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond, 2009).
struct Bm25 {
  double k1 = 1.2;  ///< The weight of repeated words; at least 0, which ignores repetitions.
  double b = 0.75;  ///< The weight of a document's length: from 0, which ignores it, to 1.
};

struct RankedDocument {
  std::uint32_t id;
  double score;
  friend bool operator==(const RankedDocument&, const RankedDocument&) = default;
};

struct RankedPage {
  std::uint32_t hits = 0;                 ///< How many documents match, listed or not.
  std::vector<RankedDocument> documents;  ///< The best first; documents of equal score are in the order of their ids.
};

}  // namespace headrace::operators
