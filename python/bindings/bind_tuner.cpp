#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include <functional>
#include <string>
#include <vector>

#include "bindings.hpp"
#include "convert.hpp"
#include "headrace/serve/tuner.hpp"
#include "interrupt.hpp"
#include "search_options.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

using serve::CacheUse;
using serve::TunedPlan;
using serve::TunerOptions;
using serve::TunerProgress;

CacheUse parse_cache(std::string_view text) {
  if (text == "use") return CacheUse::use;
  if (text == "refresh") return CacheUse::refresh;
  if (text == "ignore") return CacheUse::ignore;
  throw UsageError(fmt::format("'{}' is not a use of the cache: use, refresh, ignore", text));
}

TunedPlan tune_plan(const DeviceOrName& device, const serve::Operator& op, double bound, double budget,
                    const std::vector<std::string>& schedules, std::string_view arrivals, std::uint64_t seed,
                    std::uint32_t generators, bool single_thread, std::uint32_t threads_max, double window,
                    double rank_tolerance, std::string_view cache, const std::string& cache_file, bool measure_cached,
                    bool exhaustive, const std::optional<std::function<void(TunerProgress)>>& progress) {
  Interruptible interruptible;
  TunerOptions options;
  set_search(options, bound, arrivals, seed, generators, window, rank_tolerance, interruptible.token());
  options.budget = to_duration("budget", budget);
  for (const std::string& schedule : schedules) options.schedules.push_back(serve::parse_schedule(schedule));
  options.single_thread = single_thread;
  options.threads_max = threads_max;
  options.cache = parse_cache(cache);
  options.cache_file = cache_file;
  options.measure_cached = measure_cached;
  const Device parsed = to_device(device);
  const auto on_progress = progress ? interruptible.guard(*progress) : std::function<void(TunerProgress)>{};
  return interruptible.run([&] {
    return exhaustive ? serve::tune_exhaustively(parsed, op, options, on_progress)
                      : serve::tune(parsed, op, options, on_progress);
  });
}

}  // namespace

void bind_tuner(nb::module_& module) {
  nb::class_<TunerProgress>(module, "TunerProgress", "The progress of a tuner.")
      .def_prop_ro(
          "phase", [](const TunerProgress& self) { return self.phase; },
          "\"coarse\", \"fine\", \"rates\" or \"exhaustive\".")
      .def_ro("done", &TunerProgress::done, "Plans of this phase that are done.")
      .def_ro("of", &TunerProgress::of, "0 if unknown.")
      .def_ro("plan", &TunerProgress::plan, "The plan being tried.")
      .def_ro("best_per_second", &TunerProgress::best_per_second);
  nb::class_<TunedPlan>(module, "TunedPlan", "A plan that was found, and its results.")
      .def_ro("plan", &TunedPlan::plan)
      .def_ro("generators", &TunedPlan::generators)
      .def_ro("per_second", &TunedPlan::per_second, "Sustained with p99 within the bound; 0 if no plan was found.")
      .def_prop_ro("p99", [](const TunedPlan& self) { return to_seconds(self.p99); })
      .def_ro("load", &TunedPlan::load, "None if the plan comes from the cache and was not measured.")
      .def_ro("stages", &TunedPlan::stages)
      .def_prop_ro(
          "took", [](const TunedPlan& self) { return to_seconds(self.took); }, "Seconds.")
      .def_ro("space", &TunedPlan::space, "Number of plans to choose from.")
      .def_ro("looked_at", &TunedPlan::looked_at, "Plans whose capacity was measured.")
      .def_ro("searched", &TunedPlan::searched, "Plans whose highest rate was searched for.")
      .def_ro("cached", &TunedPlan::cached)
      .def_ro("interrupted", &TunedPlan::interrupted, "Whether Ctrl-C ended it early.")
      .def_ro("note", &TunedPlan::note, "Why there is no plan.");
  module.def("tune", &tune_plan, "device"_a, "operator"_a, nb::kw_only(), "bound"_a = 0.5e-3, "budget"_a = 60.0,
             "schedules"_a = std::vector<std::string>{}, "arrivals"_a = "poisson", "seed"_a = 1, "generators"_a = 1,
             "single_thread"_a = false, "threads_max"_a = 0, "window"_a = 0.1, "rank_tolerance"_a = 0.002,
             "cache"_a = "use", "cache_file"_a = "", "measure_cached"_a = true, "exhaustive"_a = false,
             "progress"_a = nb::none(),
             "Searches for the plan that sustains the highest rate with p99 within `bound` seconds, for about `budget` "
             "seconds. What is found is kept in `cache_file` (empty: plan_cache_file()); `cache` \"refresh\" searches "
             "again, \"ignore\" neither reads nor writes it. `exhaustive` searches the rate of every plan there is, "
             "without cache and budget. `progress` is called from another thread. Ctrl-C ends it with the best so "
             "far. Raises UsageError naming the option that is out of range.");
  module.def(
      "plan_cache_file", [] { return serve::plan_cache_file().string(); },
      "The file that stores the plans found; empty if no folder is known.");
}

}  // namespace headrace::python
