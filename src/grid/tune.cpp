#include "headrace/grid/simulation.hpp"

#include <algorithm>
#include <memory>

#include "grid/trials.hpp"
#include "headrace/base/error.hpp"

namespace headrace::grid {

namespace {

constexpr int kRuns = 3;

}  // namespace

Duration measure_step(const RunSteps& run, std::uint64_t steps, int redundant) {
  const auto cycle = static_cast<std::uint64_t>(redundant);
  const std::uint64_t whole = (steps + cycle - 1) / cycle * cycle;
  run(whole);
  Duration best = Duration::max();
  for (int i = 0; i < kRuns; ++i) {
    const Time before = SteadyClock::now();
    run(whole);
    best = std::min(best, (SteadyClock::now() - before) / static_cast<Duration::rep>(whole));
  }
  return best;
}

std::vector<SimulationOptions> combinations(const SimulationOptions& rest, std::span<const int> redundant,
                                            std::span<const Push> pushes, std::span<const Mode> modes) {
  std::vector<SimulationOptions> all;
  for (const Mode mode : modes) {
    for (const int layers : redundant) {
      for (const Push push : pushes) {
        if (mode == Mode::resident && push != Push::store && push != Push::automatic) continue;
        SimulationOptions& made = all.emplace_back(rest);
        made.redundant = layers;
        made.push = push;
        made.mode = mode;
      }
    }
  }
  return all;
}

Tuned try_all(const std::vector<SimulationOptions>& choices, const SimulationOptions& fallback, std::uint64_t steps,
              const MakeRun& make) {
  if (steps == 0) throw UsageError("a trial needs at least one step");
  Tuned tuned;
  Duration shortest = Duration::max();
  for (const SimulationOptions& options : choices) {
    Trial& trial = tuned.trials.emplace_back(Trial{.options = options, .per_step = Duration::max(), .why_not = {}});
    try {
      trial.per_step = measure_step(make(options), steps, options.redundant);
    } catch (const Exception& error) {
      // After a device fault, every further trial would fail too.
      if (error.code() == Errc::device_fault) throw;
      trial.why_not = error.what();
      continue;
    }
    if (trial.per_step >= shortest) continue;
    shortest = trial.per_step;
    tuned.best = options;
  }
  if (shortest == Duration::max()) static_cast<void>(make(fallback));
  return tuned;
}

Tuned tune(const Decomposition& decomposition, const std::vector<Device>& devices, const StencilProgram& program,
           std::uint64_t steps, const std::vector<Mode>& modes) {
  if (modes.empty()) throw UsageError("tuning needs at least one mode to try");
  const bool alone = decomposition.parts().size() == 1;
  const auto choices =
      alone ? combinations({}, kUntried, kNoPush, modes) : combinations({}, kTriedRedundant, kTriedPushes, modes);
  return try_all(choices, {.mode = modes.front()}, steps, [&](const SimulationOptions& options) -> RunSteps {
    const auto simulation = std::make_shared<Simulation>(decomposition, devices, program, options);
    return [simulation](std::uint64_t count) {
      simulation->set_steps_done(0);  // the stencil's tables of steps may end after these
      simulation->step(count);
    };
  });
}

}  // namespace headrace::grid
