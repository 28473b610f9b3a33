#pragma once

#include <cstdint>

#include "headrace/device/detail/resident_blocks.hpp"
#include "headrace/device/group.hpp"
#include "headrace/serve/detail/dispatch.hpp"
#include "headrace/serve/detail/lone_query.hpp"

/// The block that hands out queries in the pool of Schedule::dispatched.
namespace headrace::serve::detail {

/// Block 0 of the pool: one team of it reads the tails, one read at a time. Further reads of the same line wait for the
/// first, and reads of copies in other lines or by other teams did not return newer values. With AnswersInline, block 0
/// answers a lone query itself instead of handing it out.
template <class Group, bool AnswersInline>
class Dispatcher {
 public:
  HEADRACE_HD Dispatcher(Group group, const DispatchView& view)
      : group_(group),
        view_(view),
        seen_(group.template shared<Seen>()),
        copy_(group, view),
        published_(view.first_ticket) {}

  /// Every thread of block 0 calls it first.
  HEADRACE_HD void begin() {
    for (std::uint32_t i = group_.rank(); i < view_.lane_count; i += group_.size()) {
      seen_.tails[i] = view_.first_tails[i];
    }
    group_.sync();
  }

  /// Called by team 0. Hands queries out until the pool must end or, with AnswersInline, a lone query has arrived or is
  /// expected. Returns which.
  HEADRACE_HD Drawn hand_out() {
    for (bool now = alone_;; now = idle_ == kRoundsBeforeWatch * reads_a_round()) {
      if constexpr (AnswersInline) {
        alone_ = false;
        if (now && steady_ && view_.lone != nullptr) {
          const std::uint32_t owner = lane_ % group_.kTeam;  // the thread that wrote it; there was no barrier since
          const std::uint32_t next = group_.team_rank() == owner ? seen_.tails[lane_] : 0;
          return {Drawn::What::expected, lane_, group_.team_from(next, owner), 0};
        }
      }
      const Drawn drawn = read_tails();
      if (!drawn.is(Drawn::What::nothing)) return drawn;
    }
  }

  /// Every thread of block 0 calls it, with AnswersInline. Hands queries out until there is one for block 0 itself, or
  /// the pool must end.
  [[nodiscard]] HEADRACE_HD Drawn next() {
    for (;;) {
      Drawn drawn{};
      if (group_.team() == 0) drawn = hand_out();
      drawn = group_.broadcast(drawn);  // the other teams wait here
      if (drawn.is(Drawn::What::expected)) drawn = watch(drawn);
      if (!drawn.is(Drawn::What::nothing)) return drawn;
    }
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
    std::uint32_t before;  ///< Tickets of this round that belong to lanes before it.
  };
  static constexpr std::uint32_t kReadsPerHeartbeat = 64;
  static constexpr std::uint32_t kRoundsPerStop = Group::kTeam;  ///< 1 if each word is a read of its own.
  /// Rounds through all tails that find nothing before a query counts as lone. While block 0 answers, no block hands
  /// queries out, so under load it must not answer.
  static constexpr std::uint32_t kQuietRounds = 1;
  /// Rounds before block 0 polls for the next query, which makes each read longer, if the last query was not a lone
  /// one.
  static constexpr std::uint32_t kRoundsBeforeWatch = 4;

  /// Every thread of the block calls it. Reads the copy of the expected query together with the tails, until all of it
  /// has arrived or a tail changes. A unit's sequence validates its data, so the order of these reads does not matter.
  /// A unit from 2^32 queries ago has the same sequence: if any unit has it from the start, block 0 does not watch.
  [[nodiscard]] HEADRACE_HD Drawn watch(const Drawn& expected) {
    bool none_before = copied_last_;
    copied_last_ = false;
    for (;; none_before = true) {
      Drawn drawn{};
      const auto found = copy_.read(expected.lane, expected.position + 1, [&] {
        if (group_.team() == 0) drawn = read_tails();
      });
      const bool there = none_before ? !group_.any(!found.all) : group_.any(found.any);
      const bool told = group_.any(group_.rank() == 0 && idle_ == 0);
      if (!told && !there) continue;
      if (told) drawn = group_.broadcast(drawn);
      const bool same = drawn.lane == expected.lane && drawn.position == expected.position;
      if (!(there && none_before) || (told && !(same && drawn.is(Drawn::What::query)))) return drawn;
      if (!told && group_.rank() == 0) {
        seen_.tails[expected.lane] = expected.position + 1;
        note_seen(expected.lane, expected.position);
      }
      idle_ = 0;
      alone_ = copied_last_ = true;
      return {Drawn::What::held, expected.lane, expected.position, 0};
    }
  }

  [[nodiscard]] HEADRACE_HD std::uint32_t reads_a_round() const { return view_.lane_count / group_.kTeam + 1; }

  /// Reads as many tails as a team has threads, and puts new queries into the queue. Returns `leave` once the host ends
  /// the pool. With AnswersInline, returns a lone query, which is then not in the queue. Otherwise returns `nothing`.
  /// The stop word lies behind the last tail and is read only now and then, because a read is as slow as the slowest of
  /// its lines.
  HEADRACE_HD Drawn read_tails() {
    const std::uint32_t base = base_;
    base_ = base + group_.kTeam <= view_.lane_count ? base + group_.kTeam : 0;
    const std::uint32_t lane = base + group_.team_rank();
    if (base == 0) ++rounds_;
    const std::uint32_t words = view_.lane_count + (rounds_ % kRoundsPerStop == 0 ? 1 : 0);
    const std::uint32_t tail = lane < words ? load_tail(view_.tails[lane * DispatchView::kTailStride]) : 0;
    if (group_.rank() == 0 && ++reads_ % kReadsPerHeartbeat == 0) {
      group_.store_relaxed(*view_.heartbeat, reads_);  // the host's watchdog reads it
    }
    const std::uint32_t from = lane < view_.lane_count ? seen_.tails[lane] : 0;
    const bool stop = lane == view_.lane_count && tail != 0;
    const std::uint32_t count = lane < view_.lane_count ? fresh(tail, from) : 0;
    const std::uint32_t found = group_.team_ballot(count != 0 || stop);
    if (found == 0) {
      headrace::detail::rest_between_reads(group_, ++idle_);
      return {};
    }
    const bool quiet = idle_ >= kQuietRounds * reads_a_round();
    idle_ = 0;
    if (group_.team_any(stop)) return {Drawn::What::leave, 0, 0, 0};
    if (count != 0) seen_.tails[lane] = tail;
    Fresh mine{lane, from, count, 0};
    std::uint32_t total = 0;
    if ((found & (found - 1)) == 0) {
      const std::uint32_t rank = group_.lowest_bit(found);
      total = group_.team_from(count, rank);  // the count of one lane only, the usual case under low load
      if constexpr (AnswersInline) {
        steady_ = lane_ == base + rank;
        lane_ = base + rank;
        alone_ = quiet && total == 1;
        if (alone_) {
          const Drawn drawn{Drawn::What::query, lane_, group_.team_from(from, rank), 0};
          if (group_.team_rank() == 0) note_seen(drawn.lane, drawn.position);
          return drawn;
        }
      }
    } else {
      mine.before = group_.team_sum_before(count, total);
    }
    if (!make_room(published_ + total)) return {Drawn::What::leave, 0, 0, 0};
    for (std::uint32_t left = found; left != 0; left &= left - 1) publish_of(mine, left);
    published_ += total;
    return {};
  }

  /// Queries of a lane that have not been handed out. If block 0 took a query before its tail announced it, `from` is
  /// past the tail.
  [[nodiscard]] HEADRACE_HD static std::uint32_t fresh(std::uint32_t tail, std::uint32_t from) {
    const std::uint32_t count = tail - from;
    if constexpr (AnswersInline) return count >> 31 != 0 ? 0 : count;
    return count;
  }

  /// Pairs with DirectLane::submit. docs/decisions/0008 explains the order for queries that are handed out. For queries
  /// that block 0 answers, the acquire and the barrier of the block order it.
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

  /// Called before entries up to that of ticket `end` - 1 are written. Waits for the blocks whose entries they replace;
  /// false if the host ends the pool. A block may have drawn its ticket long ago and not read its entry yet, while
  /// others took a whole round of the queue. All these blocks have drawn, because no more queries wait than half the
  /// queue has entries. So it waits only until they read their entries, and usually they have. The team continues or
  /// ends as one.
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

  /// The whole team calls it. Puts the queries that the thread of the lowest bit of `left` has found into the queue.
  /// There is no fence between a tail and its entries: docs/decisions/0008.
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
  LoneQuery<Group> copy_;
  std::uint32_t lane_ = 0;    ///< With AnswersInline: the lane of the last query.
  bool steady_ = false;       ///< That lane also had the query before it.
  bool alone_ = false;        ///< The last query was a lone one.
  bool copied_last_ = false;  ///< The last query was read from its copy, so no unit can have the next sequence yet.
  std::uint32_t base_ = 0;    ///< The first lane of the next read.
  std::uint32_t reads_ = 0;
  std::uint32_t rounds_ = 0;  ///< Rounds through all tails.
  std::uint32_t idle_ = 0;    ///< Reads in a row that found nothing.
  std::uint64_t published_;   ///< Tickets given to queries.
  std::uint64_t closed_ = 2;  ///< The first half of the queue, counted through all rounds, that may not be written yet.
};

}  // namespace headrace::serve::detail
