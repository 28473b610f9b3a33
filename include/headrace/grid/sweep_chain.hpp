#pragma once

#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/grid/chain_neighbour.hpp"
#include "headrace/grid/sweep_tasks.hpp"

namespace headrace::grid {

/// Passes over a whole part that are cut alike, where each begins while the one before ends. A task waits for the tasks
/// about it in the pass before, because these read what it stores and store what it reads. That includes tasks of
/// neighbouring parts, on other devices, which push their border cells into this part's ghosts. A pass begins only when
/// all blocks of the one before have, so the teams of all passes that have begun can make progress side by side.
struct SweepChain {
  std::uint64_t* done = nullptr;  ///< For each task, the number of the last pass that has done it.
  std::uint64_t pass = 0;         ///< The number of this pass, larger than those of all passes before it.
  std::uint64_t after = 0;        ///< The number of the pass before it in the chain; 0 for the first of a chain.
  const ChainNeighbour* neighbours = nullptr;
  std::uint32_t neighbour_count = 0;
  TaskOrder order = TaskOrder::ascending;
  /// The host stores 1 here when another part has failed and will never answer. Null without neighbours.
  const std::uint32_t* stop = nullptr;

  /// Every thread of a team calls before the team does a task. False when the host has said to stop.
  template <class Group>
  [[nodiscard]] HEADRACE_HD bool await(const Group& group, const SweepTasks& tasks, std::int64_t task,
                                       const StripPlace& place, const std::int32_t (&reach)[2],
                                       const TeamColumns& team) const noexcept {
    if (after == 0) return true;
    for (std::uint32_t first = 0; first < SweepTasks::kBeside; first += Group::kTeam) {
      const std::uint32_t number = first + group.team_rank();
      const std::int64_t other = number < SweepTasks::kBeside ? tasks.beside(task, number) : -1;
      if (!await_word<false>(group, other >= 0 ? done + other : nullptr)) return false;
    }
    for (std::uint32_t n = 0; n < neighbour_count; ++n) {
      const ChainNeighbour& neighbour = neighbours[n];
      if (!neighbour.meets(place, reach)) continue;
      const TaskRange range = neighbour.tasks_at(place, reach, team);
      for (std::int32_t first = 0; first < range.count(); first += static_cast<std::int32_t>(Group::kTeam)) {
        const std::int32_t number = first + static_cast<std::int32_t>(group.team_rank());
        const bool is_one = number < range.count();
        if (!await_word<true>(group, is_one ? neighbour.done + range.task(number) : nullptr)) return false;
      }
    }
    group.team_sync();
    return true;
  }

  /// Every thread of a team calls when the team has done a task, after its last store.
  template <class Value, class Group>
  HEADRACE_HD void tell(const Group& group, std::int64_t task, const SweepPlaces& places, const SweepRegion& region,
                        const StripPlace& place, const std::int32_t (&reach)[2], FieldSet stored) const noexcept {
    group.team_sync();
    if (group.team_rank() == 0) group.store_on_device(done[task], pass);
    for (std::uint32_t n = 0; n < neighbour_count; ++n) {
      const ChainNeighbour& neighbour = neighbours[n];
      if (!neighbour.meets(place, reach)) continue;
      neighbour.push<Value>(group, places, region, place, stored);
      group.team_sync();
      // Read by await() of the neighbour's kernel, which then finds the ghosts.
      if (group.team_rank() == 0) group.store(neighbour.tell[task], pass);
    }
  }

 private:
  /// The stop word lies across the link to the host, and a task of the pass before is rarely far from done.
  static constexpr std::uint32_t kPollsPerLook = 256;

  /// Until the word that each thread names (null: none) holds `after` or more. All threads of the team go round
  /// together: nvcc leaves a team apart after a loop that each thread leaves by itself.
  template <bool AcrossDevices, class Group>
  [[nodiscard]] HEADRACE_HD bool await_word(const Group& group, const std::uint64_t* word) const noexcept {
    bool waits = word != nullptr;
    for (std::uint32_t poll = 1; group.team_any(waits); ++poll) {
      if (waits) waits = (AcrossDevices ? group.load(*word) : group.load_on_device(*word)) < after;
      if (stop != nullptr && poll % kPollsPerLook == 0 && group.team_any(group.load(*stop) != 0)) return false;
      group.relax_briefly();
    }
    return true;
  }
};

}  // namespace headrace::grid
