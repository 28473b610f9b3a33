#pragma once

#include <cstdint>

#include "ingest/gather_body.hpp"
#include "ingest/resident_runs.hpp"
#include "ingest/resident_view.hpp"

namespace headrace::ingest::resident {

/// The slot of a stream; kNoSlot where it has none.
[[nodiscard]] HEADRACE_HD inline std::uint32_t slot_of(const View& view, std::uint32_t stream) {
  for (std::uint32_t slot = 0; slot < view.slots; ++slot) {
    if (view.streams[slot] == stream) return slot;
  }
  return kNoSlot;
}

/// Every thread: until `done()`, the same for all; false when it is to leave, or has waited for too long.
template <class Group, class Done>
[[nodiscard]] HEADRACE_HD bool wait_until(const Group& group, const View& view, Leave why, Done done) {
  std::uint64_t since = 0;
  while (!done()) {
    std::uint32_t go = 1;
    if (group.rank() == 0) {
      const std::uint64_t now = group.clock_ns();
      if (since == 0) since = now;
      if (now - since > view.wait_limit_ns) leave(group, view, why);
      if (group.load_on_device(view.relay[kLeave]) != 0) go = 0;
      group.relax();
    }
    if (group.broadcast(go) == 0) return false;
  }
  return true;
}

/// What the acknowledge role hands to the build role, and hears of it.
template <class Group>
class Parts {
 public:
  HEADRACE_HD Parts(const Group& group, const View& view, Window& window)
      : group_(group), view_(view), window_(window) {}

  /// Packets, of all that there were, of which nothing is needed any more.
  [[nodiscard]] HEADRACE_HD std::uint64_t copied() const { return copied_; }
  [[nodiscard]] HEADRACE_HD bool all_copied() const { return retired_ == batches_end_; }

  /// Every thread: hands over what was accepted of the window. False when it is to leave.
  [[nodiscard]] HEADRACE_HD bool list(const Runs<Group>& runs) {
    if (window_.taken == 0) return true;
    for (std::uint32_t p = group_.rank(); p < window_.piece_count; p += group_.size()) {
      Piece& piece = view_.scratch->pieces[p];
      piece.stream = slot_of(view_, piece.stream);
    }
    group_.sync();
    const auto teams = static_cast<std::uint32_t>(
        lesser((group_.block_count() - kControlBlocks) * (group_.size() / Group::kTeam), kSharersMax));
    const std::uint32_t share = share_of(window_.bytes, teams);
    std::uint32_t count = 0;
    for (std::uint32_t base = 0; base < window_.taken; base += group_.size()) {
      const std::uint32_t i = base + group_.rank();
      std::uint32_t own = 0;
      if (i < window_.taken) runs.for_each_part_of(i, share, [&](const Part&, const PartPlace&) { ++own; });
      std::uint32_t here = 0;
      const std::uint32_t before = count + group_.sum_before(own, here);
      if (i < window_.taken) window_.parts[i] = before;
      count += here;
    }
    constexpr std::uint32_t kMost = Group::kTeam == 1 ? kTeamParts : Group::kTeam;  // as gather() has it
    const std::uint32_t even = (count + teams - 1) / teams;
    const auto wanted = static_cast<std::uint32_t>(lesser(parts_of_team(window_.bytes, count), kMost));
    const auto per_team = static_cast<std::uint32_t>(lesser(wanted, even < 1 ? 1 : even));
    const std::uint32_t batches = count == 0 ? 1 : (count + per_team - 1) / per_team;  // one tells of the packets
    if (!make_room(count, batches)) return false;
    for (std::uint32_t i = group_.rank(); i < window_.taken; i += group_.size()) {
      std::uint64_t at = parts_end_ + window_.parts[i];
      runs.for_each_part_of(i, share, [&](const Part& part, const PartPlace& place) {
        view_.parts[at & view_.part_mask] = part;
        view_.places[at & view_.part_mask] = place;
        ++at;
      });
    }
    for (std::uint32_t b = group_.rank(); b < batches; b += group_.size()) {
      const std::uint32_t first = b * per_team;
      const std::uint64_t packets_end = runs.taken() + (b + 1 == batches ? window_.taken : 0);
      const std::uint32_t left = count - first;
      view_.batches[(batches_end_ + b) & view_.part_mask] = {packets_end, parts_end_ + first,
                                                             left < per_team ? left : per_team};
    }
    parts_end_ += count;
    batches_end_ += batches;
    group_.sync();
    if (group_.rank() == 0) group_.store_on_device(*view_.batches_end, batches_end_);  // pairs with Build::wait_for()
    return true;
  }

  /// Every thread: looks which batches have been copied, in order.
  HEADRACE_HD void retire() {
    if (all_copied()) return;
    if (group_.team() == 0) {
      std::uint64_t retired = retired_;
      for (std::uint32_t found = Group::kTeam; found == Group::kTeam; retired += found) {
        const std::uint64_t number = retired + group_.team_rank();
        const bool open = number >= batches_end_ || group_.load_on_device(view_.done[number & view_.part_mask]) !=
                                                        static_cast<std::uint32_t>(number) + 1;
        const std::uint32_t still = group_.team_ballot(open);
        found = still == 0 ? Group::kTeam : group_.lowest_bit(still);
      }
      if (group_.team_rank() == 0) window_.retired = retired;
    }
    group_.sync();
    const std::uint64_t retired = window_.retired;
    group_.sync();
    if (retired == retired_) return;
    retired_ = retired;
    const Batch& last = view_.batches[(retired_ - 1) & view_.part_mask];
    parts_retired_ = last.first + last.count;
    copied_ = last.packets_end;
  }

 private:
  /// Bytes of a part at most. What is little is shared by all teams, so that it is there after one round of loads; what
  /// is much keeps the link busy anyhow.
  [[nodiscard]] HEADRACE_HD static std::uint32_t share_of(std::uint64_t bytes, std::uint32_t teams) {
    const std::uint64_t even = bytes / teams / kLineBytes * kLineBytes + kLineBytes;
    if (even >= kTeamBytes / 2) return Part::kBytesMax / kLineBytes * kLineBytes;
    return even < kShareBytesMin ? kShareBytesMin : static_cast<std::uint32_t>(even);
  }

  [[nodiscard]] HEADRACE_HD bool make_room(std::uint32_t parts, std::uint32_t batches) {
    const std::uint64_t size = std::uint64_t{view_.part_mask} + 1;
    return wait_until(group_, view_, Leave::parts_not_copied, [&] {
      if (parts_end_ + parts - parts_retired_ <= size && batches_end_ + batches - retired_ <= size) return true;
      retire();
      return false;
    });
  }

  const Group& group_;
  const View& view_;
  Window& window_;
  // Of each thread, and the same for all.
  std::uint64_t parts_end_ = 0;
  std::uint64_t parts_retired_ = 0;
  std::uint64_t batches_end_ = 0;
  std::uint64_t retired_ = 0;
  std::uint64_t copied_ = 0;
};

}  // namespace headrace::ingest::resident
