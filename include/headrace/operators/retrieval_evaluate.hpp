#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "headrace/device/group.hpp"
#include "headrace/operators/retrieval_query.hpp"

/// How a block of threads evaluates a Boolean query; one code for host and device.
namespace headrace::operators::boolean {

/// Where a term's documents are: a sorted list of ids, or a bitmap over all documents.
struct TermEntry {
  std::uint64_t begin;   ///< In `words`; even for a bitmap.
  std::uint32_t count;   ///< Documents that have the term.
  std::uint32_t bitmap;  ///< 1 for a bitmap.
};

/// An index as the operator reads it. The pointers lead to device memory.
struct Postings {
  const TermEntry* entries;
  const std::uint32_t* words;
  std::uint32_t term_count;
  std::uint32_t document_count;
};

/// Bitmaps are padded to this many 64-bit words, so that a thread may always read kLanes of them.
inline constexpr std::uint32_t kBitmapPad = 32;

/// A term in more than one document of this many has a bitmap, which takes at most four times the memory of its list.
/// A test of a bitmap is one read, a test of a list a search; on WordNet this answers 30% more queries per second than
/// the smaller of the two would (32), for 15% more memory.
inline constexpr std::uint32_t kBitmapShare = 128;

[[nodiscard]] HEADRACE_HD constexpr bool has_bitmap(std::uint32_t count, std::uint32_t document_count) {
  return std::uint64_t{count} * kBitmapShare > document_count;
}

/// A block's own memory: the query, read once because it may lie across the link, and the ids found.
struct Scratch {
  RetrievalQuery query;
  TermEntry entries[kQueryTermsMax];
  std::uint32_t ids[kAnswerIds];    ///< The smallest found so far, in order.
  std::uint32_t fresh[kAnswerIds];  ///< The smallest of the list at hand.
};

/// Makes step `i` one that goes only forward and to places that there are, whatever bytes came in.
HEADRACE_HD inline void tame_step(RetrievalQuery& query, std::uint32_t i) {
  auto& step = query.steps[i];
  step.term = step.term < query.term_count ? step.term : 0;
  if (step.if_present <= i || step.if_present > RetrievalQuery::kReject) step.if_present = RetrievalQuery::kReject;
  if (step.if_absent <= i || step.if_absent > RetrievalQuery::kReject) step.if_absent = RetrievalQuery::kReject;
}

HEADRACE_HD inline void tame_header(RetrievalQuery& query) {
  if (query.term_count > kQueryTermsMax) query.term_count = kQueryTermsMax;
  if (query.cover_count > query.term_count) query.cover_count = query.term_count;
  if (query.step_count > kQueryLeavesMax) query.step_count = kQueryLeavesMax;
  if (query.term_count == 0) query.step_count = 0;
  if (query.start > RetrievalQuery::kReject) query.start = RetrievalQuery::kReject;
}

/// Every thread of the block: brings the query and its terms' entries into `scratch`.
template <class Group>
HEADRACE_HD void stage_query(Group group, const Postings& postings, const RetrievalQuery& query, Scratch& scratch) {
  static_assert(sizeof(RetrievalQuery) % sizeof(std::uint64_t) == 0);
  group.sync();  // the query before this one is done with the scratch
  const auto* from = reinterpret_cast<const std::byte*>(&query);
  auto* to = reinterpret_cast<std::byte*>(&scratch.query);
  constexpr std::uint32_t kWord = sizeof(std::uint64_t);
  for (std::uint32_t i = group.rank(); i < sizeof(RetrievalQuery) / kWord; i += group.size()) {
    memcpy(to + i * kWord, from + i * kWord, kWord);
  }
  for (std::uint32_t i = group.rank(); i < kAnswerIds; i += group.size()) scratch.ids[i] = kNoDocument;
  group.sync();
  if (group.rank() == 0) tame_header(scratch.query);
  group.sync();
  for (std::uint32_t i = group.rank(); i < scratch.query.step_count; i += group.size()) tame_step(scratch.query, i);
  for (std::uint32_t i = group.rank(); i < scratch.query.term_count; i += group.size()) {
    const std::uint32_t term = scratch.query.terms[i];
    TermEntry entry = term < postings.term_count ? postings.entries[term] : TermEntry{0, 0, 0};
    // A bitmap cannot be walked as a list; compile() never asks for that.
    const bool walked = scratch.query.mode == RetrievalMode::candidates && i < scratch.query.cover_count;
    if (walked && entry.bitmap != 0) entry = TermEntry{0, 0, 0};
    scratch.entries[i] = entry;
  }
  group.sync();
}

/// The first position from `from` on whose id is at least `target`, or `count`. Gallops, so that a walk through a list
/// in order costs the logarithm of each leap (Bentley and Yao 1976).
[[nodiscard]] HEADRACE_HD inline std::uint32_t seek(const std::uint32_t* ids, std::uint32_t count, std::uint32_t from,
                                                    std::uint64_t target) {
  if (from >= count || ids[from] >= target) return from;
  std::uint32_t low = from;  // ids[low] < target
  std::uint32_t step = 1;
  while (step < count - low && ids[low + step] < target) {
    low += step;
    step *= 2;
  }
  std::uint32_t high = step < count - low ? low + step : count;  // at the end, or ids[high] >= target
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (ids[middle] < target) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return high;
}

/// One thread's way through the posting lists: documents must be asked for in ascending order.
struct Cursors {
  std::uint32_t at[kQueryTermsMax];

  HEADRACE_HD void reset() {
    for (auto& position : at) position = 0;
  }

  [[nodiscard]] HEADRACE_HD bool has(const Postings& postings, const TermEntry& entry, std::uint32_t term,
                                     std::uint32_t document) {
    const std::uint32_t* words = postings.words + entry.begin;
    if (entry.bitmap != 0) return (words[document / 32] >> (document % 32) & 1U) != 0;
    at[term] = seek(words, entry.count, at[term], document);
    return at[term] < entry.count && words[at[term]] == document;
  }
};

/// Whether `document`, which has term `known`, satisfies the query and is in no cover list before that of `known`.
HEADRACE_HD inline bool is_new_match(const Postings& postings, const Scratch& scratch, Cursors& cursors,
                                     std::uint32_t known, std::uint32_t document) {
  const auto& query = scratch.query;
  std::uint32_t step = query.start;
  while (step < query.step_count) {
    const auto& now = query.steps[step];
    const bool present = now.term == known || cursors.has(postings, scratch.entries[now.term], now.term, document);
    step = present ? now.if_present : now.if_absent;
  }
  if (step != RetrievalQuery::kAccept) return false;
  for (std::uint32_t term = 0; term < known; ++term) {
    if (cursors.has(postings, scratch.entries[term], term, document)) return false;
  }
  return true;
}

/// Adds the sorted `scratch.fresh[0..count)` to the sorted `scratch.ids`, and keeps the smallest. One thread.
HEADRACE_HD inline void merge_fresh(Scratch& scratch, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t id = scratch.fresh[i];
    if (id > scratch.ids[kAnswerIds - 1]) return;
    std::uint32_t place = kAnswerIds - 1;
    for (; place > 0 && scratch.ids[place - 1] > id; --place) scratch.ids[place] = scratch.ids[place - 1];
    scratch.ids[place] = id;
  }
}

/// Every thread of the block: tests what is in the cover's lists. Returns the calling thread's share of the hits and
/// leaves the smallest ids in the scratch.
template <class Group>
HEADRACE_HD std::uint32_t test_candidates(Group group, const Postings& postings, Scratch& scratch) {
  const std::uint32_t lists = scratch.query.cover_count;
  std::uint32_t* const found_ids = lists == 1 ? scratch.ids : scratch.fresh;
  std::uint32_t hits = 0;
  Cursors cursors;
  for (std::uint32_t list = 0; list < lists; ++list) {
    const TermEntry entry = scratch.entries[list];
    const std::uint32_t* const ids = postings.words + entry.begin;
    std::uint32_t found = 0;  // by the whole block; counted on only until the answer is full
    cursors.reset();
    for (std::uint64_t base = 0; base < entry.count; base += group.size()) {
      const std::uint64_t i = base + group.rank();
      const std::uint32_t id = i < entry.count ? ids[i] : kNoDocument;
      const bool hit = i < entry.count && is_new_match(postings, scratch, cursors, list, id);
      hits += hit ? 1 : 0;
      if (found < kAnswerIds) {
        std::uint32_t total;
        const std::uint32_t place = found + group.sum_before(hit ? 1U : 0U, total);
        if (hit && place < kAnswerIds) found_ids[place] = id;
        found += total;
      }
    }
    if (lists > 1) {
      group.sync();
      if (group.rank() == 0) merge_fresh(scratch, found < kAnswerIds ? found : kAnswerIds);
      group.sync();
    }
  }
  return hits;
}

/// 64 documents for each of kLanes consecutive words, a bit each.
template <class Group>
struct Lanes {
  static constexpr std::uint32_t kCount = Group::kLanes;
  static_assert(kBitmapPad % kCount == 0);
  std::uint64_t word[kCount];

  HEADRACE_HD void fill(std::uint64_t value) {
    for (std::uint32_t i = 0; i < kCount; ++i) word[i] = value;
  }
};

/// Which of the documents from 64 * `first` on have a term that has a list.
template <class Group>
HEADRACE_HD void gather(const std::uint32_t* ids, std::uint32_t count, std::uint32_t& at, std::uint32_t first,
                        Lanes<Group>& has) {
  has.fill(0);
  const std::uint64_t begin = std::uint64_t{first} * 64;
  const std::uint64_t end = begin + std::uint64_t{64} * Lanes<Group>::kCount;
  at = seek(ids, count, at, begin);  // stays here, because a later step may ask for the same words again
  for (std::uint32_t i = at; i < count && ids[i] < end; ++i) {
    has.word[ids[i] / 64 - first] |= std::uint64_t{1} << (ids[i] % 64);
  }
}

/// Sends documents on to a later step: those that are `here` and of which `has` (or, negated, has not) a bit. The first
/// to arrive overwrite what the place held.
template <bool Negated, class Group>
HEADRACE_HD void send(const Lanes<Group>& here, const std::uint64_t* has, Lanes<Group>& there, bool first) {
  if (first) {
    for (std::uint32_t i = 0; i < Lanes<Group>::kCount; ++i)
      there.word[i] = here.word[i] & (Negated ? ~has[i] : has[i]);
  } else {
    for (std::uint32_t i = 0; i < Lanes<Group>::kCount; ++i)
      there.word[i] |= here.word[i] & (Negated ? ~has[i] : has[i]);
  }
}

/// One thread's evaluation of many documents at once.
template <class Group>
struct Scanner {
  Lanes<Group> reached[kQueryLeavesMax + 1];  ///< At each step and at kAccept: the documents that get there.
  Cursors cursors;

  /// Evaluates the documents of the words from `first` on; the matches are in `reached[kAccept]`.
  HEADRACE_HD void evaluate(const Postings& postings, const Scratch& scratch, std::uint32_t first) {
    const auto& query = scratch.query;
    reached[RetrievalQuery::kAccept].fill(0);
    arrived_ = 0;
    if (query.start != RetrievalQuery::kReject) {
      reached[query.start].fill(~std::uint64_t{0});
      arrived_ = std::uint64_t{1} << query.start;
    }
    for (std::uint32_t i = 0; i < query.step_count; ++i) {
      if ((arrived_ >> i & 1U) != 0) take_step(postings, scratch, i, first);
    }
    clip(postings.document_count, first);
  }

 private:
  std::uint64_t arrived_;  ///< A bit for each step, and for kAccept, that documents have been sent to.

  HEADRACE_HD void take_step(const Postings& postings, const Scratch& scratch, std::uint32_t i, std::uint32_t first) {
    const auto step = scratch.query.steps[i];
    const TermEntry& entry = scratch.entries[step.term];
    const std::uint32_t* words = postings.words + entry.begin;
    Lanes<Group> gathered;
    const std::uint64_t* has = gathered.word;
    if (entry.bitmap != 0) {
      has = reinterpret_cast<const std::uint64_t*>(words) + first;
    } else {
      gather<Group>(words, entry.count, cursors.at[step.term], first, gathered);
    }
    if (step.if_present != RetrievalQuery::kReject) {
      send<false>(reached[i], has, reached[step.if_present], arrive(step.if_present));
    }
    if (step.if_absent != RetrievalQuery::kReject) {
      send<true>(reached[i], has, reached[step.if_absent], arrive(step.if_absent));
    }
  }

  /// Whether these are the first documents that are sent there.
  [[nodiscard]] HEADRACE_HD bool arrive(std::uint8_t step) {
    const bool first = (arrived_ >> step & 1U) == 0;
    arrived_ |= std::uint64_t{1} << step;
    return first;
  }

  /// Takes out what lies beyond the last document.
  HEADRACE_HD void clip(std::uint32_t document_count, std::uint32_t first) {
    for (std::uint32_t i = 0; i < Lanes<Group>::kCount; ++i) {
      const std::uint64_t begin = (std::uint64_t{first} + i) * 64;
      if (begin + 64 <= document_count) continue;
      auto& word = reached[RetrievalQuery::kAccept].word[i];
      word = begin >= document_count ? 0 : word & ((std::uint64_t{1} << (document_count - begin)) - 1);
    }
  }
};

/// How many bits are set.
[[nodiscard]] HEADRACE_HD inline std::uint32_t bit_count(std::uint64_t word) {
#if defined(__CUDA_ARCH__)
  return static_cast<std::uint32_t>(__popcll(word));
#else
  return static_cast<std::uint32_t>(std::popcount(word));
#endif
}

/// Writes the documents of `lanes` to `ids` from `place` on, as far as there is room.
template <class Group>
HEADRACE_HD void list_ids(const Lanes<Group>& lanes, std::uint32_t first, std::uint32_t place, std::uint32_t* ids) {
  for (std::uint32_t i = 0; i < Lanes<Group>::kCount; ++i) {
    for (std::uint64_t word = lanes.word[i]; word != 0 && place < kAnswerIds; word &= word - 1) {
      ids[place++] = (first + i) * 64 + bit_count((word & (~word + 1)) - 1);
    }
  }
}

/// Every thread of the block: tests all documents. Returns the calling thread's share of the hits and leaves the
/// smallest ids in the scratch.
template <class Group>
HEADRACE_HD std::uint32_t scan(Group group, const Postings& postings, Scratch& scratch) {
  constexpr std::uint32_t kLanes = Lanes<Group>::kCount;
  const std::uint32_t words = postings.document_count / 64 + (postings.document_count % 64 != 0 ? 1 : 0);
  Scanner<Group> scanner;
  scanner.cursors.reset();
  std::uint32_t hits = 0;
  std::uint32_t found = 0;  // by the whole block; counted on only until the answer is full
  for (std::uint32_t base = 0; base < words; base += group.size() * kLanes) {
    const std::uint32_t first = base + group.rank() * kLanes;
    std::uint32_t count = 0;
    const auto& matches = scanner.reached[RetrievalQuery::kAccept];
    if (first < words) {
      scanner.evaluate(postings, scratch, first);
      for (std::uint32_t i = 0; i < kLanes; ++i) count += bit_count(matches.word[i]);
    }
    hits += count;
    if (found < kAnswerIds) {
      std::uint32_t total;
      const std::uint32_t place = found + group.sum_before(count, total);
      if (count != 0) list_ids<Group>(matches, first, place, scratch.ids);
      found += total;
    }
  }
  return hits;
}

}  // namespace headrace::operators::boolean
