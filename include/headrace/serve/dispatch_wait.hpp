#pragma once

#include <cstdint>
#include <cstring>

#include "headrace/device/group.hpp"
#include "headrace/serve/dispatch.hpp"

/// How a block of a dispatched pool comes to its next query.
namespace headrace::serve::detail {

/// What a block has drawn.
struct Drawn {
  enum class What : std::uint32_t {
    nothing,  ///< Nothing yet.
    guess,    ///< A query that is expected next, but not known to be there.
    query,    ///< A query, or a part of one.
    ahead,    ///< A query that is in the block's Stage, and that it was not told of: see confirm().
    leave,    ///< The end of the pool.
  };
  What what;
  std::uint32_t lane;
  std::uint32_t position;
  std::uint32_t part;

  [[nodiscard]] HEADRACE_HD bool is(What other) const { return what == other; }
};

/// A block's own copy of its query.
struct alignas(16) Stage {
  unsigned char bytes[kStagedBytesMax + SealedUnit::kDataBytes];  ///< A query's last unit may be filled up.
};

/// Draws a ticket for the block and waits for its entry.
template <class Group>
class TicketWait {
 public:
  HEADRACE_HD TicketWait(Group group, const DispatchView& view) : group_(group), view_(view) {}

  /// Every thread of the block, once, before anything else.
  HEADRACE_HD void begin() {
    if (group_.rank() == 0) kept().drawn = kNothing;
  }

  /// Every thread of the block: the next part of a query for it, or the end of the pool.
  [[nodiscard]] HEADRACE_HD Drawn next() {
    Drawn drawn{};
    if (group_.rank() == 0) drawn = draw();
    drawn = group_.broadcast(drawn);
    return drawn.is(Drawn::What::guess) ? look_ahead(drawn) : drawn;
  }

  /// Every thread of the block, once `ahead` is answered: whether that query was the block's. If not, next() gives what
  /// was.
  [[nodiscard]] HEADRACE_HD bool confirm(const Drawn& ahead) {
    bool right = false;
    if (group_.rank() == 0) {
      const Drawn drawn = await();
      right = drawn.is(Drawn::What::query) && drawn.lane == ahead.lane && drawn.position == ahead.position;
      if (!right) kept().drawn = drawn;
    }
    return group_.any(right);
  }

 private:
  /// What rank 0 knows of the block's ticket. Not in registers, of which operators can have too few.
  struct Kept {
    std::uint64_t ticket;
    std::uint32_t part;
    Drawn drawn;  ///< What the ticket was for, where something else was answered.
  };
  static constexpr Drawn kNothing{Drawn::What::nothing, 0, 0, 0};
  static constexpr std::uint32_t kPollsPerLook = 64;
  static constexpr std::uint32_t kPauseNs = 40;
  /// Polls, some 0.4 us each, for which a ticket must have been the next one before its block looks ahead: far more
  /// than pass between the queries of a busy pool, where whoever reads ahead would keep a query waiting.
  static constexpr std::uint32_t kPollsPerGuess = 16;
  static constexpr std::uint32_t kSameLane = 4;       ///< Queries in a row of the lane that is expected to go on.
  static constexpr std::uint32_t kUnitsAtOnce = 2;    ///< That a thread reads before it looks at the first.
  static constexpr std::uint32_t kIdleRounds = 1024;  ///< Of look_ahead(), more than 1 ms, before it rests.
  static constexpr std::uint32_t kIdlePauseNs = 500;

  /// Takes a ticket, and waits until there is an entry for it or a guess.
  [[nodiscard]] HEADRACE_HD Drawn draw() {
    if (const Drawn other = kept().drawn; !other.is(Drawn::What::nothing)) {
      kept().drawn = kNothing;
      return other;
    }
    const std::uint64_t number = group_.fetch_add_relaxed_on_device(*view_.next_ticket, std::uint64_t{1});
    const std::uint64_t ticket = view_.blocks == 1 ? number : number / view_.blocks;
    kept().ticket = ticket;
    kept().part = static_cast<std::uint32_t>(number - ticket * view_.blocks);
    bool was_next = false;
    for (std::uint32_t poll = 0;; ++poll) {
      const Drawn drawn = look(poll);
      if (!drawn.is(Drawn::What::nothing)) return drawn;
      if (view_.alone != nullptr && poll % kPollsPerGuess == kPollsPerGuess - 1) {
        const Drawn expected = guess(ticket);
        if (was_next && !expected.is(Drawn::What::nothing)) return expected;
        was_next = !expected.is(Drawn::What::nothing);
      }
      group_.pause_ns(kPauseNs);
    }
  }

  /// What the ticket is for, or the end of the pool, once there is one.
  [[nodiscard]] HEADRACE_HD Drawn await() const {
    for (std::uint32_t poll = 1;; ++poll) {
      const Drawn drawn = look(poll);
      if (!drawn.is(Drawn::What::nothing)) return drawn;
      group_.relax_briefly();
    }
  }

  /// What has come of the ticket, when it is looked at for the `poll`th time.
  [[nodiscard]] HEADRACE_HD Drawn look(std::uint32_t poll) const {
    if (poll % kPollsPerLook == 0 && group_.load_on_device(*view_.leave) != 0) return {Drawn::What::leave, 0, 0, 0};
    const std::uint64_t ticket = kept().ticket;
    const std::uint64_t entry = group_.load_on_device(view_.entry_at(ticket));
    if (!view_.is_for(entry, ticket)) return kNothing;
    // Pairs with Dispatcher::make_room(). That the entry is read is what this depends on, so it needs no release.
    group_.fetch_add_relaxed_on_device(view_.taken_in(view_.half(ticket)), std::uint32_t{1});
    return {Drawn::What::query, DispatchView::lane_of(entry), DispatchView::position_of(entry), kept().part};
  }

  /// The query that this ticket will get if the lane asks again that has asked the last few; nothing for a ticket that
  /// is not the next.
  [[nodiscard]] HEADRACE_HD Drawn guess(std::uint64_t ticket) const {
    if (ticket < kSameLane) return kNothing;
    const std::uint64_t last = group_.load_on_device(view_.entry_at(ticket - 1));
    if (!view_.is_for(last, ticket - 1)) return kNothing;
    const std::uint32_t lane = DispatchView::lane_of(last);
    for (std::uint32_t back = 2; back <= kSameLane; ++back) {
      const std::uint64_t before = group_.load_on_device(view_.entry_at(ticket - back));
      if (!view_.is_for(before, ticket - back) || DispatchView::lane_of(before) != lane) return kNothing;
    }
    return {Drawn::What::guess, lane, DispatchView::position_of(last) + 1, 0};
  }

  /// Every thread of the block: reads the units of the query that is expected until all hold it, or there is an entry.
  /// A unit's sequence vouches for its data, and confirm() for the query; so nothing depends on the order in which
  /// units, tail and entry are read. A unit could hold the same sequence from 2^32 queries ago: none counts that was
  /// not seen without it first.
  [[nodiscard]] HEADRACE_HD Drawn look_ahead(const Drawn& expected) {
    bool fresh = true;
    for (std::uint32_t round = 0;; ++round) {
      bool stirs = false;
      const bool held = read_units(expected, round == 0, fresh, [&] { stirs = group_.rank() == 0 && peek(round); });
      if (!group_.any(!held)) return {Drawn::What::ahead, expected.lane, expected.position, 0};
      if (group_.any(stirs)) break;
      if (round > kIdleRounds) group_.pause_ns(kIdlePauseNs);
      group_.relax_briefly();
    }
    Drawn drawn{};
    if (group_.rank() == 0) drawn = await();
    return group_.broadcast(drawn);
  }

  /// Whether look() would find something. Orders nothing, so that reads that are under way are not waited for.
  [[nodiscard]] HEADRACE_HD bool peek(std::uint32_t round) const {
    if (round % kPollsPerLook == 0 && group_.load_relaxed(*view_.leave) != 0) return true;
    const std::uint64_t ticket = kept().ticket;
    return view_.is_for(group_.load_relaxed(view_.entry_at(ticket)), ticket);
  }

  /// Reads this thread's units of the query into the stage, and calls `meanwhile` while the first are under way;
  /// whether all hold it.
  template <class Meanwhile>
  [[nodiscard]] HEADRACE_HD bool read_units(const Drawn& expected, bool first, bool& fresh, Meanwhile meanwhile) {
    auto& stage = group_.template shared<Stage>();
    const SealedUnit* const units = view_.alone + std::size_t{expected.lane} * view_.alone_stride;
    const std::uint32_t count = sealed_units(view_.query_bytes);
    const std::uint32_t sequence = expected.position + 1;
    bool held = true;
    for (std::uint32_t from = 0; from < count; from += kUnitsAtOnce * group_.size()) {
      SealedUnit read[kUnitsAtOnce] = {};
      for (std::uint32_t k = 0; k < kUnitsAtOnce; ++k) {
        const std::uint32_t i = from + k * group_.size() + group_.rank();
        if (i < count) read[k] = group_.load_unit(units[i]);  // pairs with DirectLane::seal
      }
      if (from == 0) meanwhile();
      for (std::uint32_t k = 0; k < kUnitsAtOnce; ++k) {
        const std::uint32_t i = from + k * group_.size() + group_.rank();
        if (i >= count) break;
        const bool holds = read[k].sequence == sequence;
        if (first && holds) fresh = false;
        held = held && holds;
        if (holds) memcpy(stage.bytes + std::size_t{i} * SealedUnit::kDataBytes, read[k].data, SealedUnit::kDataBytes);
      }
    }
    return held && fresh && !first;
  }

  [[nodiscard]] HEADRACE_HD Kept& kept() const { return group_.template shared<Kept>(); }

  Group group_;
  const DispatchView& view_;
};

}  // namespace headrace::serve::detail
