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

}  // namespace

Tuned tune(const Decomposition& decomposition, const std::vector<Device>& devices, const StencilProgram& program,
           std::uint64_t steps) {
  if (steps == 0) throw UsageError("a trial needs at least one step");
  if (decomposition.parts().size() == 1) {
    Tuned only{.best = {}, .trials = {try_options(decomposition, devices, program, steps, {})}};
    return only;
  }
  Tuned tuned;
  Duration shortest = Duration::max();
  for (const int redundant : {1, 2, 4, 8}) {
    for (const Push push : {Push::store, Push::copy, Push::host}) {
      const SimulationOptions options{.redundant = redundant, .push = push};
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
  }
  if (shortest == Duration::max()) {
    const Simulation refused(decomposition, devices, program);  // says why, if it still cannot be
  }
  return tuned;
}

}  // namespace headrace::grid
