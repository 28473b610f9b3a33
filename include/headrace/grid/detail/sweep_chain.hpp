#pragma once

#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/grid/detail/sweep_tasks.hpp"

namespace headrace::grid {

/// Passes over one box with the same cut, each of which begins while the previous one ends. A task waits for the
/// neighbouring tasks of the previous pass, which read what it overwrites and store what it reads. Teams of all started
/// passes must be able to progress concurrently, so a pass begins when all blocks of the previous one have.
struct SweepChain {
  std::uint64_t* done = nullptr;  ///< For each task, the number of the last pass that has done it. Null: no chain.
  std::uint64_t pass = 0;         ///< The number of this pass, higher than all earlier ones.
  std::uint64_t after = 0;        ///< The number of the pass to follow; 0 if all earlier work has ended.

  /// Called by a team before it does a task.
  template <class Group>
  HEADRACE_HD void await(const Group& group, const SweepTasks& tasks, std::int64_t task) const noexcept {
    if (after == 0) return;
    for (std::uint32_t first = 0; first < SweepTasks::kBeside; first += Group::kTeam) {
      const std::uint32_t number = first + group.team_rank();
      const std::int64_t other = number < SweepTasks::kBeside ? tasks.beside(task, number) : -1;
      bool waits = other >= 0;
      // All threads loop together: after a loop that each thread exits on its own, nvcc leaves the team diverged.
      while (group.team_any(waits)) {
        if (waits) waits = group.load_on_device(done[other]) < after;
        group.relax_briefly();
      }
    }
    group.team_sync();
  }

  /// Called by a team after it has done a task.
  template <class Group>
  HEADRACE_HD void tell(const Group& group, std::int64_t task) const noexcept {
    group.team_sync();
    if (group.team_rank() == 0) group.store_on_device(done[task], pass);
  }
};

}  // namespace headrace::grid
