#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/serve/detail/dispatch.hpp"
#include "headrace/serve/detail/lone_query.hpp"

/// The blocks that answer queries in the pool of Schedule::dispatched.
namespace headrace::serve {

/// The group that an operator sees in the pool, where any block may answer any part of a query.
template <class Group>
class PartGroup : public Group {
 public:
  HEADRACE_HD PartGroup(const Group& group, std::uint32_t part, std::uint32_t parts)
      : Group(group), part_(part), parts_(parts) {}

  [[nodiscard]] HEADRACE_HD std::uint32_t block() const { return part_; }
  [[nodiscard]] HEADRACE_HD std::uint32_t block_count() const { return parts_; }
  [[nodiscard]] HEADRACE_HD std::uint32_t thread() const { return part_ * Group::size() + Group::rank(); }
  [[nodiscard]] HEADRACE_HD std::uint32_t thread_count() const { return parts_ * Group::size(); }
  [[nodiscard]] HEADRACE_HD static constexpr std::uint32_t item() { return 0; }
  [[nodiscard]] HEADRACE_HD static constexpr std::uint32_t item_count() { return 1; }

 private:
  std::uint32_t part_;
  std::uint32_t parts_;
};

namespace detail {

struct alignas(16) Chunk {
  std::uint32_t words[4];
};

/// Every thread of the block calls it. Copies 16 bytes per thread, then the rest.
template <class Group>
HEADRACE_HD void copy_bytes(Group group, void* to, const void* from, std::uint32_t bytes) {
  constexpr std::uint32_t kChunkBytes = sizeof(Chunk);
  const std::uint32_t chunks = bytes / kChunkBytes;
  for (std::uint32_t i = group.rank(); i < chunks; i += group.size()) {
    static_cast<Chunk*>(to)[i] = static_cast<const Chunk*>(from)[i];
  }
  for (std::uint32_t i = chunks * kChunkBytes + group.rank(); i < bytes; i += group.size()) {
    static_cast<unsigned char*>(to)[i] = static_cast<const unsigned char*>(from)[i];
  }
}

/// A block that answers queries: every block except block 0.
template <class Op, class Group>
class Worker {
 public:
  using State = typename Op::State;
  using Query = typename Op::Query;
  using Answer = typename Op::Answer;

  HEADRACE_HD Worker(Group group, const State& state, const DispatchView& view)
      : group_(group), state_(state), view_(view) {}

  HEADRACE_HD void run() {
    for (;;) {
      const Drawn drawn = next();
      if (drawn.is(Drawn::What::leave)) return;
      if (view_.blocks == 1) {
        answer_alone(drawn, false);
      } else {
        answer_part(drawn);
      }
    }
  }

  /// Every thread of the block calls it. Waits for the next part that no block has taken.
  [[nodiscard]] HEADRACE_HD Drawn next() const {
    Drawn drawn{};
    if (group_.rank() == 0) drawn = draw();
    return group_.broadcast(drawn);
  }

  /// Only the thread of rank 0 calls it.
  [[nodiscard]] HEADRACE_HD Drawn draw() const {
    const std::uint64_t number = group_.fetch_add_relaxed_on_device(*view_.next_ticket, std::uint64_t{1});
    const std::uint64_t ticket = view_.blocks == 1 ? number : number / view_.blocks;
    for (std::uint32_t poll = 0;; ++poll) {
      if (poll % kPollsPerLook == 0 && group_.load_on_device(*view_.leave) != 0) return {Drawn::What::leave, 0, 0, 0};
      const std::uint64_t entry = group_.load_on_device(view_.entry_at(ticket));
      if (view_.is_for(entry, ticket)) {
        // Pairs with make_room(). It depends on the value of the entry, so it needs no release.
        group_.fetch_add_relaxed_on_device(view_.taken_in(view_.half(ticket)), std::uint32_t{1});
        return {Drawn::What::query, static_cast<std::uint32_t>(entry >> 32) & 0xFFFF, static_cast<std::uint32_t>(entry),
                static_cast<std::uint32_t>(number - ticket * view_.blocks)};
      }
      group_.pause_ns(kPauseNs);
    }
  }

  /// One block answers the whole query. With `held`, the query is already in its Stage.
  HEADRACE_HD void answer_alone(const Drawn& drawn, bool held) {
    const std::uint32_t slot = view_.slot(drawn.lane, drawn.position);
    const bool stamped = sampled(drawn);
    DispatchStamps stamps{};
    if (stamped) stamps.taken = group_.clock_ns();
    const void* query = view_.queries + std::size_t{slot} * view_.query_stride;
    if (view_.query_bytes <= kStagedBytesMax) {
      auto& stage = group_.template shared<Stage>();
      if (!held) {
        copy_bytes(group_, &stage, query, view_.query_bytes);
        group_.sync();
      }
      query = &stage;
    }
    if (stamped) stamps.staged = group_.clock_ns();
    std::byte* const slot_answer = view_.answers + std::size_t{slot} * view_.answer_stride;
    auto& short_answer = group_.template shared<ShortAnswer>();
    void* const answer = sealed() ? static_cast<void*>(&short_answer) : slot_answer;
    Op::answer(PartGroup<Group>(group_, 0, 1), state_, static_cast<const Query*>(query), static_cast<Answer*>(answer));
    group_.sync();
    if (stamped) leave_stamps(slot, stamps);
    publish(slot, drawn.position, slot_answer, &short_answer);
  }

 private:
  struct alignas(16) ShortAnswer {
    unsigned char bytes[kSealedBytesMax];
  };
  static constexpr std::uint32_t kPollsPerLook = 64;
  static constexpr std::uint32_t kPauseNs = 40;

  [[nodiscard]] HEADRACE_HD bool sealed() const { return view_.done == nullptr; }
  [[nodiscard]] HEADRACE_HD bool sampled(const Drawn& drawn) const {
    return drawn.part == 0 && view_.sampled(drawn.position);
  }

  /// Several blocks write to device memory, and the last one passes the whole answer to the host.
  HEADRACE_HD void answer_part(const Drawn& drawn) {
    const std::uint32_t slot = view_.slot(drawn.lane, drawn.position);
    const bool stamped = sampled(drawn);
    DispatchStamps stamps{};
    if (stamped) stamps.taken = stamps.staged = group_.clock_ns();
    std::byte* const parts = view_.parts + std::size_t{slot} * view_.answer_stride;
    Op::answer(PartGroup<Group>(group_, drawn.part, view_.blocks), state_,
               reinterpret_cast<const Query*>(view_.queries + std::size_t{slot} * view_.query_stride),
               reinterpret_cast<Answer*>(parts));
    group_.sync();
    if (stamped) leave_stamps(slot, stamps);
    std::uint32_t last = 0;
    if (group_.rank() == 0) {
      last = group_.fetch_add_on_device(view_.arrived[slot], 1U) + 1 == view_.blocks ? 1 : 0;
      if (last != 0) group_.fetch_add_relaxed_on_device(view_.arrived[slot], 0U - view_.blocks);
    }
    if (group_.broadcast(last) == 0) return;
    std::byte* const slot_answer = view_.answers + std::size_t{slot} * view_.answer_stride;
    if (!sealed()) {
      copy_bytes(group_, slot_answer, parts, view_.answer_bytes);
      group_.sync();
    }
    publish(slot, drawn.position, slot_answer, parts);
  }

  /// @param whole  the answer, if it returns sealed; otherwise it is already in the slot
  HEADRACE_HD void publish(std::uint32_t slot, std::uint32_t position, std::byte* slot_answer, const void* whole) {
    if (!sealed()) {
      if (group_.rank() == 0) group_.store(view_.done[slot], position + 1);  // pairs with DirectLane::answered
      return;
    }
    auto* const units = reinterpret_cast<SealedUnit*>(slot_answer);
    for (std::uint32_t i = group_.rank(); i < sealed_units(view_.answer_bytes); i += group_.size()) {
      SealedUnit unit{};
      for (std::uint32_t w = 0; w < SealedUnit::kDataBytes / 4; ++w) {
        const std::uint32_t at = i * SealedUnit::kDataBytes + w * 4;
        unit.data[w] = word_of(static_cast<const unsigned char*>(whole), at);
      }
      unit.sequence = position + 1;
      group_.store_unit(units[i], unit);  // pairs with DirectLane::answered
    }
  }

  /// Four bytes of the answer from `at` on; zeros after its end.
  [[nodiscard]] HEADRACE_HD std::uint32_t word_of(const unsigned char* answer, std::uint32_t at) const {
    if (at + 4 <= view_.answer_bytes) return *reinterpret_cast<const std::uint32_t*>(answer + at);
    std::uint32_t word = 0;
    for (std::uint32_t i = 0; at + i < view_.answer_bytes; ++i) word |= std::uint32_t{answer[at + i]} << (8 * i);
    return word;
  }

  HEADRACE_HD void leave_stamps(std::uint32_t slot, DispatchStamps& stamps) {
    stamps.computed = group_.clock_ns();
    if (group_.rank() == 0) {
      DispatchStamps& to = view_.stamps[slot];
      const std::uint64_t seen = view_.seen_at[slot];
      to.seen = seen != 0 ? seen : stamps.taken;  // 0 if it was in the queue before the launch
      to.taken = stamps.taken;
      to.staged = stamps.staged;
      group_.store(to.computed, stamps.computed);
      group_.fence_system();  // stamps must be visible before the answer
    }
    group_.sync();
  }

  Group group_;
  const State& state_;
  const DispatchView& view_;
};

}  // namespace detail

}  // namespace headrace::serve
