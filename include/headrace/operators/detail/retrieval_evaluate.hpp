#pragma once

#include <cstdint>

#include "headrace/operators/detail/retrieval_scan.hpp"
#include "headrace/operators/detail/retrieval_walk.hpp"

/// Evaluates a Boolean query with a block of threads. Host and device share the code.
namespace headrace::operators::boolean {

/// Answers the staged query. Every thread of the block calls it.
///
/// A query f has a cover C of terms and a rest r, which is f for documents that have none of C. So
///   |f| = |r| + (documents of C's lists that f matches and r does not) - (those that r matches and f does not):
/// rare words are looked up in their lists, whatever their place in the expression, and only frequent ones are scanned
/// for, or not even these if |r| is known. (A generalisation of |a OR b| = |a| + |b| - |a AND b|.)
template <class Group>
HEADRACE_HD void answer_query(Group group, const Postings& postings, Scratch& scratch, RetrievalAnswer& answer) {
  Ids ids;
  std::uint32_t hits = 0;
  if (scratch.query.mode == RetrievalMode::scan) hits = scan(group, postings, scratch, ids);
  if (scratch.query.mode != RetrievalMode::none) hits += walk(group, postings, scratch, ids);
  hits = group.sum(hits);
  const std::uint32_t* const found = ids.all(scratch);
  for (std::uint32_t i = group.rank(); i < kAnswerIds; i += group.size()) {
    answer.ids[i] = i < ids.count() ? found[i] : kNoDocument;
  }
  if (group.rank() == 0) answer.hits = hits;
}

}  // namespace headrace::operators::boolean
