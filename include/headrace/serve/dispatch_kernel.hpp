#pragma once

#include <cstdint>
#include <cstring>

#include "headrace/device/group.hpp"
#include "headrace/serve/dispatch.hpp"

/// The kernel of Schedule::dispatched, written over a Group.
namespace headrace::serve {

/// A block as an operator sees it in the pool: any block may answer any part of a query.
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

/// Every thread of the block: copies 16 bytes a thread, then what is left over.
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

/// What a block is to answer.
struct Drawn {
  std::uint32_t lane;
  std::uint32_t position;
  std::uint32_t part;
  std::uint32_t leave;
};

/// Block 0 of the pool: one team of it reads the tails. One read at a time: further reads of the same line wait for the
/// first, and reads of copies in other lines or by other teams made what they find no younger. Where AnswersInline, a
/// query that comes alone is not handed out, but answered by block 0.
template <class Group, bool AnswersInline>
class Dispatcher {
 public:
  HEADRACE_HD Dispatcher(Group group, const DispatchView& view)
      : group_(group), view_(view), seen_(group.template shared<Seen>()) {}

  /// Every thread of block 0, first.
  HEADRACE_HD void begin() {
    for (std::uint32_t i = group_.rank(); i < kDispatchLanesMax; i += group_.size()) seen_.tails[i] = 0;
    group_.sync();
  }

  /// Team 0: hands queries out until the pool is to end or, where AnswersInline, one comes alone; says which.
  HEADRACE_HD Drawn hand_out() {
    lone_ = {};
    while (read_tails()) {
      base_ = base_ + group_.kTeam <= view_.lane_count ? base_ + group_.kTeam : 0;
      if constexpr (AnswersInline) {
        if (lone_.count != 0) return {lone_.lane, lone_.from, 0, 0};
      }
    }
    return {0, 0, 0, 1};
  }

 private:
  struct Seen {
    std::uint32_t tails[kDispatchLanesMax];  ///< Queries of each lane that are in the queue, modulo 2^32.
  };
  /// Queries of one lane that are not in the queue yet, and their place in it.
  struct Fresh {
    std::uint32_t lane;
    std::uint32_t from;
    std::uint32_t count;
    std::uint32_t before;  ///< Tickets of this round that other lanes have.
  };
  static constexpr std::uint32_t kReadsPerHeartbeat = 64;
  static constexpr std::uint32_t kRoundsPerStop = Group::kTeam;  ///< Where each word is a read of its own: 1.
  static constexpr std::uint32_t kIdleReads = 1024;  ///< Reads that find nothing, more than 1 ms, before it rests.
  static constexpr std::uint32_t kIdlePauseNs = 500;
  /// Reads in a row that find nothing before a query counts as alone. While block 0 answers, nobody hands queries out,
  /// so under load it must not; two reads take about as long as a short answer.
  static constexpr std::uint32_t kQuietReads = 2;

  /// Reads a team's width of tails from lane `base_` on, and puts what is new into the queue; false once the host wants
  /// the pool to end. The stop word lies behind the last tail; it is read now and then only, since a read is as slow as
  /// the slowest of its lines.
  HEADRACE_HD bool read_tails() {
    const std::uint32_t lane = base_ + group_.team_rank();
    if (base_ == 0) ++rounds_;
    const std::uint32_t words = view_.lane_count + (rounds_ % kRoundsPerStop == 0 ? 1 : 0);
    const std::uint32_t tail = lane < words ? load_tail(view_.tails[lane * DispatchView::kTailStride]) : 0;
    if (group_.rank() == 0 && ++reads_ % kReadsPerHeartbeat == 0) {
      group_.store_relaxed(*view_.heartbeat, reads_);  // the host's watchdog reads it
    }
    const std::uint32_t from = lane < view_.lane_count ? seen_.tails[lane] : 0;
    const bool stop = lane == view_.lane_count && tail != 0;
    const std::uint32_t count = lane < view_.lane_count ? tail - from : 0;
    const std::uint32_t found = group_.team_ballot(count != 0 || stop);
    if (found == 0) {
      if (++idle_ > kIdleReads) group_.pause_ns(kIdlePauseNs);
      group_.relax_briefly();
      return true;
    }
    if (group_.team_any(stop)) return false;
    const bool quiet = idle_ >= kQuietReads;
    idle_ = 0;
    if (count != 0) seen_.tails[lane] = tail;
    Fresh mine{lane, from, count, 0};
    std::uint32_t total = 0;
    if ((found & (found - 1)) == 0) {
      const std::uint32_t rank = group_.lowest_bit(found);
      total = group_.team_from(count, rank);  // of one lane alone, as when there is little to do
      if constexpr (AnswersInline) {
        if (quiet && total == 1) {
          lone_ = {base_ + rank, group_.team_from(from, rank), 1, 0};
          if (group_.team_rank() == 0) note_seen(lone_.lane, lone_.from);
          return true;
        }
      }
    } else {
      mine.before = group_.team_sum_before(count, total);
    }
    if (!make_room(published_ + total)) return false;
    for (std::uint32_t left = found; left != 0; left &= left - 1) publish_of(mine, left);
    published_ += total;
    return true;
  }

  /// Pairs with DirectLane::submit. What is handed on is ordered by docs/decisions/0008, and what block 0 answers by
  /// the acquire and the barrier of the block.
  [[nodiscard]] HEADRACE_HD std::uint32_t load_tail(const std::uint32_t& tail) const {
    if constexpr (AnswersInline) {
      return group_.load(tail);
    } else {
      return group_.load_relaxed(tail);
    }
  }

  HEADRACE_HD void note_seen(std::uint32_t lane, std::uint32_t position) const {
    if (view_.sampled(position)) view_.seen_at[view_.slot(lane, position)] = group_.clock_ns();
  }

  /// Before entries are written up to that of ticket `end` - 1: waits for the blocks whose entries they replace; false
  /// when the host wants the pool to end. A block may have drawn its ticket long ago and not yet looked, while others
  /// took a whole round of the queue. They have drawn, because no more queries wait than half the queue has entries;
  /// so all that is waited for is that they look, and mostly they have. The team goes on or ends as one.
  [[nodiscard]] HEADRACE_HD bool make_room(std::uint64_t end) {
    for (; view_.half(end - 1) >= closed_; ++closed_) {
      const std::uint32_t wanted = view_.taken_before(closed_);
      while (group_.team_any(group_.load_on_device(view_.taken_in(closed_)) != wanted)) {
        const std::uint32_t stop = group_.load_relaxed(view_.tails[view_.lane_count * DispatchView::kTailStride]);
        if (group_.team_any(stop != 0)) return false;
        group_.relax_briefly();
      }
    }
    return true;
  }

  /// The whole team: puts the queries into the queue that the thread of the lowest bit of `left` has found. No fence
  /// stands between a tail and its entries: docs/decisions/0008.
  HEADRACE_HD void publish_of(const Fresh& mine, std::uint32_t left) {
    const Fresh fresh = group_.team_from(mine, group_.lowest_bit(left));
    for (std::uint32_t i = group_.team_rank(); i < fresh.count; i += group_.kTeam) {
      const std::uint64_t ticket = published_ + fresh.before + i;
      const std::uint32_t position = fresh.from + i;
      note_seen(fresh.lane, position);
      group_.store_relaxed_on_device(view_.entry_at(ticket), view_.entry(ticket, fresh.lane, position));
    }
  }

  Group group_;
  const DispatchView& view_;
  Seen& seen_;
  Fresh lone_{};            ///< The query that hand_out() ends with.
  std::uint32_t base_ = 0;  ///< The first lane of the next read.
  std::uint32_t reads_ = 0;
  std::uint32_t rounds_ = 0;     ///< Through all tails.
  std::uint32_t idle_ = 0;       ///< Reads in a row that found nothing.
  std::uint64_t published_ = 0;  ///< Tickets given to queries.
  std::uint64_t closed_ = 2;     ///< The first half of the queue, counted on, that may not be written yet.
};

/// Every other block.
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
      Drawn drawn{};
      if (group_.rank() == 0) drawn = draw();
      drawn = group_.broadcast(drawn);
      if (drawn.leave != 0) return;
      if (view_.blocks == 1) {
        answer_alone(drawn);
      } else {
        answer_part(drawn);
      }
    }
  }

  /// The thread of rank 0: the next part that nobody has, once it is there.
  [[nodiscard]] HEADRACE_HD Drawn draw() const {
    const std::uint64_t number = group_.fetch_add_relaxed_on_device(*view_.next_ticket, std::uint64_t{1});
    const std::uint64_t ticket = view_.blocks == 1 ? number : number / view_.blocks;
    for (std::uint32_t poll = 0;; ++poll) {
      if (poll % kPollsPerLook == 0 && group_.load_on_device(*view_.leave) != 0) return {0, 0, 0, 1};
      const std::uint64_t entry = group_.load_on_device(view_.entry_at(ticket));
      if (view_.is_for(entry, ticket)) {
        // Pairs with make_room(). That the entry is read is what this depends on, so it needs no release.
        group_.fetch_add_relaxed_on_device(view_.taken_in(view_.half(ticket)), std::uint32_t{1});
        return {static_cast<std::uint32_t>(entry >> 32) & 0xFFFF, static_cast<std::uint32_t>(entry),
                static_cast<std::uint32_t>(number - ticket * view_.blocks), 0};
      }
      group_.pause_ns(kPauseNs);
    }
  }

  /// One block answers the whole query.
  HEADRACE_HD void answer_alone(const Drawn& drawn) {
    const std::uint32_t slot = view_.slot(drawn.lane, drawn.position);
    const bool stamped = sampled(drawn);
    DispatchStamps stamps{};
    if (stamped) stamps.taken = group_.clock_ns();
    const void* query = view_.queries + std::size_t{slot} * view_.query_stride;
    if (view_.query_bytes <= kStagedBytesMax) {
      auto& stage = group_.template shared<Stage>();
      copy_bytes(group_, &stage, query, view_.query_bytes);
      query = &stage;
      group_.sync();
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
  struct alignas(16) Stage {
    unsigned char bytes[kStagedBytesMax];
  };
  struct alignas(16) ShortAnswer {
    unsigned char bytes[kSealedBytesMax];
  };
  static constexpr std::uint32_t kPollsPerLook = 64;
  static constexpr std::uint32_t kPauseNs = 40;

  [[nodiscard]] HEADRACE_HD bool sealed() const { return view_.done == nullptr; }
  [[nodiscard]] HEADRACE_HD bool sampled(const Drawn& drawn) const {
    return drawn.part == 0 && view_.sampled(drawn.position);
  }

  /// Several blocks write to device memory; the last of them hands the whole to the host.
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

  /// @param whole  the answer, where it goes back sealed; else it is in the slot already
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

  /// Four bytes of the answer from `at` on; zeros behind its end.
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
      to.seen = view_.seen_at[slot];
      to.taken = stamps.taken;
      to.staged = stamps.staged;
      group_.store(to.computed, stamps.computed);
      group_.fence_system();  // the answer comes after
    }
    group_.sync();
  }

  Group group_;
  const State& state_;
  const DispatchView& view_;
};

/// Tells the other blocks to leave when block 0 does, be it because an operator throws there (on a CPU device).
template <class Group>
class Leaving {
 public:
  HEADRACE_HD Leaving(Group group, const DispatchView& view) : group_(group), view_(view) {}
  Leaving(const Leaving&) = delete;
  Leaving& operator=(const Leaving&) = delete;
  HEADRACE_HD ~Leaving() {
    if (group_.block() == 0 && group_.rank() == 0) group_.store_on_device(*view_.leave, std::uint32_t{1});
  }

 private:
  Group group_;
  const DispatchView& view_;
};

}  // namespace detail

/// The pool: one launch of 1 + workers blocks that stays until its stop word is set.
template <class Op>
struct DispatchBody {
  static constexpr const char* kName = Op::kName;

  template <class Group>
  HEADRACE_HD static void run(Group group, typename Op::State state, DispatchView view) {
    if (group.block() == 0) {
      detail::Dispatcher<Group, false> dispatcher(group, view);
      dispatcher.begin();
      if (group.team() != 0) return;
      static_cast<void>(dispatcher.hand_out());
      if (group.team_rank() == 0) group.store_on_device(*view.leave, std::uint32_t{1});
    } else {
      detail::Worker<Op, Group>(group, state, view).run();
    }
  }
};

/// The pool of Plan::answer_inline: block 0 answers a query that comes alone itself, which spares the way through the
/// queue. A kernel of its own, because that takes more registers. One block answers a query.
template <class Op>
struct InlineDispatchBody {
  static constexpr const char* kName = Op::kName;

  template <class Group>
  HEADRACE_HD static void run(Group group, typename Op::State state, DispatchView view) {
    const detail::Leaving<Group> leaving(group, view);
    detail::Dispatcher<Group, true> dispatcher(group, view);
    detail::Worker<Op, Group> worker(group, state, view);
    if (group.block() == 0) dispatcher.begin();
    for (;;) {
      detail::Drawn drawn{};
      if (group.block() != 0) {
        if (group.rank() == 0) drawn = worker.draw();
      } else if (group.team() == 0) {
        drawn = dispatcher.hand_out();
      }
      drawn = group.broadcast(drawn);  // where the other teams of block 0 wait
      if (drawn.leave != 0) return;
      worker.answer_alone(drawn);
    }
  }
};

}  // namespace headrace::serve
