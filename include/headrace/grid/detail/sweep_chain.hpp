#pragma once

#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/grid/detail/sweep_tasks.hpp"

namespace headrace::grid {

/// Passes over one box, cut alike, of which each begins while the one before ends: a task waits for those about it in
/// the pass before, which read what it stores and store what it reads. Teams of all passes that have begun must get on
/// beside each other, so a pass begins when all blocks of the one before have.
struct SweepChain {
  std::uint64_t* done = nullptr;  ///< A word a task: the number of the last pass that has done it. Null: no chain.
  std::uint64_t pass = 0;         ///< The number of this pass, more than those before it had,
  std::uint64_t after = 0;        ///< and of the pass that it comes after; 0: whatever came before has ended.

  /// Called by a team before it does a task.
  template <class Group>
  HEADRACE_HD void await(const Group& group, const SweepTasks& tasks, std::int64_t task) const noexcept {
    if (after == 0) return;
    for (std::uint32_t first = 0; first < SweepTasks::kBeside; first += Group::kTeam) {
      const std::uint32_t number = first + group.team_rank();
      const std::int64_t other = number < SweepTasks::kBeside ? tasks.beside(task, number) : -1;
      bool waits = other >= 0;
      // All threads go round together: nvcc leaves a team apart after a loop that each leaves by itself.
      while (group.team_any(waits)) {
        if (waits) waits = group.load_on_device(done[other]) < after;
        group.relax_briefly();
      }
    }
    group.team_sync();
  }

  /// Called by a team when it has done a task.
  template <class Group>
  HEADRACE_HD void tell(const Group& group, std::int64_t task) const noexcept {
    group.team_sync();
    if (group.team_rank() == 0) group.store_on_device(done[task], pass);
  }
};

}  // namespace headrace::grid
