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
    staged,   ///< A query that is in the block's Stage.
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

  /// Every thread of the block: the next part of a query for it, or the end of the pool.
  [[nodiscard]] HEADRACE_HD Drawn next() {
    Drawn drawn{};
    if (group_.rank() == 0) drawn = draw();
    drawn = group_.broadcast(drawn);
    return drawn.is(Drawn::What::guess) ? look_ahead(drawn) : drawn;
  }

 private:
  static constexpr Drawn kNothing{Drawn::What::nothing, 0, 0, 0};
  static constexpr std::uint32_t kPollsPerLook = 64;
  static constexpr std::uint32_t kPauseNs = 40;
  /// Polls, some 0.4 us each, for which a ticket must have been the next one before its block looks ahead: far more
  /// than pass between the queries of a busy pool, where whoever reads ahead would keep a query waiting.
  static constexpr std::uint32_t kPollsPerGuess = 16;
  static constexpr std::uint32_t kUnitsAtOnce = 2;    ///< That a thread reads before it looks at the first.
  static constexpr std::uint32_t kIdleRounds = 1024;  ///< Of look_ahead(), more than 1 ms, before it rests.
  static constexpr std::uint32_t kIdlePauseNs = 500;

  /// Takes a ticket, and waits until there is an entry for it or a guess.
  [[nodiscard]] HEADRACE_HD Drawn draw() {
    const std::uint64_t number = group_.fetch_add_relaxed_on_device(*view_.next_ticket, std::uint64_t{1});
    ticket_ = view_.blocks == 1 ? number : number / view_.blocks;
    part_ = static_cast<std::uint32_t>(number - ticket_ * view_.blocks);
    bool was_next = false;
    for (std::uint32_t poll = 0;; ++poll) {
      const Drawn drawn = look(poll);
      if (!drawn.is(Drawn::What::nothing)) return drawn;
      if (view_.alone != nullptr && poll % kPollsPerGuess == kPollsPerGuess - 1) {
        const Drawn expected = guess();
        if (was_next && !expected.is(Drawn::What::nothing)) return expected;
        was_next = !expected.is(Drawn::What::nothing);
      }
      group_.pause_ns(kPauseNs);
    }
  }

  /// What has come of the ticket, when it is looked at for the `poll`th time.
  [[nodiscard]] HEADRACE_HD Drawn look(std::uint32_t poll) const {
    if (poll % kPollsPerLook == 0 && group_.load_on_device(*view_.leave) != 0) return {Drawn::What::leave, 0, 0, 0};
    const std::uint64_t entry = group_.load_on_device(view_.entry_at(ticket_));
    return view_.is_for(entry, ticket_) ? take(entry) : kNothing;
  }

  /// Pairs with Dispatcher::make_room(). That the entry has been read is what this depends on, so it needs no release.
  [[nodiscard]] HEADRACE_HD Drawn take(std::uint64_t entry) const {
    group_.fetch_add_relaxed_on_device(view_.taken_in(view_.half(ticket_)), std::uint32_t{1});
    return {Drawn::What::query, DispatchView::lane_of(entry), DispatchView::position_of(entry), part_};
  }

  /// The query that this ticket will get if the lane asks again that has asked the last two; nothing for a ticket that
  /// is not the next.
  [[nodiscard]] HEADRACE_HD Drawn guess() const {
    if (ticket_ < 2) return kNothing;
    const std::uint64_t last = group_.load_on_device(view_.entry_at(ticket_ - 1));
    if (!view_.is_for(last, ticket_ - 1)) return kNothing;
    const std::uint64_t before = group_.load_on_device(view_.entry_at(ticket_ - 2));
    const std::uint32_t lane = DispatchView::lane_of(last);
    if (!view_.is_for(before, ticket_ - 2) || DispatchView::lane_of(before) != lane) return kNothing;
    return {Drawn::What::guess, lane, DispatchView::position_of(last) + 1, 0};
  }

  /// Every thread of the block: reads the units of the query that is expected until all hold it, and looks for the
  /// entry meanwhile. A unit's sequence vouches for its data, and the entry says whose the query is; so nothing depends
  /// on the order in which units, tail and entry are read. A unit could hold the same sequence from 2^32 queries ago:
  /// none counts that was not seen without it first.
  [[nodiscard]] HEADRACE_HD Drawn look_ahead(const Drawn& expected) {
    std::uint64_t entry = 0;  // this and `leaves` are of rank 0
    bool leaves = false;
    const auto arrived = [&](std::uint32_t round) {
      if (group_.rank() != 0) return false;
      leaves = round % kPollsPerLook == 0 && group_.load_relaxed(*view_.leave) != 0;
      entry = group_.load_relaxed(view_.entry_at(ticket_));
      return leaves || view_.is_for(entry, ticket_);
    };
    bool fresh = true;
    bool whole = false;
    for (std::uint32_t round = 0;; ++round) {
      bool ends = false;
      bool held = true;
      if (whole) {
        ends = arrived(round);
      } else {
        held = read_units(expected, round == 0, fresh, [&] { ends = arrived(round); });
      }
      whole = !group_.any(!held);
      if (group_.any(ends)) break;
      if (round > kIdleRounds) group_.pause_ns(kIdlePauseNs);
      group_.relax_briefly();
    }
    Drawn drawn{};
    if (group_.rank() == 0) {
      drawn = leaves ? Drawn{Drawn::What::leave, 0, 0, 0} : take(entry);
      if (whole && !leaves && drawn.lane == expected.lane && drawn.position == expected.position) {
        drawn.what = Drawn::What::staged;
      } else {
        static_cast<void>(group_.load_on_device(view_.entry_at(ticket_)));  // the acquire before its query is read
      }
    }
    return group_.broadcast(drawn);
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

  Group group_;
  const DispatchView& view_;
  std::uint64_t ticket_ = 0;  ///< Of rank 0.
  std::uint32_t part_ = 0;
};

}  // namespace headrace::serve::detail
