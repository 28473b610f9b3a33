#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include <limits>

#include "bindings.hpp"
#include "convert.hpp"
#include "gil.hpp"
#include "headrace/measure/detail/load.hpp"
#include "headrace/measure/detail/machine_watch.hpp"
#include "headrace/measure/detail/roofs.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

using measure::LatencySummary;
using measure::LoadResult;
using measure::MemoryRoofs;

template <Duration LatencySummary::* Field>
double latency(const LatencySummary& summary) {
  return to_seconds(summary.*Field);
}

void bind_latency(nb::module_& module) {
  nb::class_<LatencySummary>(module, "LatencySummary",
                             "Exact percentiles of a run's latencies, in seconds from the scheduled arrival.")
      .def_ro("count", &LatencySummary::count, "The number of latencies.")
      .def_prop_ro("mean", &latency<&LatencySummary::mean>)
      .def_prop_ro("p50", &latency<&LatencySummary::p50>)
      .def_prop_ro("p90", &latency<&LatencySummary::p90>)
      .def_prop_ro("p99", &latency<&LatencySummary::p99>)
      .def_prop_ro("p999", &latency<&LatencySummary::p999>)
      .def_prop_ro("max", &latency<&LatencySummary::max>)
      .def("__repr__", [](const LatencySummary& summary) {
        return fmt::format("LatencySummary(count={}, p50={:.3g} s, p99={:.3g} s)", summary.count,
                           to_seconds(summary.p50), to_seconds(summary.p99));
      });
}

void bind_machine(nb::module_& module) {
  using measure::MachineActivity;
  using measure::MachineWatch;
  nb::class_<MachineActivity>(module, "MachineActivity",
                              "What else the processors of this process did, as shares of their time.")
      .def_ro("others", &MachineActivity::others, "Time in which other processes ran.")
      .def_ro("steal", &MachineActivity::steal, "Time in which the hypervisor ran something else.")
      .def_ro("waiting", &MachineActivity::waiting, "Time in which some task waited for a processor.")
      .def_ro("runnable", &MachineActivity::runnable, "Other tasks that ran or waited for each processor, at the end.")
      .def_prop_ro(
          "over", [](const MachineActivity& activity) { return to_seconds(activity.over); }, "Seconds observed.")
      .def_prop_ro(
          "disturbed", [](const MachineActivity& activity) { return measure::why_disturbed(activity); },
          "Why the machine was not quiet; empty if it was.")
      .def("__repr__", [](const MachineActivity& activity) {
        return fmt::format("MachineActivity(others={:.2f}, steal={:.2f}, waiting={:.2f})", activity.others,
                           activity.steal, activity.waiting);
      });
  nb::class_<MachineWatch>(module, "MachineWatch", "Observes what else the machine does, from one lap to the next.")
      .def(nb::init<>())
      .def("lap", &MachineWatch::lap, "The activity since construction or the previous lap.");
}

void bind_load_result(nb::module_& module) {
  nb::class_<LoadResult>(module, "LoadResult", "The results of a load, over the windows that count.")
      .def_ro("incoming_per_second", &LoadResult::incoming_per_second, "Arrivals, whether refused or not.")
      .def_ro("measured_per_second", &LoadResult::measured_per_second, "Correct answers.")
      .def_ro("latency", &LoadResult::latency,
              "From the scheduled arrival until the client saw the answer, for admitted queries.")
      .def_ro("refusal", &LoadResult::refusal,
              "From the scheduled arrival until the client saw a server's refusal, over the whole run.")
      .def_prop_ro(
          "lateness_p99", [](const LoadResult& result) { return to_seconds(result.lateness_p99); },
          "Seconds from the scheduled arrival until the generator offered the query.")
      .def_prop_ro(
          "measured_for", [](const LoadResult& result) { return to_seconds(result.measured_for); },
          "Total length of the windows that count, in seconds.")
      .def_prop_ro("lateness_max", [](const LoadResult& result) { return to_seconds(result.lateness_max); })
      .def_ro("refused", &LoadResult::refused,
              "Offered but not admitted. Over the whole run, like the counts that follow.")
      .def_ro("late", &LoadResult::late, "Queries whose deadline passed before the answer; for loads on a server.")
      .def_ro("lost", &LoadResult::lost, "Sent, with no response; for loads on a server.")
      .def_ro("unsent", &LoadResult::unsent, "Not sent before the load ended; for loads on a server.")
      .def_ro("failed", &LoadResult::failed, "Answered with an error.")
      .def_ro("wrong", &LoadResult::wrong, "Answered, but not with the expected answer.")
      .def_ro("answered", &LoadResult::answered, "All that came back with an answer, correct or not.")
      .def_ro("windows", &LoadResult::windows, "The number of windows.")
      .def_ro("stable", &LoadResult::stable, "Whether the windows' rates agree and nothing was refused.")
      .def_ro("complete", &LoadResult::complete,
              "Whether everything scheduled in the windows was offered and answered.")
      .def_ro("machine", &LoadResult::machine, "What else the machine did meanwhile.")
      .def_prop_ro(
          "disturbed", [](const LoadResult& result) { return measure::why_disturbed(result); },
          "Why the figures may not be this machine's own; empty if it was quiet.")
      .def_ro("refused_counted", &LoadResult::refused_counted, "Refused arrivals in the windows that count.")
      .def_ro("unanswered_counted", &LoadResult::unanswered_counted,
              "Arrivals in the same windows that got no answer for any reason, including refused ones.")
      .def_prop_ro(
          "p99_offered",
          [](const LoadResult& result) {
            return result.p99_offered == Duration::max() ? std::numeric_limits<double>::infinity()
                                                         : to_seconds(result.p99_offered);
          },
          "p99 with each unanswered query counted as later than any answer; inf if it falls among these.")
      .def_ro("gave_up", &LoadResult::gave_up,
              "Whether it ended early as hopeless; the figures then cover part of a window.")
      .def_ro("interrupted", &LoadResult::interrupted, "Whether Ctrl-C ended it early.")
      .def("__repr__", [](const LoadResult& result) {
        return fmt::format("LoadResult(incoming={:.0f}/s, measured={:.0f}/s, p99={:.3g} s)", result.incoming_per_second,
                           result.measured_per_second, to_seconds(result.latency.p99));
      });
  module.def(
      "sustains",
      [](const LoadResult& result, double bound) { return measure::sustains(result, to_duration("bound", bound)); },
      "result"_a, "bound"_a,
      "Whether the system kept up (99% of arrivals), nothing failed, and p99 is within `bound` seconds.");
  module.def("samples_needed", &measure::samples_needed, "fraction"_a, "tolerance"_a = 0.002,
             "The number of samples that a percentile needs so that, with 95% confidence, its true rank is within "
             "`tolerance`.");
}

}  // namespace

void bind_measure(nb::module_& module) {
  bind_latency(module);
  bind_machine(module);
  bind_load_result(module);
  module.def(
      "read_trace",
      [](const std::string& path) {
        std::vector<double> seconds;
        for (const Duration offset : measure::read_trace(path)) seconds.push_back(to_seconds(offset));
        return seconds;
      },
      "path"_a,
      "The arrival times in a file, in seconds: one on each line, ascending; empty lines and lines that start with # "
      "are skipped. Raises SystemError if the file cannot be read, and DataError that names the line with an invalid "
      "time.");
  nb::class_<MemoryRoofs>(module, "MemoryRoofs", "The bandwidths of a device's memory system, in bytes per second.")
      .def_ro("to_device", &MemoryRoofs::to_device, "From pinned host memory to the device.")
      .def_ro("from_device", &MemoryRoofs::from_device, "From the device to pinned host memory.")
      .def_ro("on_device", &MemoryRoofs::on_device, "Within the device; bytes read plus bytes written.");
  module.def(
      "memory_roofs",
      [](const DeviceOrName& device) {
        const Device parsed = to_device(device);
        const GilRelease released;
        return measure::measure_memory_roofs(parsed);
      },
      "device"_a = "best", "Measures these rates, in a few tenths of a second.");
  module.def(
      "memory_copies",
      [](const std::vector<DeviceOrName>& devices, std::size_t bytes, int runs) {
        std::vector<Device> parsed;
        for (const DeviceOrName& device : devices) parsed.push_back(to_device(device));
        const GilRelease released;
        return measure::measure_memory_copies(parsed, bytes, runs);
      },
      "devices"_a, "bytes"_a, "runs"_a = 5,
      "Bytes read plus bytes written per second, of all devices together, for copies of `bytes` within the memory of "
      "each at the same time: one figure for each run.");
}

}  // namespace headrace::python
