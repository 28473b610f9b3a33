#pragma once

#include <cstdint>

#include "headrace/operators/detail/retrieval_stage.hpp"

/// Walks the posting lists of a query's cover.
namespace headrace::operators::boolean {

/// How a thread's documents of a list change the rest's result, with a bit for each.
struct Change {
  std::uint32_t gained;  ///< They match the query, but not its rest.
  std::uint32_t lost;    ///< They match the rest, but not the query.
};

/// The change by those of `ids` whose bit in `asked` is set; they are in the list of the cover's term `list`. Documents
/// that are also in an earlier list have been counted there.
[[nodiscard]] HEADRACE_HD inline Change find_change(const Postings& postings, const Scratch& scratch, const Vector& ids,
                                                    std::uint32_t asked, std::uint32_t list) {
  const bool has_rest = scratch.query.mode == RetrievalMode::scan;
  const std::uint32_t matches = test_documents(postings, scratch, ids, asked, {list, list + 1, true});
  const KnownTerms cover{0, scratch.query.cover_count, false};
  const std::uint32_t of_rest = has_rest ? test_documents(postings, scratch, ids, asked, cover) : 0;
  std::uint32_t changed = matches ^ of_rest;
  for (std::uint32_t term = 0; term < list && changed != 0; ++term) {
    changed &= ~test_term(postings, scratch.entries[term], ids, changed);
  }
  return {changed & matches, changed & of_rest};
}

/// Writes those of `ids` whose bit is set to `to` from `place` on, as far as they fit.
HEADRACE_HD inline void list_ids(const Vector& ids, std::uint32_t bits, std::uint32_t place, std::uint32_t* to) {
  for (std::uint32_t i = 0; i < kTestsAtOnce; ++i) {
    if ((bits >> i & 1U) != 0 && place < kAnswerIds) to[place++] = ids.word[i];
  }
}

/// Walks the cover's lists. Returns the calling thread's share of the hits beyond the rest's (modulo 2^32, because
/// there may be fewer), and adds the ids of additional matches. Every thread of the block calls it.
template <class Group>
HEADRACE_HD std::uint32_t walk(Group group, const Postings& postings, Scratch& scratch, Ids& ids) {
  std::uint32_t hits = 0;
  for (std::uint32_t list = 0; list < scratch.query.cover_count; ++list) {
    const std::uint32_t count = scratch.entries[list].count;
    const Vector* const vectors = postings.lists + scratch.entries[list].list;
    const std::uint32_t end = count / Vector::kWords + (count % Vector::kWords != 0 ? 1 : 0);
    std::uint32_t found = 0;  // of the whole block; counts only until the answer is full
    Vector next{};
    if (group.rank() < end) next = vectors[group.rank()];
    for (std::uint32_t base = 0; base < end; base += group.size()) {
      const std::uint32_t at = base + group.rank();
      const Vector now = next;
      if (at + group.size() < end) next = vectors[at + group.size()];  // in flight while these are tested
      std::uint32_t asked = 0;
      for (std::uint32_t i = 0; i < kTestsAtOnce; ++i) {
        asked |= bit_if(at < end && now.word[i] < postings.document_count, i);
      }
      const Change change = find_change(postings, scratch, now, asked, list);
      hits += bit_count(change.gained) - bit_count(change.lost);
      if (found < kAnswerIds) {
        std::uint32_t total;
        const std::uint32_t place = found + group.sum_before(bit_count(change.gained), total);
        list_ids(now, change.gained, place, ids.fresh(scratch));
        found += total;
      }
    }
    ids.take(group, scratch, found);
  }
  return hits;
}

}  // namespace headrace::operators::boolean
