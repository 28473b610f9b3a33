#include <algorithm>
#include <atomic>
#include <cstring>

#include "grid/part.hpp"

/// What chained passes of a part share with each other and with those of its neighbours: see SweepChain.
namespace headrace::grid {

namespace {

/// The most tasks of a chained pass of a plan.
[[nodiscard]] std::size_t most_tasks(const PartPlans& plans) {
  std::size_t most = 0;
  for (const auto* cycles : {&plans.amid, &plans.last}) {
    for (const CyclePlan& cycle : *cycles) {
      for (const SweepLaunch& launch : cycle.interior.sweeps) {
        most = std::max({most, launch.plain.chained, launch.watched.chained});
      }
    }
  }
  return most;
}

[[nodiscard]] bool chains_over_cuts(const PartPlans& plans) {
  return std::ranges::any_of(plans.amid, &CyclePlan::chained_over_cuts) ||
         std::ranges::any_of(plans.last, &CyclePlan::chained_over_cuts);
}

/// The order in which a neighbour's next pass is kept waiting for the least time.
[[nodiscard]] TaskOrder order_beside(const Box& own, const std::vector<Part::Neighbour>& neighbours) {
  bool below = false;
  bool above = false;
  for (const Part::Neighbour& neighbour : neighbours) {
    below = below || neighbour.its->layout().own.high[1] <= own.low[1];
    above = above || neighbour.its->layout().own.low[1] >= own.high[1];
  }
  if (below && above) return TaskOrder::inward;
  return above ? TaskOrder::descending : TaskOrder::ascending;
}

}  // namespace

void Part::make_room_for_chains() {
  end_chain();
  std::size_t words = most_tasks(plans_);
  words_from_.clear();
  if (chains_over_cuts(plans_)) {
    for (const Neighbour& neighbour : neighbours_) {
      words_from_.push_back(words);
      words += most_tasks(neighbour.its->plans_);
    }
    if (stop_.bytes() == 0) {
      stop_ = Buffer(device_, MemoryKind::pinned, sizeof(std::uint32_t));
      std::memset(stop_.data(), 0, sizeof(std::uint32_t));
    }
  }
  if (words == 0) return;
  // The words of all parts are cleared alike, whether there was room or not: other plans number tasks otherwise.
  if (words * sizeof(std::uint64_t) > done_.bytes()) {
    done_ = Buffer(device_, MemoryKind::device, words * sizeof(std::uint64_t));
  }
  Status cleared = compute_.fill(done_.data(), 0, done_.bytes());
  if (cleared) cleared = compute_.wait();
  cleared.or_throw("clearing what tasks of a grid have done on " + device_.name());
}

std::vector<ChainNeighbour> Part::neighbours_in_chain(bool last, std::size_t steps, bool watched) const {
  const auto bytes = static_cast<std::int64_t>(layout_.value_bytes);
  std::vector<ChainNeighbour> made;
  for (std::size_t n = 0; n < neighbours_.size(); ++n) {
    const Part& other = *neighbours_[n].its;
    const auto me = static_cast<std::size_t>(std::ranges::find(other.neighbours_, number_, &Neighbour::part) -
                                             other.neighbours_.begin());
    const CyclePlan& its = (last ? other.plans_.last : other.plans_.amid)[steps - 1];
    const SweepLaunch& launch = its.interior.sweeps.front();
    const PartLayout& layout = other.layout_;
    const LocalBox here = layout.local(layout_.own);
    const std::int64_t to_own = (here.low[0] + here.low[1] * layout.pitch + here.low[2] * layout.plane) * bytes;
    made.push_back({.apart = {here.low[0], here.low[1], here.low[2]},
                    .own = layout.local(layout.own),
                    .rows = (watched ? launch.watched : launch.plain).region.rows[0],
                    .ghosts = layout_.local(layout_.own.intersect(layout.own.grow(layout.pads))),
                    .done = done_.as<std::uint64_t>() + words_from_[n],
                    .tell = other.done_.as<std::uint64_t>() + other.words_from_[me],
                    .base = other.table_.base + to_own,
                    .stride_bytes = other.table_.stride_bytes,
                    .pitch = layout.pitch,
                    .plane = layout.plane});
  }
  return made;
}

void Part::meet_in_chains() {
  std::vector<ChainNeighbour> all;
  const auto add = [&](SweepCut& cut, bool last, std::size_t steps, bool watched) {
    cut.neighbours = all.size();
    if (cut.chained == 0) return;
    const auto more = neighbours_in_chain(last, steps, watched);
    all.insert(all.end(), more.begin(), more.end());
  };
  for (const bool last : {false, true}) {
    auto& cycles = last ? plans_.last : plans_.amid;
    for (std::size_t steps = 1; steps <= cycles.size(); ++steps) {
      CyclePlan& cycle = cycles[steps - 1];
      if (!cycle.chained_over_cuts) continue;
      add(cycle.interior.sweeps.front().plain, last, steps, false);
      add(cycle.interior.sweeps.front().watched, last, steps, true);
    }
  }
  if (all.empty()) return;
  const std::size_t bytes = all.size() * sizeof(ChainNeighbour);
  chain_neighbours_ = Buffer(device_, MemoryKind::device, bytes);
  Status copied = compute_.copy(chain_neighbours_.data(), reinterpret_cast<const std::byte*>(all.data()), bytes);
  if (copied) copied = compute_.wait();
  copied.or_throw("telling the parts of a grid of each other on " + device_.name());
}

void Part::stop_chains() noexcept {
  if (stop_.bytes() == 0) return;
  // Read by SweepChain::await().
  std::atomic_ref(*stop_.as<std::uint32_t>()).store(1, std::memory_order_release);
}

SweepChain Part::chain_to(const Kernel& kernel, const SweepCut& cut) noexcept {
  const bool follows = chained_ == &kernel;
  chained_ = &kernel;
  ++passes_;
  SweepChain chain{.done = done_.as<std::uint64_t>(), .pass = passes_, .after = follows ? passes_ - 1 : 0};
  if (neighbours_.empty()) return chain;
  chain.neighbours = chain_neighbours_.as<ChainNeighbour>() + cut.neighbours;
  chain.neighbour_count = static_cast<std::uint32_t>(neighbours_.size());
  chain.order = order_beside(layout_.own, neighbours_);
  chain.stop = stop_.as<std::uint32_t>();
  return chain;
}

/// Ghosts that the neighbours push come with their passes, and what they read of this part is read by then, too.
Status Part::leave_chain(Progress& progress) noexcept {
  if (chained_cycle_ == 0) return {};
  const std::uint64_t cycle = chained_cycle_;
  chained_cycle_ = 0;
  end_chain();
  Status status = compute_.record(pushed_[cycle % 2]);
  if (!status) return status;
  progress.tell(number_, Progress::Mark::pushed, cycle);
  for (const Neighbour& neighbour : neighbours_) {
    if (!progress.await(neighbour.part, Progress::Mark::pushed, cycle)) return Errc::cancelled;
    status = compute_.wait_for(neighbour.its->pushed_[cycle % 2]);
    if (!status) return status;
  }
  return {};
}

}  // namespace headrace::grid
