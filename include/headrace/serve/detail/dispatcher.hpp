#pragma once

#include <cstdint>

#include "headrace/device/detail/resident_blocks.hpp"
#include "headrace/device/group.hpp"
#include "headrace/serve/detail/dispatch.hpp"
#include "headrace/serve/detail/lone_query.hpp"

/// The block that hands queries out in the pool of Schedule::dispatched.
namespace headrace::serve::detail {

/// Block 0 of the pool: one team of it reads the tails. One read at a time: further reads of the same line wait for the
/// first, and reads of copies in other lines or by other teams made what they find no younger. Where AnswersInline, a
/// query that comes alone is not handed out, but answered by block 0.
template <class Group, bool AnswersInline>
class Dispatcher {
 public:
  HEADRACE_HD Dispatcher(Group group, const DispatchView& view)
      : group_(group),
        view_(view),
        seen_(group.template shared<Seen>()),
        copy_(group, view),
        published_(view.first_ticket) {}

  /// Every thread of block 0, first.
  HEADRACE_HD void begin() {
    for (std::uint32_t i = group_.rank(); i < view_.lane_count; i += group_.size()) {
      seen_.tails[i] = view_.first_tails[i];
    }
    group_.sync();
  }

  /// Team 0: hands queries out until the pool is to end or, where AnswersInline, one comes alone or is expected; says
  /// which.
  HEADRACE_HD Drawn hand_out() {
    for (bool now = alone_;; now = idle_ == kRoundsBeforeWatch * reads_a_round()) {
      if constexpr (AnswersInline) {
        alone_ = false;
        if (now && steady_ && view_.lone != nullptr) {
          const std::uint32_t owner = lane_ % group_.kTeam;  // the thread that wrote it, with no barrier since
          const std::uint32_t next = group_.team_rank() == owner ? seen_.tails[lane_] : 0;
          return {Drawn::What::expected, lane_, group_.team_from(next, owner), 0};
        }
      }
      const Drawn drawn = read_tails();
      if (!drawn.is(Drawn::What::nothing)) return drawn;
    }
  }

  /// Every thread of block 0, where AnswersInline: hands queries out until there is one for block 0 itself, or the pool
  /// is to end.
  [[nodiscard]] HEADRACE_HD Drawn next() {
    for (;;) {
      Drawn drawn{};
      if (group_.team() == 0) drawn = hand_out();
      drawn = group_.broadcast(drawn);  // where the other teams wait
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
    std::uint32_t before;  ///< Tickets of this round that other lanes have.
  };
  static constexpr std::uint32_t kReadsPerHeartbeat = 64;
  static constexpr std::uint32_t kRoundsPerStop = Group::kTeam;  ///< Where each word is a read of its own: 1.
  /// Rounds through all tails that find nothing before a query counts as alone. While block 0 answers, nobody hands
  /// queries out, so under load it must not.
  static constexpr std::uint32_t kQuietRounds = 1;
  /// And before the next query is looked for, which makes each read longer, where the last did not come alone.
  static constexpr std::uint32_t kRoundsBeforeWatch = 4;

  /// Every thread of the block: reads the copy of the query that is expected together with the tails, until all of it
  /// is there or a tail says something. A unit's sequence vouches for its data, so nothing depends on the order of
  /// these reads. A unit of 2^32 queries ago has the same sequence: if any has it from the start, nobody watches.
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

  /// Reads a team's width of tails, and puts what is new into the queue. Gives `leave` once the host wants the pool to
  /// end and, where AnswersInline, the query that came alone, which is then not in the queue; else `nothing`. The stop
  /// word lies behind the last tail; it is read now and then only, since a read is as slow as the slowest of its lines.
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
      total = group_.team_from(count, rank);  // of one lane alone, as when there is little to do
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

  /// Queries of a lane that have not been handed out. What block 0 had before it was told of is behind its tail.
  [[nodiscard]] HEADRACE_HD static std::uint32_t fresh(std::uint32_t tail, std::uint32_t from) {
    const std::uint32_t count = tail - from;
    if constexpr (AnswersInline) return count >> 31 != 0 ? 0 : count;
    return count;
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
  LoneQuery<Group> copy_;
  std::uint32_t lane_ = 0;    ///< The lane that had a query last, where AnswersInline.
  bool steady_ = false;       ///< And the last but one, too.
  bool alone_ = false;        ///< And the last one came alone.
  bool copied_last_ = false;  ///< And it was read from its copy, so that no unit can have the next sequence yet.
  std::uint32_t base_ = 0;    ///< The first lane of the next read.
  std::uint32_t reads_ = 0;
  std::uint32_t rounds_ = 0;  ///< Through all tails.
  std::uint32_t idle_ = 0;    ///< Reads in a row that found nothing.
  std::uint64_t published_;   ///< Tickets given to queries.
  std::uint64_t closed_ = 2;  ///< The first half of the queue, counted on, that may not be written yet.
};

}  // namespace headrace::serve::detail
