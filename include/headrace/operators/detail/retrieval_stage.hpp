#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "headrace/operators/detail/retrieval_postings.hpp"

/// State that the threads of a block share while they answer a Boolean query.
namespace headrace::operators::boolean {

/// The block's own memory: the query, which is read once because it may be across a link, and the ids found.
struct Scratch {
  RetrievalQuery query;
  TermEntry entries[kQueryTermsMax];
  std::uint32_t ids[3][kAnswerIds];  ///< Ascending; Ids tracks the role of each.
};

/// Makes step `i` lead only forward and to existing steps, whatever bytes came in.
HEADRACE_HD inline void tame_step(RetrievalQuery& query, std::uint32_t i) {
  auto& step = query.steps[i];
  const auto leads_on = [&](std::uint32_t to) {
    return (to > i && to < query.step_count) || to == RetrievalQuery::kAccept;
  };
  step.term = step.term < query.term_count ? step.term : 0;
  if (!leads_on(step.if_present)) step.if_present = RetrievalQuery::kReject;
  if (!leads_on(step.if_absent)) step.if_absent = RetrievalQuery::kReject;
}

HEADRACE_HD inline void tame_header(RetrievalQuery& query) {
  if (query.mode != RetrievalMode::candidates && query.mode != RetrievalMode::scan) query.mode = RetrievalMode::none;
  if (query.term_count > kQueryTermsMax) query.term_count = kQueryTermsMax;
  if (query.cover_count > query.term_count) query.cover_count = query.term_count;
  if (query.scan_count > query.term_count - query.cover_count) {
    query.scan_count = static_cast<std::uint8_t>(query.term_count - query.cover_count);
  }
  if (query.step_count > kQueryLeavesMax) query.step_count = kQueryLeavesMax;
  if (query.term_count == 0) query.step_count = 0;
  if (query.start >= query.step_count && query.start != RetrievalQuery::kAccept) query.start = RetrievalQuery::kReject;
}

/// Loads the query and the entries of its terms into `scratch`. Every thread of the block calls it.
template <class Group>
HEADRACE_HD void stage_query(Group group, const Postings& postings, const RetrievalQuery& query, Scratch& scratch) {
  static_assert(sizeof(RetrievalQuery) % sizeof(std::uint64_t) == 0);
  group.sync();  // the previous query is done with the scratch memory
  constexpr std::uint32_t kWord = sizeof(std::uint64_t);
  static_assert(alignof(RetrievalQuery) == kWord);
  const auto* from = reinterpret_cast<const std::byte*>(&query);
  auto* to = reinterpret_cast<std::byte*>(&scratch.query);
  for (std::uint32_t i = group.rank(); i < sizeof(RetrievalQuery) / kWord; i += group.size()) {
    // The alignment is explicit, because the compiler does not know it for bytes and would read single bytes, perhaps
    // across a link.
    memcpy(__builtin_assume_aligned(to + i * kWord, kWord), __builtin_assume_aligned(from + i * kWord, kWord), kWord);
  }
  group.sync();
  if (group.rank() == 0) tame_header(scratch.query);
  group.sync();
  for (std::uint32_t i = group.rank(); i < scratch.query.step_count; i += group.size()) tame_step(scratch.query, i);
  for (std::uint32_t i = group.rank(); i < scratch.query.term_count; i += group.size()) {
    const std::uint32_t term = scratch.query.terms[i];
    scratch.entries[i] = term < postings.term_count ? postings.entries[term] : TermEntry{0, 0, 0, 0};
  }
  group.sync();
}

/// The smallest ids that a block has found. All threads hold the same state.
class Ids {
 public:
  /// Where to write the next ids, at most kAnswerIds of them, in order.
  [[nodiscard]] HEADRACE_HD std::uint32_t* fresh(Scratch& scratch) const { return scratch.ids[fresh_]; }
  [[nodiscard]] HEADRACE_HD const std::uint32_t* all(const Scratch& scratch) const { return scratch.ids[kept_]; }
  [[nodiscard]] HEADRACE_HD std::uint32_t count() const { return count_; }

  /// Merges the first `count` ids of fresh(). Every thread of the block calls it.
  template <class Group>
  HEADRACE_HD void take(Group group, Scratch& scratch, std::uint32_t count) {
    if (count > kAnswerIds) count = kAnswerIds;
    if (count == 0) return;
    group.sync();  // for what other threads wrote to fresh()
    if (count_ == 0) {
      const std::uint32_t unused = kept_;
      kept_ = fresh_;
      fresh_ = unused;
      count_ = count;
      return;
    }
    const std::uint32_t* const old = scratch.ids[kept_];
    const std::uint32_t* const fresh = scratch.ids[fresh_];
    std::uint32_t* const merged = scratch.ids[3 - kept_ - fresh_];
    for (std::uint32_t i = group.rank(); i < count_ + count; i += group.size()) {
      const bool is_old = i < count_;
      const std::uint32_t id = is_old ? old[i] : fresh[i - count_];
      const std::uint32_t place = is_old ? i + below(fresh, count, id) : i - count_ + below(old, count_, id);
      if (place < kAnswerIds) merged[place] = id;
    }
    kept_ = 3 - kept_ - fresh_;
    count_ = count_ + count < kAnswerIds ? count_ + count : kAnswerIds;
    group.sync();
  }

 private:
  [[nodiscard]] HEADRACE_HD static std::uint32_t below(const std::uint32_t* ids, std::uint32_t count,
                                                       std::uint32_t id) {
    std::uint32_t place = 0;
    while (place < count && ids[place] < id) ++place;
    return place;
  }

  std::uint32_t kept_ = 0;   ///< Index in Scratch::ids of those found so far.
  std::uint32_t fresh_ = 1;  ///< Index in Scratch::ids of the next ones.
  std::uint32_t count_ = 0;
};

/// The number of bits that are set.
[[nodiscard]] HEADRACE_HD inline std::uint32_t bit_count(std::uint32_t word) {
#if defined(__CUDA_ARCH__)
  return static_cast<std::uint32_t>(__popc(word));
#else
  return static_cast<std::uint32_t>(std::popcount(word));
#endif
}

[[nodiscard]] HEADRACE_HD inline std::uint32_t bit_count(const Vector& vector) {
  std::uint32_t count = 0;
  for (const std::uint32_t word : vector.word) count += bit_count(word);
  return count;
}

/// The query's terms `begin` to `end` - 1, which either all of the tested documents have, or none.
struct KnownTerms {
  std::uint32_t begin;
  std::uint32_t end;
  bool present;
};

/// Tests which of the documents satisfy the expression, with a bit for each, among those whose bit in `asked` is set.
/// Looks their terms up in the index, except for the known ones.
[[nodiscard]] HEADRACE_HD inline std::uint32_t test_documents(const Postings& postings, const Scratch& scratch,
                                                              const Vector& ids, std::uint32_t asked,
                                                              KnownTerms known) {
  const auto& query = scratch.query;
  std::uint32_t at[kTestsAtOnce];
  for (std::uint32_t i = 0; i < kTestsAtOnce; ++i)
    at[i] = (asked >> i & 1U) != 0 ? query.start : RetrievalQuery::kReject;
  while (true) {
    std::uint32_t step = at[0];  // the earliest step of any of them: steps lead only forward
    for (std::uint32_t i = 1; i < kTestsAtOnce; ++i) step = at[i] < step ? at[i] : step;
    if (step >= query.step_count) break;
    const auto now = query.steps[step];
    std::uint32_t here = 0;
    for (std::uint32_t i = 0; i < kTestsAtOnce; ++i) here |= bit_if(at[i] == step, i);
    std::uint32_t has;
    if (now.term >= known.begin && now.term < known.end) {
      has = known.present ? here : 0;
    } else {
      has = test_term(postings, scratch.entries[now.term], ids, here);
    }
    for (std::uint32_t i = 0; i < kTestsAtOnce; ++i) {
      if ((here >> i & 1U) != 0) at[i] = (has >> i & 1U) != 0 ? now.if_present : now.if_absent;
    }
  }
  std::uint32_t accepted = 0;
  for (std::uint32_t i = 0; i < kTestsAtOnce; ++i) accepted |= bit_if(at[i] == RetrievalQuery::kAccept, i);
  return accepted;
}

}  // namespace headrace::operators::boolean
