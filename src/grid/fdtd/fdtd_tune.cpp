#include "grid/fdtd_tune.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "grid/fdtd/fdtd_names.hpp"
#include "grid/fdtd/fdtd_options.hpp"
#include "grid/trials.hpp"
#include "headrace/base/error.hpp"

namespace headrace::grid {

namespace {

[[nodiscard]] RunSteps make_run(const FdtdOptions& options) {
  const auto fdtd = std::make_shared<Fdtd>(options);
  return [fdtd](std::uint64_t count) { fdtd->step(count); };
}

/// Slabs have no exchanges, and the length of their passes follows from their visits.
[[nodiscard]] bool in_slabs(const FdtdOptions& options) { return Fdtd(options).simulation().slabs().has_value(); }

/// The forced value, or else the values to try.
template <class Value>
[[nodiscard]] std::span<const Value> only(const std::optional<Value>& forced, std::span<const Value> tried) {
  return forced ? std::span<const Value>(&*forced, 1) : tried;
}

}  // namespace

Tuned tune(const FdtdOptions& asked, const Forced& forced, std::uint64_t steps) {
  if (asked.simulation.ranks)
    throw UsageError("redundant layers and push cannot be tuned over several ranks; set both of them");
  const FdtdOptions options = with_all_cores(asked);
  const SimulationOptions& given = options.simulation;
  const bool alone = options.devices.size() == 1;
  const bool in_passes = options.dimensions == 2 && options.pole_values == 0 && given.mode == Mode::streams &&
                         given.passes != Passes::never && !is_periodic(options);
  std::vector<int> layers(kTriedRedundant.begin(), kTriedRedundant.end());
  if (given.redundant > layers.back()) layers.push_back(given.redundant);
  if (alone && (!in_passes || in_slabs(options))) layers = {given.redundant};
  const std::span<const Push> pushes = alone ? std::span<const Push>(kNoPush) : kTriedPushes;
  SimulationOptions fallback = given;
  fallback.redundant = forced.redundant.value_or(given.redundant);
  fallback.push = forced.push.value_or(Push::automatic);
  const auto choices = combinations(given, only(forced.redundant, std::span<const int>(layers)),
                                    only(forced.push, pushes), std::span(&given.mode, 1));
  return try_all(choices, fallback, steps, [&](const SimulationOptions& tried) {
    FdtdOptions its = options;
    its.simulation = tried;
    return make_run(its);
  });
}

std::vector<double> measure_speeds(const FdtdOptions& options, std::uint64_t steps) {
  if (steps == 0) throw UsageError("measuring a speed needs at least one step");
  if (options.devices.empty()) throw UsageError("measuring a speed needs at least one device");
  const bool flat = options.dimensions == 2;
  FdtdOptions slab = options;
  const std::int64_t even =
      (flat ? options.extent.ny : options.extent.nz) / static_cast<std::int64_t>(options.devices.size());
  // Leaves room for absorbing layers at both ends and a cell between them.
  const std::int64_t thick = std::max({even, 2 * options.cpml.cells + 1, std::int64_t{2}});
  (flat ? slab.extent.ny : slab.extent.nz) = thick;
  slab.decomposition.reset();
  slab.periodic = {};  // it may be thinner than the ghosts beyond such walls
  slab.simulation.ranks = nullptr;
  slab.simulation.push = Push::automatic;
  std::vector<double> speeds;
  for (std::size_t i = 0; i < options.devices.size(); ++i) {
    const auto before = std::ranges::find(options.devices, options.devices[i]) - options.devices.begin();
    if (static_cast<std::size_t>(before) < i) {
      speeds.push_back(speeds[static_cast<std::size_t>(before)]);
      continue;
    }
    slab.devices = {options.devices[i]};
    const Duration per_step = measure_step(make_run(slab), steps, std::max(slab.simulation.redundant, 1));
    const double seconds = std::chrono::duration<double>(std::max(per_step, Duration(1))).count();
    speeds.push_back(static_cast<double>(slab.extent.cells()) / seconds);
  }
  return speeds;
}

}  // namespace headrace::grid
