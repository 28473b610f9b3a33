#pragma once

#include <cstdint>

#include "ingest/builder/gather_body.hpp"
#include "ingest/resident/view.hpp"

namespace headrace::ingest::resident {

/// The role of most blocks. Each team draws the number of a batch, waits for it, copies its parts, and counts the bytes
/// of their frames. The thread that completes a frame tells the host.
template <class Group>
class Build {
 public:
  HEADRACE_HD Build(const Group& group, const View& view) : group_(group), view_(view) {}

  HEADRACE_HD void run() const {
    for (;;) {
      std::uint64_t number = 0;
      if (group_.team_rank() == 0) number = group_.fetch_add_relaxed_on_device(*view_.next_batch, std::uint64_t{1});
      number = group_.team_from(number, 0);
      if (!wait_for(number)) return;
      const Batch batch = view_.batches[number & view_.part_mask];
      gather<kInFlight>(group_, batch.count,
                        [&](std::uint32_t i) { return view_.parts[(batch.first + i) & view_.part_mask]; });
      group_.team_sync();
      for (std::uint32_t i = group_.team_rank(); i < batch.count; i += Group::kTeam) count(batch.first + i);
      group_.team_sync();
      if (group_.team_rank() == 0) {  // pairs with Acknowledge::retire()
        group_.store_on_device(view_.done[number & view_.part_mask], static_cast<std::uint32_t>(number) + 1);
      }
    }
  }

 private:
  static constexpr std::uint32_t kInFlight = 4;
  static constexpr std::uint32_t kPollsPerLook = 64;
  static constexpr std::uint32_t kPauseNs = 40;

  /// Waits for a batch. False if the block is to leave.
  [[nodiscard]] HEADRACE_HD bool wait_for(std::uint64_t number) const {
    std::uint32_t go = 1;
    if (group_.team_rank() == 0) {
      for (std::uint32_t poll = 0; group_.load_on_device(*view_.batches_end) <= number; ++poll) {
        if (poll % kPollsPerLook == 0 && group_.load_on_device(view_.relay[kLeave]) != 0) {
          go = 0;
          break;
        }
        group_.pause_ns(kPauseNs);
      }
    }
    group_.team_sync();  // makes everything written before the batch was published visible to all threads
    return group_.team_from(go, 0) != 0;
  }

  /// Counts a copied part. Additions to one place are ordered, so the thread that adds the last byte comes after all
  /// threads that copied.
  HEADRACE_HD void count(std::uint64_t which) const {
    const std::uint32_t bytes = view_.parts[which & view_.part_mask].bytes();
    const PartPlace place = view_.places[which & view_.part_mask];
    const std::uint64_t whole = view_.attached[place.place / view_.places_per_slot].frame_bytes;
    std::uint64_t& filled = view_.filled[place.place];
    if (group_.fetch_add_on_device(filled, std::uint64_t{bytes}) + bytes != whole) return;
    group_.store_relaxed_on_device(filled,
                                   std::uint64_t{0});  // the place gets new bytes once the host knows of the frame
    group_.store(view_.frames[place.place].number_end, place.number + 1);  // pairs with ResidentControl::look()
  }

  const Group& group_;
  const View& view_;
};

}  // namespace headrace::ingest::resident
