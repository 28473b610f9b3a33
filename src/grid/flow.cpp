#include "grid/flow.hpp"

#include <utility>

namespace headrace::grid {

namespace {

using Needs = std::array<Layers, kFieldsMax>;

/// Returns the layers that a phase must update for what later phases need, and turns `needs` into what they need before
/// it.
[[nodiscard]] Layers before_phase(const Phase& phase, int field_count, Needs& needs) {
  Layers beyond;
  for (int field = 0; field < field_count; ++field) {
    if (phase.writes.contains(field)) beyond = wider(beyond, needs[static_cast<std::size_t>(field)]);
  }
  const Layers at_neighbours = stacked(beyond, phase.reach);
  for (int field = 0; field < field_count; ++field) {
    Layers& need = needs[static_cast<std::size_t>(field)];
    if (phase.reads.contains(field)) {
      need = wider(need, beyond);
    } else if (phase.writes.contains(field)) {
      need = {};  // set everywhere, so its earlier values are not needed
    }
    if (phase.neighbours.contains(field)) need = wider(need, at_neighbours);
  }
  return beyond;
}

/// Walks the steps backwards from the end, where only the owned cells are needed.
[[nodiscard]] Cycle cycle_of(const StencilProgram& program, int steps, Needs& needs) {
  needs = {};
  Cycle cycle;
  cycle.beyond.assign(static_cast<std::size_t>(steps), std::vector<Layers>(program.phases.size()));
  cycle.kept.resize(static_cast<std::size_t>(steps));
  for (std::size_t step = cycle.beyond.size(); step-- > 0;) {
    for (const Layers& need : needs) cycle.kept[step] = wider(cycle.kept[step], need);
    for (std::size_t s = program.swaps.size(); s-- > 0;) {
      std::swap(needs[static_cast<std::size_t>(program.swaps[s].first)],
                needs[static_cast<std::size_t>(program.swaps[s].second)]);
    }
    for (std::size_t phase = program.phases.size(); phase-- > 0;) {
      cycle.beyond[step][phase] = before_phase(program.phases[phase], program.field_count, needs);
    }
  }
  return cycle;
}

/// The fields that any step changes.
[[nodiscard]] FieldSet changing(const StencilProgram& program) {
  FieldSet found;
  for (const Phase& phase : program.phases) found = found | phase.writes;
  for (std::size_t pass = 0; pass < program.swaps.size(); ++pass) {
    for (const Swap& swap : program.swaps) {
      if (!(found & fields(swap.first, swap.second)).empty()) found = found | fields(swap.first, swap.second);
    }
  }
  return found;
}

[[nodiscard]] std::size_t tail_of(const std::vector<Phase>& phases) {
  FieldSet written;
  FieldSet at_neighbours;
  for (std::size_t first = phases.size(); first-- > 0;) {
    written = written | phases[first].writes;
    at_neighbours = at_neighbours | phases[first].neighbours;
    if (!(written & at_neighbours).empty()) return first + 1;
  }
  return 0;
}

}  // namespace

Flow flow_of(const StencilProgram& program, int redundant) {
  Flow flow;
  for (int steps = 1; steps <= redundant; ++steps) flow.cycles.push_back(cycle_of(program, steps, flow.needed));
  const FieldSet changed = changing(program);
  for (int field = 0; field < program.field_count; ++field) {
    const Layers& need = flow.needed[static_cast<std::size_t>(field)];
    flow.ghosts = wider(flow.ghosts, need);
    if (changed.contains(field) && !need.none()) flow.exchanged = flow.exchanged | fields(field);
  }
  for (const auto& step : flow.cycles.back().beyond) {
    for (const Layers& beyond : step) flow.ghosts = wider(flow.ghosts, beyond);
  }
  flow.tail = tail_of(program.phases);
  for (std::size_t phase = 0; phase < program.phases.size(); ++phase) {
    flow.edge = wider(flow.edge, program.phases[phase].reach);
    if (phase >= flow.tail) flow.tail_reach = wider(flow.tail_reach, program.phases[phase].reach);
  }
  return flow;
}

}  // namespace headrace::grid
