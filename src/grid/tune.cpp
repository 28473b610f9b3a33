#include "headrace/grid/tune.hpp"

#include <algorithm>

#include "headrace/base/error.hpp"

namespace headrace::grid {

namespace {

constexpr int kRuns = 3;

[[nodiscard]] Trial try_options(const Decomposition& decomposition, const std::vector<Device>& devices,
                                const StencilProgram& program, std::uint64_t steps, const SimulationOptions& options) {
  Trial trial{.options = options, .per_step = Duration::max(), .why_not = {}};
  const auto cycle = static_cast<std::uint64_t>(options.redundant);
  const std::uint64_t whole = (steps + cycle - 1) / cycle * cycle;
  Simulation simulation(decomposition, devices, program, options);
  for (int run = 0; run <= kRuns; ++run) {
    simulation.set_steps_done(0);  // a table of what happens at each step may be no longer than this
    const Time before = SteadyClock::now();
    simulation.step(whole);
    const Duration took = (SteadyClock::now() - before) / static_cast<Duration::rep>(whole);
    if (run > 0) trial.per_step = std::min(trial.per_step, took);
  }
  return trial;
}

/// All that one could choose.
[[nodiscard]] std::vector<SimulationOptions> choices(std::size_t parts, const std::vector<Mode>& modes) {
  std::vector<SimulationOptions> all;
  for (const Mode mode : modes) {
    if (parts == 1) {
      all.push_back({.mode = mode});
      continue;
    }
    for (const int redundant : {1, 2, 4, 8}) {
      for (const Push push : {Push::store, Push::copy, Push::host}) {
        if (mode == Mode::streams || push == Push::store) {
          all.push_back({.redundant = redundant, .push = push, .mode = mode});
        }
      }
    }
  }
  return all;
}

}  // namespace

Tuned tune(const Decomposition& decomposition, const std::vector<Device>& devices, const StencilProgram& program,
           std::uint64_t steps, const std::vector<Mode>& modes) {
  if (steps == 0) throw UsageError("a trial needs at least one step");
  if (modes.empty()) throw UsageError("there is no mode to try");
  Tuned tuned;
  Duration shortest = Duration::max();
  for (const SimulationOptions& options : choices(decomposition.parts().size(), modes)) {
    try {
      tuned.trials.push_back(try_options(decomposition, devices, program, steps, options));
    } catch (const Exception& error) {
      // What has been lost to a fault is lost to every trial after it, too.
      if (error.code() == Errc::device_fault) throw;
      tuned.trials.push_back({.options = options, .per_step = Duration::max(), .why_not = error.what()});
      continue;
    }
    if (tuned.trials.back().per_step >= shortest) continue;
    shortest = tuned.trials.back().per_step;
    tuned.best = options;
  }
  if (shortest == Duration::max()) {
    const Simulation refused(decomposition, devices, program,
                             choices(1, modes).front());  // says why, if it still cannot
  }
  return tuned;
}

}  // namespace headrace::grid
