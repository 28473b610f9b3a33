#pragma once

#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/grid/detail/resident_view.hpp"

namespace headrace::grid {

/// The waits of the blocks of a resident kernel. Every thread of a block calls them, and gets false if it must exit:
/// once the host has told the kernel to stop, or after waiting for too long. If a block exits, the others soon follow,
/// because they make the same checks.
struct ResidentWait {
  /// Waits until `word` is at least `least`. What its writer wrote before is then visible to the whole block.
  /// @param writer  the writer of the word, as in ResidentWords::waits_for
  template <bool OnDevice, class Group>
  [[nodiscard]] HEADRACE_HD static bool until(const Group& group, const ResidentView& view, const std::uint64_t& word,
                                              std::uint64_t least, std::uint32_t writer) noexcept {
    bool go = true;
    if (group.rank() == 0) {
      std::uint64_t since = 0;
      for (std::uint32_t poll = 1; (OnDevice ? group.load_on_device(word) : group.load(word)) < least; ++poll) {
        if (poll % kPollsPerLook == 0 && must_leave(group, view, since)) {
          go = false;
          break;
        }
        group.relax_briefly();  // the wait is short, and a longer sleep would take as long as a phase of a small grid
      }
      if (!go && group.block() == 0)
        group.store(view.words->waits_for, writer);  // the host reads it once all blocks have exited
    }
    return group.broadcast(go);
  }

  /// Waits until all blocks have called it. What any of them wrote before is then visible to all.
  template <class Group>
  [[nodiscard]] HEADRACE_HD static bool meet(const Group& group, const ResidentView& view) noexcept {
    group.sync();
    std::uint64_t all = 0;
    if (group.rank() == 0) {
      const std::uint64_t blocks = group.block_count();
      all = (group.fetch_add_on_device(view.counters->arrived, std::uint64_t{1}) / blocks + 1) * blocks;
    }
    return until<true>(group, view, view.counters->arrived, all, ResidentWords::kOwnBlocks);
  }

 private:
  /// Reading the stop word crosses the link to the host, and the awaited value nearly always arrives first.
  static constexpr std::uint32_t kPollsPerLook = 64;

  /// @param since  time of the first check; 0 before that
  template <class Group>
  [[nodiscard]] HEADRACE_HD static bool must_leave(const Group& group, const ResidentView& view,
                                                   std::uint64_t& since) noexcept {
    if (group.load(view.words->stop) != 0) return true;
    const std::uint64_t now = group.clock_ns();
    if (since == 0) since = now;
    if (now - since < view.limit_ns) return false;
    group.store(view.words->gave_up, std::uint32_t{1});  // the host reads it once all blocks have exited
    return true;
  }
};

}  // namespace headrace::grid
