#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <memory>
#include <vector>

#include "bindings.hpp"
#include "convert.hpp"
#include "gil.hpp"
#include "headrace/serve/detail/ladder.hpp"
#include "interrupt.hpp"
#include "load_options.hpp"
#include "search_options.hpp"
#include "serve/load_session.hpp"
#include "serve/search_plan.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

using measure::LoadOptions;
using measure::LoadResult;
using serve::Capacity;
using serve::LadderProgress;
using serve::LadderResult;
using serve::LoadSession;
using serve::PlanLoad;
using serve::PlanSearch;
using serve::Roofs;
using serve::RungResult;

void bind_roofs(nb::module_& module) {
  nb::class_<Roofs>(module, "Roofs",
                    "The limits that the hardware sets for one operator, each measured alone, in queries per second.")
      .def_ro("link_in", &Roofs::link_in, "Queries copied to the device at the bandwidth of a large copy.")
      .def_ro("link_out", &Roofs::link_out, "Answers copied back in the same way.")
      .def_ro("compute", &Roofs::compute,
              "Queries that are already on the device, one saturating launch after the other.")
      .def_ro("generator", &Roofs::generator, "Arrivals of one generator thread against an engine that does nothing.")
      .def_ro("generators", &Roofs::generators)
      .def_prop_ro("lowest", &Roofs::lowest, "The lowest of them, with all generator threads counted.")
      .def_prop_ro("lowest_name", &Roofs::lowest_name,
                   "Its name: \"link to device\", \"link to host\", \"compute\" or \"generator\".");
  module.def(
      "roofs",
      [](const DeviceOrName& device, const serve::Operator& op, std::uint32_t generators) {
        const Device parsed = to_device(device);
        const GilRelease released;
        return serve::measure_roofs(parsed, op, generators);
      },
      "device"_a, "operator"_a, "generators"_a = 1, "Measures all roofs, in about half a second.");
}

void bind_ladder_results(nb::module_& module) {
  nb::class_<LadderProgress>(module, "LadderProgress", "The progress of a climb.")
      .def_ro("rung", &LadderProgress::rung, "0 while roofs are measured.")
      .def_ro("threads", &LadderProgress::threads)
      .def_ro("rate_per_second", &LadderProgress::rate_per_second,
              "Incoming rate being tried; 0 while measuring capacity.")
      .def_ro("measured_per_second", &LadderProgress::measured_per_second)
      .def_prop_ro("p99", [](const LadderProgress& progress) { return to_seconds(progress.p99); })
      .def_ro("best_per_second", &LadderProgress::best_per_second, "Best rate of this rung so far.");
  nb::class_<Capacity>(module, "Capacity", "Queries per second with this many threads when nothing bounds latency.")
      .def_ro("threads", &Capacity::threads, "Engine threads; generator threads under \"dispatched\".")
      .def_ro("streams_per_thread", &Capacity::streams_per_thread)
      .def_ro("batch_max", &Capacity::batch_max)
      .def_ro("per_second", &Capacity::per_second);
  nb::class_<RungResult>(module, "RungResult", "One rung's figures. Without `load` there are none; `note` says why.")
      .def_ro("rung", &RungResult::rung)
      .def_ro("plan", &RungResult::plan, "With the thread count that did best.")
      .def_ro("load", &RungResult::load)
      .def_ro("generators", &RungResult::generators, "Generator threads of `load`.")
      .def_ro("tried", &RungResult::tried, "All loads on `plan`, by incoming rate.")
      .def_ro("stages", &RungResult::stages)
      .def_ro("samples", &RungResult::samples, "Some queries of `load`, for a timeline.")
      .def_ro("capacities", &RungResult::capacities, "For every thread count tried.")
      .def_ro("note", &RungResult::note);
  nb::class_<LadderResult>(module, "LadderResult",
                           "The results of a climb for each rung, and the roofs to compare them with.")
      .def_ro("roofs", &LadderResult::roofs, "The higher ones of two measurements, before and after the climb.")
      .def_ro("roofs_disturbed", &LadderResult::roofs_disturbed, "Why they may not be the machine's own, or empty.")
      .def_ro("rungs", &LadderResult::rungs)
      .def_ro("interrupted", &LadderResult::interrupted, "Whether Ctrl-C ended it early.");
  nb::class_<PlanSearch>(module, "PlanSearch",
                         "The highest rate that one plan sustains. Without `confirmed` there is none; `note` says why.")
      .def_ro("plan", &PlanSearch::plan, "As it ran: with a client for each generator thread.")
      .def_ro("generators", &PlanSearch::generators)
      .def_ro("capacity", &PlanSearch::capacity, "Queries per second when nothing bounds latency.")
      .def_ro("confirmed", &PlanSearch::confirmed, "The loads at the highest rate at which all of them were sustained.")
      .def_ro("loads", &PlanSearch::loads, "Loads that it took to confirm that rate, including those not sustained.")
      .def_ro("tried", &PlanSearch::tried, "Every load, by incoming rate.")
      .def_ro("note", &PlanSearch::note);
  nb::class_<PlanLoad>(module, "PlanLoad", "The results of one plan under one load.")
      .def_ro("load", &PlanLoad::load)
      .def_ro("stages", &PlanLoad::stages)
      .def_ro("roofs", &PlanLoad::roofs, "The higher ones of two measurements, before and after the load.")
      .def_ro("roofs_disturbed", &PlanLoad::roofs_disturbed, "Why they may not be the machine's own, or empty.");
}

LadderResult ladder(const DeviceOrName& device, const serve::Operator& op, double bound, const std::vector<int>& rungs,
                    std::string_view arrivals, std::uint64_t seed, std::uint32_t generators, bool single_thread,
                    std::uint32_t threads_max, double window, double rank_tolerance, std::optional<double> budget,
                    const std::optional<std::function<void(LadderProgress)>>& progress,
                    const std::optional<std::function<void(RungResult)>>& finished) {
  Interruptible interruptible;
  serve::LadderOptions options;
  set_search(options, bound, arrivals, seed, generators, window, rank_tolerance, interruptible.token());
  options.rungs = rungs;
  options.single_thread = single_thread;
  options.threads_max = threads_max;
  if (budget) options.budget = to_duration("budget", *budget);
  const Device parsed = to_device(device);
  const std::function<void(LadderProgress)> none;
  const auto on_progress = progress ? interruptible.guard(*progress) : none;
  const auto on_finished = finished ? interruptible.guard(*finished) : std::function<void(RungResult)>{};
  return interruptible.run([&] { return serve::climb(parsed, op, options, on_progress, on_finished); });
}

PlanLoad load(const DeviceOrName& device, const serve::Operator& op, const serve::Plan& plan,
              std::optional<double> rate, std::string_view arrivals, std::uint64_t seed,
              const std::vector<double>& trace, std::uint32_t generators, double warm_up, double window,
              int windows_max, int stable_windows, double stable_within, std::uint64_t samples,
              const std::optional<WindowCallback>& progress) {
  Interruptible interruptible;
  LoadOptions options =
      load_options(rate, arrivals, seed, trace, warm_up, window, windows_max, stable_windows, stable_within, samples);
  const WindowCallback on_window = progress ? interruptible.guard(*progress) : WindowCallback{};
  report_to(options, interruptible, on_window);
  const Device parsed = to_device(device);
  return interruptible.run([&] { return serve::load(parsed, op, plan, options, generators); });
}

PlanSearch search_plan(const DeviceOrName& device, const serve::Operator& op, const serve::Plan& plan, double bound,
                       std::string_view arrivals, std::uint64_t seed, std::uint32_t generators, double start,
                       double most, std::uint32_t confirmations, std::uint32_t tries, double resolution, double window,
                       double rank_tolerance) {
  Interruptible interruptible;
  serve::PlanSearchOptions options;
  set_search(options, bound, arrivals, seed, generators, window, rank_tolerance, interruptible.token());
  options.start_per_second = start;
  options.most_per_second = most;
  options.confirmations = confirmations;
  options.tries = tries;
  options.resolution = resolution;
  const Device parsed = to_device(device);
  return interruptible.run([&] { return serve::search_plan(parsed, op, plan, options); });
}

LoadResult run_session(LoadSession& session, std::optional<double> rate, std::string_view arrivals, std::uint64_t seed,
                       const std::vector<double>& trace, double warm_up, double window, int windows_max,
                       int stable_windows, double stable_within, std::uint64_t samples,
                       const std::optional<WindowCallback>& progress) {
  Interruptible interruptible;
  LoadOptions options =
      load_options(rate, arrivals, seed, trace, warm_up, window, windows_max, stable_windows, stable_within, samples);
  const WindowCallback on_window = progress ? interruptible.guard(*progress) : WindowCallback{};
  report_to(options, interruptible, on_window);
  return interruptible.run([&] { return session.run(options); });
}

void bind_functions(nb::module_& module) {
  module.def("ladder", &ladder, "device"_a, "operator"_a, nb::kw_only(), "bound"_a = 0.5e-3,
             "rungs"_a = std::vector<int>{}, "arrivals"_a = "poisson", "seed"_a = 1, "generators"_a = 1,
             "single_thread"_a = false, "threads_max"_a = 0, "window"_a = 0.1, "rank_tolerance"_a = 0.002,
             "budget"_a = nb::none(), "progress"_a = nb::none(), "finished"_a = nb::none(),
             "Climbs: for each rung (all, where none is named), the highest incoming rate that is sustained with p99 "
             "within `bound` seconds. Every answer is compared with the host's. `progress` and `finished` are called "
             "from another thread. Ctrl-C ends the climb: the result then is `interrupted` and has the rungs measured "
             "so far. `budget` ends it likewise after so many seconds. `single_thread` keeps every rung to one engine "
             "thread and one generator. Raises UsageError "
             "naming the option that is out of range.");
  module.def(
      "search_plan", &search_plan, "device"_a, "operator"_a, "plan"_a = serve::Plan{}, nb::kw_only(),
      "bound"_a = 0.5e-3, "arrivals"_a = "poisson", "seed"_a = 1, "generators"_a = 1, "start"_a = 0.0, "most"_a = 1e12,
      "confirmations"_a = 1, "tries"_a = 3, "resolution"_a = 0.03, "window"_a = 0.1, "rank_tolerance"_a = 0.002,
      "Searches for the highest incoming rate that `plan` sustains with p99 within `bound` seconds, from `start` "
      "queries/s (0: from its capacity) and never above `most`, and confirms it `confirmations` times. A rate is "
      "not sustained when `tries` loads in a row are not; in the end a good and a bad rate differ by the share "
      "`resolution`. Answers are verified. Ctrl-C ends it with what there is. Raises UsageError naming the option that "
      "is out of "
      "range.");
  module.def("load", &load, "device"_a, "operator"_a, "plan"_a = serve::Plan{}, nb::kw_only(), "rate"_a = nb::none(),
             "arrivals"_a = "poisson", "seed"_a = 1, "trace"_a = std::vector<double>{}, "generators"_a = 1,
             "warm_up"_a = 0.05, "window"_a = 0.1, "windows_max"_a = 12, "stable_windows"_a = 3,
             "stable_within"_a = 0.05, "samples"_a = 0, "progress"_a = nb::none(),
             "Puts one load of `rate` queries/s on one plan, answers verified, until `stable_windows` windows in a row "
             "differ by no more than `stable_within` and hold `samples` latencies, or `windows_max` have passed. "
             "`progress(windows, measured_per_second, p99)` is called from another thread. Ctrl-C ends it early. "
             "Raises UsageError when the rate is beyond the generator's ceiling.");
}

void bind_session(nb::module_& module) {
  nb::class_<LoadSession>(module, "LoadSession", "An engine for consecutive loads, every answer verified.")
      .def(
          "__init__",
          [](LoadSession* self, const DeviceOrName& device, const serve::Operator& op, const serve::Plan& plan,
             std::uint32_t generators, std::uint64_t seed) {
            const Device parsed = to_device(device);
            const GilRelease released;
            new (self) LoadSession(parsed, op, plan, generators, seed);
          },
          "device"_a, "operator"_a, "plan"_a = serve::Plan{}, nb::kw_only(), "generators"_a = 1, "seed"_a = 1)
      .def("run", &run_session, nb::kw_only(), "rate"_a = nb::none(), "arrivals"_a = "poisson", "seed"_a = 1,
           "trace"_a = std::vector<double>{}, "warm_up"_a = 0.05, "window"_a = 0.1, "windows_max"_a = 12,
           "stable_windows"_a = 3, "stable_within"_a = 0.05, "samples"_a = 0, "progress"_a = nb::none(),
           "Runs one load, like load(); everything of it has been answered when this returns.")
      .def("statistics", &LoadSession::statistics, "Over all runs so far.")
      .def("stop", &LoadSession::stop, nb::call_guard<GilRelease>(), "Ends the engine's threads.");
}

}  // namespace

void bind_ladder(nb::module_& module) {
  bind_roofs(module);
  bind_ladder_results(module);
  bind_functions(module);
  bind_session(module);
}

}  // namespace headrace::python
