#include <algorithm>
#include <cstddef>
#include <vector>

#include "grid/fdtd/fdtd_state.hpp"
#include "grid/share.hpp"

namespace headrace::grid {

/// Each rank sends the traces that its parts recorded to the other ranks.
void Fdtd::State::share_traces(std::size_t steps) {
  Ranks* const ranks = options.simulation.ranks.get();
  if (ranks == nullptr || receivers.empty()) return;
  const auto& boxes = simulation->decomposition().parts();
  std::vector<std::vector<std::size_t>> recorded(static_cast<std::size_t>(ranks->count()));
  for (std::size_t i = 0; i < receivers.size(); ++i) {
    const auto has = [&](const Box& box) { return box.contains(Box::cell(receivers[i].cell)); };
    const auto part = static_cast<std::size_t>(std::ranges::find_if(boxes, has) - boxes.begin());
    recorded[static_cast<std::size_t>(simulation->rank_of(part))].push_back(i);
  }
  std::vector<std::vector<double>> values(recorded.size());
  std::vector<RankMessage> sends;
  std::vector<RankMessage> receives;
  const auto own = static_cast<std::size_t>(ranks->rank());
  for (const std::size_t i : recorded[own])
    values[own].insert(values[own].end(), traces[i].end() - static_cast<std::ptrdiff_t>(steps), traces[i].end());
  for (std::size_t rank = 0; rank < recorded.size(); ++rank) {
    if (rank == own) continue;
    values[rank].resize(recorded[rank].size() * steps);
    const auto message = [&](std::vector<double>& of) {
      return RankMessage{static_cast<int>(rank), 0, reinterpret_cast<std::byte*>(of.data()),
                         of.size() * sizeof(double)};
    };
    if (!values[own].empty()) sends.push_back(message(values[own]));
    if (!values[rank].empty()) receives.push_back(message(values[rank]));
  }
  const Status exchanged = ranks->exchange(sends, receives);
  throw_rank_failure(ranks, "stepping a grid");
  exchanged.or_throw("stepping a grid");
  for (std::size_t rank = 0; rank < recorded.size(); ++rank) {
    if (rank == own) continue;
    const double* from = values[rank].data();
    for (const std::size_t i : recorded[rank]) {
      traces[i].insert(traces[i].end(), from, from + steps);
      from += steps;
    }
  }
}

}  // namespace headrace::grid
