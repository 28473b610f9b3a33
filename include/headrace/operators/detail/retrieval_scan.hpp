#pragma once

#include <cstdint>

#include "headrace/operators/detail/retrieval_stage.hpp"

/// Evaluates a query's rest over bitmaps, 128 documents at a time.
namespace headrace::operators::boolean {

/// Clears the bits beyond the last document.
HEADRACE_HD inline void clip(std::uint32_t& word, std::uint64_t first, std::uint32_t document_count) {
  if (first + 32 <= document_count) return;
  word = first >= document_count ? 0 : word & ((1U << (document_count - first)) - 1);
}

/// The value of a truth table over Terms terms for 32 documents: words[i] has their bits of term i. A tree of
/// selections (Shannon's expansion), each of which is one instruction on a GPU.
template <std::uint32_t Terms>
[[nodiscard]] HEADRACE_HD constexpr std::uint32_t select(std::uint32_t truth, const std::uint32_t* words) {
  if constexpr (Terms == 0) {
    return 0U - (truth & 1U);
  } else {
    const std::uint32_t absent = select<Terms - 1>(truth, words);
    const std::uint32_t present = select<Terms - 1>(truth >> (1U << (Terms - 1)), words);
    return absent ^ ((absent ^ present) & words[Terms - 1]);
  }
}

/// A rest of at most kTruthTermsMax terms, evaluated by its truth table.
template <class Group, std::uint32_t Terms>
class TableRest {
 public:
  /// Vectors that a thread takes at once: as many reads as registers allow, or all of a bitmap's padding on a CPU.
  static constexpr std::uint32_t kVectors = Group::kLanes > 1 ? kBitmapPad : (Terms == 2 ? 4 : Terms == 1 ? 1 : 2);

  HEADRACE_HD TableRest(const Postings& postings, const Scratch& scratch)
      : documents_(postings.document_count), truth_(scratch.query.truth) {
    for (std::uint32_t i = 0; i < Terms; ++i) {
      const bool there = i < scratch.query.scan_count;
      bitmaps_[i] = there ? bitmap_of(postings, scratch.entries[scratch.query.cover_count + i]) : postings.bitmaps;
    }
  }

  /// The matches among the documents of vector `at`, which must be within the bitmap.
  [[nodiscard]] HEADRACE_HD Vector match(std::uint32_t at) const {
    Vector has[Terms];
    for (std::uint32_t i = 0; i < Terms; ++i) has[i] = bitmaps_[i][at];
    return combine(has, at);
  }

  /// Counts the matching documents of kVectors vectors: first, first + stride, ...
  [[nodiscard]] HEADRACE_HD std::uint32_t count(std::uint32_t first, std::uint32_t stride, std::uint32_t end) const {
    if constexpr (Group::kLanes > 1) {
      return first + kVectors < end ? count_row(first) : count_each(first, end);
    } else {
      return count_apart(first, stride, end);
    }
  }

 private:
  /// Counts in adjacent vectors, in a loop that compilers turn into SIMD.
  [[nodiscard]] HEADRACE_HD std::uint32_t count_row(std::uint32_t first) const {
    const std::uint32_t* rows[Terms];
    for (std::uint32_t i = 0; i < Terms; ++i) rows[i] = words_of(bitmaps_[i] + first);
    std::uint32_t count = 0;
    for (std::uint32_t w = 0; w < kVectors * Vector::kWords; ++w) {
      std::uint32_t words[Terms];
      for (std::uint32_t i = 0; i < Terms; ++i) words[i] = rows[i][w];
      count += bit_count(select<Terms>(truth_, words));
    }
    return count;
  }

  /// The same if the last documents may be among them.
  [[nodiscard]] HEADRACE_HD std::uint32_t count_each(std::uint32_t first, std::uint32_t end) const {
    std::uint32_t count = 0;
    for (std::uint32_t at = first; at < end && at < first + kVectors; ++at) count += bit_count(match(at));
    return count;
  }

  /// Counts in vectors that are apart, reading all of them before the first is used.
  [[nodiscard]] HEADRACE_HD std::uint32_t count_apart(std::uint32_t first, std::uint32_t stride,
                                                      std::uint32_t end) const {
    Vector has[kVectors][Terms];
    for (std::uint32_t v = 0; v < kVectors; ++v) {
      // A read beyond the last vector takes the last one, and is clipped later.
      const std::uint32_t at = first + v * stride < end ? first + v * stride : end - 1;
      for (std::uint32_t i = 0; i < Terms; ++i) has[v][i] = bitmaps_[i][at];
    }
    std::uint32_t count = 0;
    for (std::uint32_t v = 0; v < kVectors; ++v) count += bit_count(combine(has[v], first + v * stride));
    return count;
  }

  [[nodiscard]] HEADRACE_HD Vector combine(const Vector* has, std::uint32_t at) const {
    Vector matches;
    for (std::uint32_t j = 0; j < Vector::kWords; ++j) {
      std::uint32_t words[Terms];
      for (std::uint32_t i = 0; i < Terms; ++i) words[i] = has[i].word[j];
      matches.word[j] = select<Terms>(truth_, words);
    }
    const std::uint64_t first = std::uint64_t{at} * Vector::kBits;
    if (first + Vector::kBits > documents_) {
      for (std::uint32_t j = 0; j < Vector::kWords; ++j)
        clip(matches.word[j], first + std::uint64_t{32} * j, documents_);
    }
    return matches;
  }

  const Vector* bitmaps_[Terms];
  std::uint32_t documents_;
  std::uint32_t truth_;
};

/// A rest of any number of terms, evaluated by the query's steps from the last to the first. Its values are in memory,
/// because steps lead anywhere. For queries of more than kTruthTermsMax frequent words.
template <class Group>
class StepRest {
 public:
  static constexpr std::uint32_t kVectors = Group::kLanes > 1 ? kBitmapPad : 1;
  static constexpr std::uint32_t kKept = Group::kLanes > 1 ? kVectors * Vector::kWords : 1;

  HEADRACE_HD StepRest(const Postings& postings, const Scratch& scratch) : postings_(postings), scratch_(scratch) {}

  /// The matches among the documents of vector `at`; on a CPU, one of the vectors counted last.
  [[nodiscard]] HEADRACE_HD Vector match(std::uint32_t at) const {
    Vector matches;
    for (std::uint32_t j = 0; j < Vector::kWords; ++j) {
      if constexpr (kKept > 1) {
        matches.word[j] = kept_[(at - kept_first_) * Vector::kWords + j];
      } else {
        evaluate<1>(at * Vector::kWords + j, &matches.word[j]);
      }
    }
    return matches;
  }

  /// Like TableRest's. With the single thread of a CPU, the vectors are adjacent, and their matches are kept for
  /// match().
  [[nodiscard]] HEADRACE_HD std::uint32_t count(std::uint32_t first, std::uint32_t, std::uint32_t end) {
    if (first >= end) return 0;
    std::uint32_t count = 0;
    if constexpr (kKept > 1) {
      evaluate<kVectors * Vector::kWords>(first * Vector::kWords, kept_);
      kept_first_ = first;
      for (const std::uint32_t word : kept_) count += bit_count(word);
    } else {
      for (std::uint32_t j = 0; j < kVectors * Vector::kWords; ++j) {
        std::uint32_t matches[1];
        evaluate<1>(first * Vector::kWords + j, matches);
        count += bit_count(matches[0]);
      }
    }
    return count;
  }

 private:
  /// The matches among the documents of Words words from number `first` on.
  template <std::uint32_t Words>
  HEADRACE_HD void evaluate(std::uint32_t first, std::uint32_t* matches) const {
    const auto& query = scratch_.query;
    std::uint32_t values[kQueryLeavesMax + 2][Words];  // for each step, and for kAccept and kReject
    for (std::uint32_t w = 0; w < Words; ++w) {
      values[RetrievalQuery::kAccept][w] = ~0U;
      values[RetrievalQuery::kReject][w] = 0;
    }
    for (std::uint32_t i = query.step_count; i-- > 0;) {
      const auto step = query.steps[i];
      const auto& entry = scratch_.entries[step.term];
      const bool of_rest = step.term >= query.cover_count && step.term < query.cover_count + query.scan_count;
      const std::uint32_t* const has = words_of(of_rest ? bitmap_of(postings_, entry) : postings_.bitmaps) + first;
      for (std::uint32_t w = 0; w < Words; ++w) {
        const std::uint32_t absent = values[step.if_absent][w];
        values[i][w] = absent ^ ((absent ^ values[step.if_present][w]) & has[w]);
      }
    }
    for (std::uint32_t w = 0; w < Words; ++w) {
      matches[w] = values[query.start][w];
      clip(matches[w], (std::uint64_t{first} + w) * 32, postings_.document_count);
    }
  }

  const Postings& postings_;
  const Scratch& scratch_;
  std::uint32_t kept_[kKept];  ///< On a CPU, the matches of the vectors from kept_first_ on.
  std::uint32_t kept_first_ = 0;
};

/// Keeps the documents of a vector that match the query itself, not only its rest, up to the capacity of an answer.
[[nodiscard]] HEADRACE_HD inline Vector keep_matches(const Postings& postings, const Scratch& scratch,
                                                     const Vector& of_rest, std::uint32_t at) {
  Vector kept{};
  std::uint32_t count = 0;
  for (std::uint32_t j = 0; j < Vector::kWords; ++j) {
    const std::uint32_t first = at * Vector::kBits + j * 32;
    for (std::uint32_t left = of_rest.word[j]; left != 0 && count < kAnswerIds;) {
      Vector ids;
      std::uint32_t bits[kTestsAtOnce];
      std::uint32_t asked = 0;
      for (std::uint32_t i = 0; i < kTestsAtOnce; ++i) {
        bits[i] = left & (~left + 1);
        ids.word[i] = first + bit_count(bits[i] - 1) % 32;
        asked |= bit_if(left != 0, i);
        left &= left - 1;
      }
      const std::uint32_t matches = test_documents(postings, scratch, ids, asked, {0, 0, false});
      std::uint32_t passed = 0;
      for (std::uint32_t i = 0; i < kTestsAtOnce; ++i) {
        if ((matches >> i & 1U) != 0) passed |= bits[i];
      }
      kept.word[j] |= passed;
      count += bit_count(matches);
    }
  }
  return kept;
}

/// Writes the documents of a vector to `ids` from `place` on, as far as they fit.
HEADRACE_HD inline void list_documents(const Vector& matches, std::uint32_t at, std::uint32_t place,
                                       std::uint32_t* ids) {
  for (std::uint32_t j = 0; j < Vector::kWords; ++j) {
    for (std::uint32_t word = matches.word[j]; word != 0 && place < kAnswerIds; word &= word - 1) {
      ids[place++] = at * Vector::kBits + j * 32 + bit_count((word & (~word + 1)) - 1);
    }
  }
}

/// Scans the documents, to the last one with `to_end`, otherwise until there are enough ids. Returns the calling
/// thread's share of the rest's hits so far, and adds the ids of matches. Every thread of the block calls it.
template <class Rest, class Group>
HEADRACE_HD std::uint32_t scan_with(Group group, const Postings& postings, Scratch& scratch, Ids& ids, bool to_end) {
  Rest rest(postings, scratch);
  const std::uint32_t documents = postings.document_count;
  const std::uint32_t end = documents / Vector::kBits + (documents % Vector::kBits != 0 ? 1 : 0);
  const std::uint32_t stride = group.size();
  std::uint32_t hits = 0;
  std::uint32_t found = 0;  // of the whole block; counts only until the answer is full
  for (std::uint32_t base = 0; base < end && (to_end || found < kAnswerIds); base += Rest::kVectors * stride) {
    const std::uint32_t count = rest.count(base + group.rank(), stride, end);
    hits += count;
    if (found >= kAnswerIds || group.sum(count) == 0) continue;
    for (std::uint32_t v = 0; v < Rest::kVectors && found < kAnswerIds; ++v) {  // a second time, for their ids
      const std::uint32_t at = base + v * stride + group.rank();
      Vector matches{};
      if (at < end) matches = rest.match(at);
      if (scratch.query.cover_count != 0) matches = keep_matches(postings, scratch, matches, at);
      const std::uint32_t kept = bit_count(matches);
      std::uint32_t total;
      const std::uint32_t place = found + group.sum_before(kept, total);
      if (kept != 0) list_documents(matches, at, place, ids.fresh(scratch));
      found += total;
    }
  }
  ids.take(group, scratch, found);
  return hits;
}

/// The hits of a rest of at most one term.
[[nodiscard]] HEADRACE_HD inline std::uint32_t known_hits(const Postings& postings, const Scratch& scratch) {
  const auto& query = scratch.query;
  const std::uint32_t with = query.scan_count == 0 ? 0 : scratch.entries[query.cover_count].count;
  return ((query.truth & 1U) != 0 ? postings.document_count - with : 0) + ((query.truth & 2U) != 0 ? with : 0);
}

/// Returns the calling thread's share of the rest's hits, and adds the ids of matches. Every thread of the block calls
/// it.
template <class Group>
HEADRACE_HD std::uint32_t scan(Group group, const Postings& postings, Scratch& scratch, Ids& ids) {
  switch (scratch.query.scan_count) {
    case 0:
    case 1:
      scan_with<TableRest<Group, 1>>(group, postings, scratch, ids, false);
      return group.rank() == 0 ? known_hits(postings, scratch) : 0;
    case 2: return scan_with<TableRest<Group, 2>>(group, postings, scratch, ids, true);
    case 3: return scan_with<TableRest<Group, 3>>(group, postings, scratch, ids, true);
    case 4: return scan_with<TableRest<Group, 4>>(group, postings, scratch, ids, true);
    default: return scan_with<StepRest<Group>>(group, postings, scratch, ids, true);
  }
}

}  // namespace headrace::operators::boolean
