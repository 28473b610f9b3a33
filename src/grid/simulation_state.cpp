#include "grid/simulation_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "grid/digest.hpp"
#include "grid/patches.hpp"
#include "grid/slabs/budget.hpp"
#include "headrace/base/error.hpp"

namespace headrace::grid {

namespace {

constexpr int kRedundantMax = 64;
constexpr int kVisitStepsMax = 256;
constexpr Duration kWaitLimitMax = std::chrono::hours(24);

void require_walls(const Decomposition& decomposition, const SimulationOptions& options) {
  if (!decomposition.is_periodic()) return;
  if (options.mode == Mode::resident)
    throw UsageError("mode 'resident' is not possible with periodic walls; use mode 'streams'", Errc::not_supported);
  if (options.passes == Passes::always) {
    throw UsageError("passes over memory are not possible with periodic walls; use passes 'automatic' or 'never'",
                     Errc::not_supported);
  }
}

void require_fitting(const Share& share, const StencilProgram& program, const SimulationOptions& options) {
  const std::vector<Device>& devices = share.devices();
  const std::size_t parts = devices.size();
  for (const Device device : devices) {
    if (device.kind() != devices.front().kind()) {
      throw UsageError(fmt::format("a simulation runs on devices of one kind, not on {} and {}", devices.front().name(),
                                   device.name()));
    }
  }
  if (program.stencils.size() != 1 && program.stencils.size() != parts) {
    throw UsageError(fmt::format("stencil {} was given for {} parts, but there are {}: give one, or one for each part",
                                 program.name, program.stencils.size(), parts));
  }
  if (options.redundant < 1 || options.redundant > kRedundantMax) {
    throw UsageError(fmt::format("redundant layers must cover 1 to {} steps from one exchange to the next, not {}",
                                 kRedundantMax, options.redundant));
  }
  if (options.pass_steps < 1 || options.pass_steps > kPassStepsMax) {
    throw UsageError(
        fmt::format("a pass over memory must do 1 to {} steps, not {}", kPassStepsMax, options.pass_steps));
  }
  if (options.visit_steps < 0 || options.visit_steps > kVisitStepsMax) {
    throw UsageError(fmt::format("a visit to a slab must do 1 to {} steps, or 0 to choose automatically, not {}",
                                 kVisitStepsMax, options.visit_steps));
  }
  if (options.wait_limit <= Duration(0) || options.wait_limit > kWaitLimitMax) {
    throw UsageError(fmt::format("the wait limit is {} s: it must be above 0 and at most a day",
                                 std::chrono::duration<double>(options.wait_limit).count()));
  }
  std::vector<Kernel> kernels = program.kernels;
  if (options.mode == Mode::resident) kernels.push_back(program.resident);
  for (const Kernel& kernel : kernels) {
    if (!kernel.runs_on(devices.front().kind())) {
      throw UsageError(fmt::format("stencil {} has no kernels for {}: call make_stencil() in a file that nvcc compiles "
                                   "(.cu)",
                                   program.name, devices.front().name()),
                       Errc::not_supported);
    }
  }
}

[[nodiscard]] std::vector<PartLayout> lay_out_parts(const Decomposition& decomposition, const Flow& flow,
                                                    std::size_t value_bytes) {
  decomposition.require_room_for(flow.ghosts);
  std::vector<PartLayout> layouts;
  for (std::size_t part = 0; part < decomposition.parts().size(); ++part) {
    layouts.push_back(
        lay_out(decomposition.parts()[part], decomposition.neighbours(part), flow.ghosts, flow.edge, value_bytes));
  }
  return layouts;
}

}  // namespace

Simulation::State::State(const Decomposition& its_decomposition, std::vector<Device> its_devices,
                         StencilProgram its_program, const SimulationOptions& its_options)
    : decomposition(its_decomposition),
      share(its_decomposition, std::move(its_devices), its_options),
      program(std::move(its_program)),
      options(its_options),
      progress(decomposition.parts().size()) {
  require_fitting(share, program, options);
  require_walls(decomposition, options);
  const auto slab_bytes = slab_budget(decomposition, share.devices(), program, options);
  choose_kernels(program, options, decomposition, share.devices().front().properties().host_cores,
                 slab_bytes.has_value());
  for (std::size_t phase = 0; phase < program.only.size(); ++phase) {
    if (!program.only[phase]) continue;
    require_restriction(program, static_cast<int>(phase), *program.only[phase], decomposition.extent());
  }
  flow = flow_of(program, options.redundant);
  share.require_same_program(program, flow.ghosts);
  note_restrictions();
  team = std::make_unique<Team>(share.devices());
  parts.resize(decomposition.parts().size());
  if (slab_bytes) {
    find_patches();
    slabs = std::make_unique<SlabGrid>(share.devices().front(), decomposition.extent(), program, options, *slab_bytes);
    return;
  }
  make_parts();
  replan();
  on_every_part("clearing the fields of a grid", [this](std::size_t part) { return parts[part]->clear(); });
}

void Simulation::State::make_parts() {
  const std::vector<PartLayout> layouts = lay_out_parts(decomposition, flow, program.value_bytes);
  if (options.mode == Mode::resident) require_resident(decomposition, share, flow, options.push);
  options.push = choose_push(options.push, decomposition, share, flow);
  for (std::size_t part = share.first(); part < share.end(); ++part) {
    parts[part] = std::make_unique<Part>(part, share.device(part), layouts[part], program);
    parts[part]->take_stencil(program.stencils[program.stencils.size() == 1 ? 0 : part - share.first()]);
  }
  links = make_links(decomposition, share, flow, layouts, options.push);
  introduce();
  if (options.mode == Mode::resident) resident = std::make_unique<ResidentGrid>(parts, program, options.wait_limit);
}

Simulation::State::~State() {
  team.reset();
  // A part's pushes write to another part's memory, so all work must be done before any part is freed.
  for (const auto& part : parts) {
    if (part) static_cast<void>(part->wait());
  }
}

void Simulation::State::end(std::unique_ptr<State> state) noexcept {
  let_go_if_inherited(state);
  if (!state || !state->resident || state->resident->leave()) return;
  ResidentGrid& grid = *state->resident;
  grid.abandon(std::shared_ptr<const State>(std::move(state)));
}

/// Tells each part its neighbours. A part that only sends to another still waits for it, so it is a neighbour too.
void Simulation::State::introduce() {
  for (std::size_t part = share.first(); part < share.end(); ++part) {
    std::vector<Part::Neighbour> neighbours(parts.size());
    for (std::size_t l = 0; l < links.links.size(); ++l) {
      const Links::Ends& ends = links.ends[l];
      if (ends.from == part) neighbours[ends.to].to = &links.links[l];
      if (ends.to == part) neighbours[ends.from].from = &links.links[l];
    }
    std::vector<Part::Neighbour> met;
    for (std::size_t other = 0; other < parts.size(); ++other) {
      if (neighbours[other].to == nullptr && neighbours[other].from == nullptr) continue;
      met.push_back(
          {.part = other, .its = parts[other].get(), .to = neighbours[other].to, .from = neighbours[other].from});
    }
    parts[part]->meet(std::move(met), share);
  }
}

void Simulation::State::note_restrictions() {
  Digest boxes;
  for (const auto& only : program.only) boxes.add(only);
  given.boxes = boxes.value();
}

void Simulation::State::find_patches() {
  for (SweepProgram& sweep : program.sweeps) sweep.patches = patches_of(program, sweep, decomposition.extent());
}

void Simulation::State::replan() {
  find_patches();
  if (slabs) return slabs->replan();
  for (std::size_t part = share.first(); part < share.end(); ++part) {
    const PartLayout& layout = parts[part]->layout();
    parts[part]->follow(plan_part(decomposition, part, flow, layout, program, share.device(part), waves()));
  }
  if (resident) resident->take_plans();
}

bool Simulation::State::waves() const noexcept {
  return options.mode == Mode::streams && options.passes != Passes::always &&
         share.devices().front().properties().host_cores;
}

void Simulation::State::throw_failure(const char* doing) const {
  const auto failure = progress.failure();
  if (!failure) return throw_rank_failure(share.ranks(), doing);
  const Error error = failure->error;
  if (resident && error.code == Errc::hung) {
    throw DeviceError(error.code, fmt::format("{}: {}; the fields are lost, make a new simulation", doing,
                                              resident->why_hung(failure->part)));
  }
  throw DeviceError(
      error.code,
      fmt::format("{}: {}, which has part {} of {}, failed: {} (native code {}); the fields are lost, make "
                  "a new simulation",
                  doing, share.device(failure->part).name(), failure->part, parts.size(), to_string(error.code),
                  error.native),
      error.native);
}

void Simulation::State::require_usable(const char* doing) const {
  birth.require(doing);
  throw_failure(doing);
}

void Simulation::State::on_every_part(const char* doing, const std::function<Status(std::size_t)>& job) {
  require_usable(doing);
  team->run([&](std::size_t thread) {
    const std::size_t part = share.first() + thread;
    const Status done = job(part);
    if (!done && done.error().code != Errc::cancelled) fail(part, done.error());
  });
  throw_failure(doing);
}

void Simulation::State::fail(std::size_t part, Error error) {
  progress.fail(part, error);
  // Threads of this process may also be waiting for other ranks.
  if (share.ranks() != nullptr) share.ranks()->fail(fmt::format("{} failed", share.device(part).name()));
}

Status Simulation::State::run_part(std::size_t part, std::uint64_t count) noexcept {
  if (resident) {
    const auto longest = static_cast<std::uint64_t>(options.redundant);
    return resident->run(part,
                         {.count = count, .redundant = longest, .steps_done = steps_done, .cycles_done = cycles_done});
  }
  if (slabs) return slabs->run(count, steps_done);
  const Status status = enqueue_cycles(part, count, true);
  const Status waited = parts[part]->wait();
  return status ? waited : status;
}

Status Simulation::State::enqueue_cycles(std::size_t part, std::uint64_t count, bool last_of_call) noexcept {
  const auto longest = static_cast<std::uint64_t>(options.redundant);
  std::uint64_t cycle = cycles_done;
  Status status;
  for (std::uint64_t done = 0; done < count && status; done += longest) {
    const auto steps = static_cast<std::size_t>(std::min(longest, count - done));
    const PartPlans& plans = parts[part]->plans();
    const CyclePlan& plan = (last_of_call && count - done <= longest ? plans.last : plans.amid)[steps - 1];
    status = parts[part]->run_cycle(++cycle, plan, steps_done + done, progress);
  }
  return status;
}

void Simulation::State::require_same(Call call) const {
  if (share.ranks() == nullptr) return;
  birth.require("calling a grid");
  throw_failure("calling a grid");
  call.steps_done = steps_done;
  share.require_same(call, given, given_what);
}

void Simulation::State::step(std::uint64_t count) {
  require_usable("stepping a grid");
  if (slabs) prepare_slabs(count);
  on_every_part("stepping a grid", [&](std::size_t part) { return run_part(part, count); });
  advance(count);
}

void Simulation::State::prepare_slabs(std::uint64_t count) try {
  slabs->prepare(count);
} catch (const DeviceError& error) {
  // After running out of memory, the simulation can continue, with fewer steps at a time or once memory is free. After
  // a fault it cannot.
  if (error.code() != Errc::device_fault) throw;
  fail(share.first(), {error.code(), error.native()});
  throw_failure("stepping a grid");
}

void Simulation::State::advance(std::uint64_t count) noexcept {
  const auto longest = static_cast<std::uint64_t>(options.redundant);
  cycles_done += (count + longest - 1) / longest;
  steps_done += count;
}

void Simulation::State::require_field(int field) const {
  if (field >= 0 && field < program.field_count) return;
  throw UsageError(fmt::format("stencil {} has fields 0 to {}, not {}", program.name, program.field_count - 1, field));
}

void Simulation::State::require_in_core(const char* what) const {
  if (!slabs) return;
  throw UsageError(fmt::format("a domain of {} that is larger than the memory of its device has no {} yet: its fields "
                               "are in host memory; read one with get()",
                               to_string(decomposition.extent()), what),
                   Errc::not_supported);
}

void Simulation::State::require_array(int field, TypeKey value_type, std::size_t count) const {
  require_field(field);
  if (value_type != program.value_type) {
    throw UsageError(fmt::format("stencil {} has values of a different type ({} bytes each) from the array",
                                 program.name, program.value_bytes));
  }
  const auto cells = static_cast<std::size_t>(decomposition.extent().cells());
  if (count != cells) {
    throw UsageError(fmt::format("an array of {} values does not fit a domain of {}: it must have {}", count,
                                 to_string(decomposition.extent()), cells));
  }
}

}  // namespace headrace::grid
