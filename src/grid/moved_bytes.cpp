#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "grid/legs.hpp"
#include "grid/patches.hpp"
#include "grid/simulation_state.hpp"

/// The bytes that a step moves between a device and its memory.
namespace headrace::grid {

namespace {

/// The cells of a phase.
[[nodiscard]] std::uint64_t cells_of(const StencilProgram& program, std::size_t phase, std::uint64_t whole) {
  if (!program.only[phase]) return whole;
  std::uint64_t cells = 0;
  for (const Box& box : *program.only[phase]) cells += static_cast<std::uint64_t>(box.cells());
  return cells;
}

[[nodiscard]] std::uint64_t count(FieldSet set) noexcept { return static_cast<std::uint64_t>(std::popcount(set.mask)); }

/// The values that legs read and write, each of which goes through the domain for itself.
[[nodiscard]] std::uint64_t values_of(const StencilProgram& program, const std::vector<std::size_t>& legs,
                                      std::uint64_t whole) {
  std::uint64_t values = 0;
  for (const std::size_t leg : legs) {
    const auto sweep = std::ranges::find(program.sweeps, static_cast<int>(leg), &SweepProgram::steps);
    if (leg > 0) values += whole * (count(sweep->loaded) + count(sweep->stored));
    for (std::size_t phase = 0; phase < program.phases.size(); ++phase) {
      if (leg > 0 && is_swept(program, phase)) continue;
      const Phase& its = program.phases[phase];
      values += std::max<std::uint64_t>(leg, 1) * cells_of(program, phase, whole) *
                (count(its.reads | its.neighbours) + count(its.writes));
    }
  }
  return values;
}

/// The values that a wave of so many steps reads and writes: each once, however many phases and steps use it.
[[nodiscard]] std::uint64_t values_of_wave(const StencilProgram& program, std::uint64_t steps, std::uint64_t whole) {
  std::array<std::uint64_t, kFieldsMax> read{};  // cells, by the place of a field before the first step
  std::array<std::uint64_t, kFieldsMax> written{};
  std::array<std::size_t, kFieldsMax> places{};
  std::iota(places.begin(), places.end(), std::size_t{0});
  for (std::uint64_t step = 0; step < steps; ++step) {
    for (std::size_t phase = 0; phase < program.phases.size(); ++phase) {
      const Phase& its = program.phases[phase];
      const std::uint64_t cells = cells_of(program, phase, whole);
      for (int field = 0; field < program.field_count; ++field) {
        const std::size_t place = places[static_cast<std::size_t>(field)];
        // What the wave has written is in the cache.
        const bool reads = (its.reads | its.neighbours).contains(field) && written[place] < cells;
        if (reads) read[place] = std::max(read[place], cells);
      }
      for (int field = 0; field < program.field_count; ++field) {
        std::uint64_t& cells_written = written[places[static_cast<std::size_t>(field)]];
        if (its.writes.contains(field)) cells_written = std::max(cells_written, cells);
      }
    }
    for (const Swap& swap : program.swaps)
      std::swap(places[static_cast<std::size_t>(swap.first)], places[static_cast<std::size_t>(swap.second)]);
  }
  return std::accumulate(read.begin(), read.end(), std::uint64_t{0}) +
         std::accumulate(written.begin(), written.end(), std::uint64_t{0});
}

}  // namespace

std::uint64_t Simulation::moved_bytes() const noexcept {
  const StencilProgram& program = state_->program;
  const std::uint64_t steps =
      state_->slabs ? state_->slabs->facts().steps : static_cast<std::uint64_t>(state_->options.redundant);
  const auto whole = static_cast<std::uint64_t>(state_->decomposition.extent().cells());
  const std::vector<std::size_t> legs = legs_of(program, static_cast<std::size_t>(steps), false);
  const bool waves = !state_->slabs && state_->waves();
  const std::uint64_t values = waves ? values_of_wave(program, steps, whole) : values_of(program, legs, whole);
  return values * program.value_bytes / steps;
}

}  // namespace headrace::grid
