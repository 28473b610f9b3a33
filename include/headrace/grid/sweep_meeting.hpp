#pragma once

#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/grid/resident_view.hpp"
#include "headrace/grid/resident_wait.hpp"
#include "headrace/grid/sweep_region.hpp"

namespace headrace::grid {

/// What a pass has to do with the passes of neighbours, which run at the same time on other devices. Every wait is for
/// what a neighbour does without waiting for something later of this part, so none is for ever: that its pushes of a
/// cycle before have come, and that its pass of this cycle has begun. See docs/decisions/0018.
template <class Stencil>
struct SweepMeeting {
  using Value = typename Stencil::Value;

  /// A pass that pushes tells neighbours that it has begun: all that came before it is done, and nothing else reads the
  /// ghosts that they are going to write.
  template <class Group>
  HEADRACE_HD_APART static void begin(const Group& group, const SweepExchange& exchange) {
    if (exchange.cycle == 0 || group.block() != 0 || group.rank() != 0) return;
    const MeetingView& meeting = *exchange.meeting;
    for (std::uint32_t n = 0; n < meeting.neighbour_count; ++n) {
      group.store(meeting.neighbours[n].tell->border.cycle, exchange.cycle);
    }
    group.store_relaxed(meeting.words->beat, exchange.cycle);  // the host looks whether there is any
  }

  /// Until the pushes of all neighbours have come. All threads of the block call; false where it must leave.
  template <class Group>
  [[nodiscard]] HEADRACE_HD_APART static bool hear_pushed(const Group& group, const SweepExchange& exchange) {
    return exchange.awaited == 0 || hear(group, exchange, &ResidentMarks::pushed, exchange.awaited);
  }

  /// Stores into the ghosts of neighbours what they want of the cells that a team has just stored, and tells them so
  /// after the last of so many chunks of the border. All threads of the block call; false where it must leave.
  template <class Group>
  [[nodiscard]] HEADRACE_HD static bool push(const Group& group, const SweepPlaces& places,
                                             const SweepExchange& exchange, const SweepTask& task,
                                             std::int64_t chunks) {
    if (!hear(group, exchange, &ResidentMarks::border, exchange.cycle)) return false;
    group.sync();  // threads push what others of their team have stored
    const MeetingView& meeting = *exchange.meeting;
    for (std::uint32_t p = 0; task.some && p < meeting.piece_count; ++p) {
      push_piece(group, places, meeting.pieces[p], task.place);
    }
    group.fence_system();  // each thread's own stores, which go to another device
    group.sync();
    if (group.rank() != 0) return true;
    std::uint64_t& pushed = meeting.counters->pushed;
    if (group.fetch_add_on_device(pushed, std::uint64_t{1}) + 1 != static_cast<std::uint64_t>(chunks)) return true;
    group.store_relaxed_on_device(pushed, std::uint64_t{0});  // for the next pass
    for (std::uint32_t n = 0; n < meeting.neighbour_count; ++n) {
      group.store(meeting.neighbours[n].tell->pushed.cycle, exchange.cycle);
    }
    return true;
  }

 private:
  template <class Group>
  [[nodiscard]] HEADRACE_HD static bool hear(const Group& group, const SweepExchange& exchange,
                                             ResidentMark ResidentMarks::* mark, std::uint64_t cycle) {
    const MeetingView& meeting = *exchange.meeting;
    for (std::uint32_t n = 0; n < meeting.neighbour_count; ++n) {
      const std::uint64_t& heard = (meeting.neighbours[n].heard->*mark).cycle;
      if (!ResidentWait::until<false>(group, meeting, heard, cycle, ResidentWords::kNeighbour + n)) return false;
    }
    return true;
  }

  template <class Group>
  HEADRACE_HD static void push_piece(const Group& group, const SweepPlaces& places, const ResidentPiece& piece,
                                     const StripPlace& stored) {
    std::int32_t first[3];
    std::int32_t size[3];
    for (int axis = 0; axis < 3; ++axis) {
      const std::int32_t low = axis < 2 ? stored.low[axis] : stored.z;
      const std::int32_t high = axis < 2 ? stored.high[axis] : stored.z + 1;
      first[axis] = (piece.low[axis] > low ? piece.low[axis] : low) - piece.low[axis];
      size[axis] = smaller(piece.copy.size[axis], high - piece.low[axis]) - first[axis];
      if (size[axis] <= 0) return;
    }
    const std::int64_t slot = places.to[piece.field];
    const Value* from = reinterpret_cast<const Value*>(piece.copy.from + slot * piece.from_stride_bytes) +
                        first[2] * piece.copy.from_plane;
    Value* to = reinterpret_cast<Value*>(piece.copy.to + slot * piece.to_stride_bytes) + first[2] * piece.copy.to_plane;
    const std::int32_t count = size[0] * size[1];
    for (auto i = static_cast<std::int32_t>(group.team_rank()); i < count;
         i += static_cast<std::int32_t>(Group::kTeam)) {
      const std::int64_t x = first[0] + i % size[0];
      const std::int64_t y = first[1] + i / size[0];
      to[x + y * piece.copy.to_pitch] = from[x + y * piece.copy.from_pitch];
    }
  }

  [[nodiscard]] HEADRACE_HD static constexpr std::int32_t smaller(std::int32_t a, std::int32_t b) noexcept {
    return a < b ? a : b;
  }
};

}  // namespace headrace::grid
