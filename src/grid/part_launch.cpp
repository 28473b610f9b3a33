#include <algorithm>
#include <span>

#include "grid/part.hpp"

/// The launches of a leg, and where fields are before and after it.
namespace headrace::grid {

FieldTable Part::table_after(const Leg& leg) const noexcept {
  FieldTable table = table_;
  const auto swap = [&](const Swap& its) { std::swap(table.slots[its.first], table.slots[its.second]); };
  for (std::size_t step = 0; step < leg.steps; ++step) std::ranges::for_each(program_.swaps, swap);
  if (leg.sweep != nullptr) std::ranges::for_each(leg.sweep->redirects, swap);
  return table;
}

/// The table that the phases of the leg's last step see, before its swaps.
FieldTable Part::table_within(const Leg& leg) const noexcept {
  if (leg.sweep == nullptr) return table_;
  FieldTable table = table_after(leg);
  std::for_each(program_.swaps.rbegin(), program_.swaps.rend(),
                [&](const Swap& its) { std::swap(table.slots[its.first], table.slots[its.second]); });
  return table;
}

Status Part::launch_all(StreamRef stream, const Leg& leg, const Launches& launches, std::uint64_t step) noexcept {
  const FieldTable after = table_after(leg);
  const FieldTable within = table_within(leg);
  for (const SweepLaunch& launch : launches.sweeps) {
    if (leg.sweep == nullptr) break;  // a leg without a pass has no sweeps
    const bool watches = watch_.sums != nullptr;
    const SweepCut& cut = watches ? launch.watched : launch.plain;
    const std::uint64_t first = step + 1 - leg.steps;
    const SweepPlaces places = places_of(*leg.sweep, table_, after.slots);
    SweepWatch watch = watch_;
    if (watches) watch.sums += (first - watched_from_) * ChangeSums::kSlots;
    const Kernel& kernel = watches ? leg.sweep->watched : leg.sweep->kernel;
    SweepChain chain;
    if (cut.chained > 0) {
      chain = chain_to(kernel);
    } else {
      end_chain();
    }
    const Status launched =
        launch_pass(stream, kernel, stencil_.data(), cut, places, first, chain, watches ? &watch : nullptr);
    if (!launched) return launched;
  }
  return launch_phases(stream, launches, within, step);
}

SweepChain Part::chain_to(const Kernel& kernel) noexcept {
  const bool follows = chained_ == &kernel;
  chained_ = &kernel;
  ++passes_;
  return {.done = done_.as<std::uint64_t>(), .pass = passes_, .after = follows ? passes_ - 1 : 0};
}

Status Part::launch_phases(StreamRef stream, const Launches& launches, FieldTable table, std::uint64_t step) noexcept {
  if (!launches.phases.empty()) end_chain();
  for (const PhaseLaunch& launch : launches.phases) {
    const Status launched = launch_phase(stream, program_, stencil_.data(), launch, table, step);
    if (!launched) return launched;
  }
  return {};
}

Status Part::patch(const Leg& leg, std::uint64_t step) noexcept {
  end_chain();
  const FieldTable within = table_within(leg);
  for (const Box& box : leg.copied) {
    const std::int64_t first = layout_.at(box.low) * static_cast<std::int64_t>(layout_.value_bytes);
    for (const Swap& redirect : leg.sweep->redirects) {
      BoxCopy& copy = copies_.emplace_back();
      copy.from = table_.origin<std::byte>(redirect.first) + first;
      copy.to = within.origin<std::byte>(redirect.first) + first;
      copy.from_pitch = copy.to_pitch = static_cast<std::int32_t>(layout_.pitch);
      copy.from_plane = copy.to_plane = layout_.plane;
      for (std::size_t axis = 0; axis < 3; ++axis) copy.size[axis] = static_cast<std::int32_t>(box.size(axis));
    }
  }
  Status status = copy_boxes(compute_, copies_, layout_.value_bytes);
  copies_.clear();
  for (const Launches& launches : leg.patches) {
    if (status) status = launch_phases(compute_, launches, within, step++);
  }
  return status;
}

}  // namespace headrace::grid
