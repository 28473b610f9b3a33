#include "headrace/grid/simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "grid/field_io.hpp"
#include "grid/gather.hpp"
#include "grid/simulation_state.hpp"
#include "headrace/base/error.hpp"

namespace headrace::grid {

Simulation::Simulation(const Decomposition& decomposition, std::vector<Device> devices, StencilProgram program,
                       const SimulationOptions& options) try
    : state_(std::make_unique<State>(decomposition, std::move(devices), std::move(program), options)) {
} catch (const DeviceError& error) {
  // A usage error occurs on all ranks. A device may fail on this rank alone, while others continue and wait for it.
  if (options.ranks) options.ranks->fail(error.what());
}
Simulation::Simulation(Simulation&&) noexcept = default;
Simulation& Simulation::operator=(Simulation&& other) noexcept {
  State::end(std::exchange(state_, std::move(other.state_)));
  return *this;
}
Simulation::~Simulation() { State::end(std::move(state_)); }

void Simulation::set_bytes(int field, TypeKey value_type, const void* values, std::size_t count) {
  const bool one_for_all = count == 1;
  const auto cells = static_cast<std::size_t>(state_->decomposition.extent().cells());
  state_->require_array(field, value_type, one_for_all ? cells : count);
  if (state_->slabs) {
    state_->require_usable("setting a field of a grid");
    return state_->slabs->set(field, static_cast<const std::byte*>(values), one_for_all);
  }
  state_->on_every_part("setting a field of a grid", [&](std::size_t part) {
    return upload_field(*state_->parts[part], field, state_->decomposition, static_cast<const std::byte*>(values),
                        one_for_all);
  });
}

void Simulation::get_bytes(int field, TypeKey value_type, void* values, std::size_t count) {
  state_->require_array(field, value_type, count);
  state_->require_same({.function = Call::Function::get, .first = field});
  if (state_->slabs) {
    state_->require_usable("getting a field of a grid");
    return state_->slabs->get(field, static_cast<std::byte*>(values));
  }
  state_->on_every_part("getting a field of a grid", [&](std::size_t part) {
    return download_field(*state_->parts[part], field, state_->decomposition, static_cast<std::byte*>(values));
  });
  const Status gathered = gather_on_first(state_->share, state_->decomposition, state_->program.value_bytes,
                                          static_cast<std::byte*>(values));
  throw_rank_failure(state_->share.ranks(), "getting a field of a grid");
  gathered.or_throw("getting a field of a grid");
}

void Simulation::step(std::uint64_t count) {
  state_->require_same({.function = Call::Function::step, .first = static_cast<std::int64_t>(count)});
  state_->step(count);
}
std::vector<Norms> Simulation::step_with_changes(std::uint64_t count) {
  state_->require_same({.function = Call::Function::step_with_changes, .first = static_cast<std::int64_t>(count)});
  return state_->step_with_changes(count);
}

void Simulation::record_timeline(std::size_t cycles) {
  state_->birth.require("recording the timeline of a grid");
  constexpr std::size_t kCyclesMax = 10000;
  state_->require_in_core("timeline");
  if (cycles > kCyclesMax)
    throw UsageError(
        fmt::format("a timeline of {} cycles is too long: at most {} can be recorded", cycles, kCyclesMax));
  if (state_->resident) {
    throw UsageError("mode 'resident' has no timeline: its kernel does all steps of a call; use mode 'streams'",
                     Errc::not_supported);
  }
  for (std::size_t part = state_->share.first(); part < state_->share.end(); ++part)
    state_->parts[part]->record(cycles);
}

std::vector<WorkSpan> Simulation::timeline() const {
  state_->birth.require("reading the timeline of a grid");
  if (state_->slabs) return {};
  std::vector<WorkSpan> all;
  for (std::size_t part = state_->share.first(); part < state_->share.end(); ++part) {
    const std::vector<WorkSpan> its = state_->parts[part]->recorded();
    all.insert(all.end(), its.begin(), its.end());
  }
  return all;
}

void Simulation::restrict(int phase, std::vector<Box> boxes) {
  state_->birth.require("restricting a phase of a grid");
  require_restriction(state_->program, phase, boxes, state_->decomposition.extent());
  state_->program.only[static_cast<std::size_t>(phase)] = std::move(boxes);
  state_->note_restrictions();
  state_->replan();
}

void Simulation::set_stencil_bytes(std::size_t part, TypeKey stencil_type, std::span<const std::byte> bytes) {
  state_->share.require(part);
  if (stencil_type != state_->program.stencil_type) {
    throw UsageError(fmt::format("the simulation was made with a different type of stencil, {}", state_->program.name));
  }
  if (state_->slabs) return state_->slabs->take_stencil(bytes);
  state_->parts[part]->take_stencil(bytes);
}

void Simulation::require_alike(std::string what, std::uint64_t number) {
  state_->given_what = std::move(what);
  state_->given.other = number;
}

void Simulation::set_steps_done(std::uint64_t steps) noexcept { state_->steps_done = steps; }
Norms Simulation::norms(int field) {
  state_->require_same({.function = Call::Function::norms, .first = field});
  return state_->norms(field, -1);
}
Norms Simulation::norms_of_difference(int field, int other) {
  state_->require_field(other);
  state_->require_same({.function = Call::Function::norms, .first = field, .second = other});
  return state_->norms(field, other);
}

std::uint64_t Simulation::steps_done() const noexcept { return state_->steps_done; }
const Decomposition& Simulation::decomposition() const noexcept { return state_->decomposition; }
const std::vector<Device>& Simulation::devices() const noexcept { return state_->share.devices(); }
std::size_t Simulation::first_part() const noexcept { return state_->share.first(); }
int Simulation::rank_of(std::size_t part) const {
  if (part < state_->parts.size()) return state_->share.rank_of(part);
  throw UsageError(fmt::format("a part must be 0 to {}, not {}", state_->parts.size() - 1, part));
}
const SimulationOptions& Simulation::options() const noexcept { return state_->options; }
const Layers& Simulation::ghosts() const noexcept { return state_->flow.ghosts; }
FieldSet Simulation::exchanged() const noexcept { return state_->flow.exchanged; }

std::uint64_t Simulation::exchanged_bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const Link& link : state_->links.links) bytes += link.side() == Side::sender ? 0 : link.bytes();
  return bytes;
}

bool Simulation::passes_alone() const {
  return state_->passes_alone(static_cast<std::uint64_t>(state_->options.redundant), false);
}

std::optional<SlabFacts> Simulation::slabs() const {
  return state_->slabs ? std::optional(state_->slabs->facts()) : std::nullopt;
}

FieldView Simulation::view(std::size_t part, int field) const {
  state_->require_field(field);
  state_->share.require(part);
  state_->require_in_core("view");
  const Part& its = *state_->parts[part];
  const Layers sides = state_->decomposition.neighbours(part);
  Layers ghosts;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    ghosts.low[axis] = sides.low[axis] != 0 ? its.layout().pads.low[axis] : 0;
    ghosts.high[axis] = sides.high[axis] != 0 ? its.layout().pads.high[axis] : 0;
  }
  return {.device = its.device(),
          .own = its.layout().own,
          .ghosts = ghosts,
          .origin = its.table().origin<std::byte>(field),
          .pitch = its.layout().pitch,
          .plane = its.layout().plane};
}

}  // namespace headrace::grid
