#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bindings.hpp"
#include "convert.hpp"
#include "interrupt.hpp"
#include "measure/oversubscription.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

using measure::AccessRoofs;
using measure::OversubscriptionCell;
using measure::OversubscriptionOptions;
using measure::OversubscriptionProgress;
using measure::OversubscriptionReport;
using measure::OversubscriptionResult;

using Names = std::vector<std::string>;

/// The values with these names, or `otherwise` if none are given.
template <class T, class Parse>
std::vector<T> parsed(const std::optional<Names>& names, const std::vector<T>& otherwise, Parse parse) {
  if (!names) return otherwise;
  std::vector<T> values;
  for (const std::string& name : *names) values.push_back(parse(name));
  return values;
}

template <class T>
std::vector<std::string> named(const std::vector<T>& values) {
  std::vector<std::string> names;
  for (const T value : values) names.emplace_back(to_string(value));
  return names;
}

void bind_cell(nb::module_& module) {
  nb::class_<OversubscriptionCell>(module, "OversubscriptionCell", "One measurement of `oversubscribe`.")
      .def_prop_ro("pattern", [](const OversubscriptionCell& cell) { return to_string(cell.pattern); })
      .def_prop_ro(
          "rows", [](const OversubscriptionCell& cell) { return to_string(cell.rows); }, "For zipf-rows only.")
      .def_prop_ro("operation", [](const OversubscriptionCell& cell) { return to_string(cell.operation); })
      .def_prop_ro("strategy", [](const OversubscriptionCell& cell) { return to_string(cell.strategy); })
      .def_ro("factor", &OversubscriptionCell::factor, "Bytes of data over bytes of the budget.")
      .def_ro("page_bytes", &OversubscriptionCell::page_bytes,
              "For random-warp, the page that is drawn; for prefetched, the pages that data is split into.")
      .def_ro("threads", &OversubscriptionCell::threads, "Threads of a block.")
      .def_ro("synchronised", &OversubscriptionCell::synchronised,
              "Whether the threads of a block meet after every iteration of the loop.")
      .def("__repr__", [](const OversubscriptionCell& cell) {
        return fmt::format("OversubscriptionCell({}, {}, {}, factor={})", to_string(cell.pattern),
                           to_string(cell.operation), to_string(cell.strategy), cell.factor);
      });
}

void bind_oversubscription_results(nb::module_& module) {
  nb::class_<AccessRoofs>(module, "AccessRoofs",
                          "Bytes per second at which a kernel goes through memory in order, with one operation.")
      .def_prop_ro("operation", [](const AccessRoofs& roofs) { return to_string(roofs.operation); })
      .def_ro("on_device", &AccessRoofs::on_device, "Memory of the device.")
      .def_ro("over_link", &AccessRoofs::over_link, "Mapped host memory.");
  nb::class_<OversubscriptionResult>(module, "OversubscriptionResult", "The results of a cell.")
      .def_ro("cell", &OversubscriptionResult::cell)
      .def_ro("data_bytes", &OversubscriptionResult::data_bytes)
      .def_ro("touched_bytes", &OversubscriptionResult::touched_bytes,
              "Bytes that one run touches, counted as often as they are touched.")
      .def_ro("device_bytes", &OversubscriptionResult::device_bytes, "Those on the device.")
      .def_ro("host_bytes", &OversubscriptionResult::host_bytes,
              "Those on the host. With on-demand all cross the link and count for both.")
      .def_ro("blocks", &OversubscriptionResult::blocks, "Blocks of the launch.")
      .def_prop_ro(
          "times",
          [](const OversubscriptionResult& result) {
            std::vector<double> seconds;
            for (const Duration time : result.times) seconds.push_back(to_seconds(time));
            return seconds;
          },
          "Seconds of each timed run, on the device's clock; empty if it was not run.")
      .def_ro("bytes_per_second", &OversubscriptionResult::bytes_per_second, "Touched, at the median time.")
      .def_ro("roof", &OversubscriptionResult::roof,
              "Bytes touched over max(device bytes / memory bandwidth, host bytes / link bandwidth). Caches may exceed "
              "it if rows are touched repeatedly.")
      .def_ro("verified", &OversubscriptionResult::verified)
      .def_ro("note", &OversubscriptionResult::note, "Why it was not run.");
  nb::class_<OversubscriptionReport>(module, "OversubscriptionReport", "Every cell, and the roofs of the same run.")
      .def_ro("budget_bytes", &OversubscriptionReport::budget_bytes)
      .def_ro("roofs", &OversubscriptionReport::roofs, "One for each operation.")
      .def_ro("copy_to_device", &OversubscriptionReport::copy_to_device,
              "Bytes per second of the copy engine, which migrates pages; 0 if not needed.")
      .def_ro("cells", &OversubscriptionReport::cells)
      .def_ro("interrupted", &OversubscriptionReport::interrupted, "Whether Ctrl-C ended it early.");
  nb::class_<OversubscriptionProgress>(module, "OversubscriptionProgress", "The current measurement.")
      .def_ro("done", &OversubscriptionProgress::done, "Cells that are done.")
      .def_ro("of", &OversubscriptionProgress::of, "0 while roofs are measured.")
      .def_ro("cell", &OversubscriptionProgress::cell);
}

OversubscriptionReport oversubscribe(const DeviceOrName& device, const std::optional<Names>& patterns,
                                     const std::optional<Names>& rows, const std::optional<Names>& operations,
                                     const std::optional<Names>& strategies,
                                     const std::optional<std::vector<double>>& factors,
                                     const std::optional<std::vector<std::size_t>>& page_bytes,
                                     const std::vector<std::uint32_t>& threads, const std::vector<bool>& synchronised,
                                     std::size_t budget_bytes, std::uint32_t blocks_per_multiprocessor,
                                     std::uint32_t runs,
                                     const std::optional<std::function<void(OversubscriptionProgress)>>& progress) {
  Interruptible interruptible;
  OversubscriptionOptions options;
  options.patterns = parsed(patterns, options.patterns, parse_access_pattern);
  options.rows = parsed(rows, options.rows, parse_row_order);
  options.operations = parsed(operations, options.operations, parse_access_operation);
  options.strategies = parsed(strategies, options.strategies, parse_strategy);
  options.factors = factors.value_or(options.factors);
  options.page_bytes = page_bytes.value_or(options.page_bytes);
  options.threads = threads;
  options.synchronised = synchronised;
  options.budget_bytes = budget_bytes;
  options.blocks_per_multiprocessor = blocks_per_multiprocessor;
  options.runs = runs;
  options.stop = interruptible.token();
  const Device chosen = to_device(device);
  const auto on_progress = progress ? interruptible.guard(*progress) : std::function<void(OversubscriptionProgress)>{};
  return interruptible.run([&] { return measure::measure_oversubscription(chosen, options, on_progress); });
}

}  // namespace

void bind_oversubscription(nb::module_& module) {
  bind_cell(module);
  bind_oversubscription_results(module);
  module.def(
      "access_patterns", [] { return named(OversubscriptionOptions{}.patterns); }, "The names of access patterns.");
  module.def(
      "access_operations",
      [] {
        return named(std::vector{AccessOperation::read, AccessOperation::write, AccessOperation::read_modify_write});
      },
      "The names of operations on data.");
  module.def(
      "access_strategies", [] { return named(OversubscriptionOptions{}.strategies); },
      "The names of the ways to keep data larger than a device.");
  module.def("oversubscribe", &oversubscribe, "device"_a = "best", nb::kw_only(), "patterns"_a = nb::none(),
             "rows"_a = nb::none(), "operations"_a = nb::none(), "strategies"_a = nb::none(), "factors"_a = nb::none(),
             "page_bytes"_a = nb::none(), "threads"_a = std::vector<std::uint32_t>{256},
             "synchronised"_a = std::vector<bool>{false}, "budget_bytes"_a = 0, "blocks_per_multiprocessor"_a = 0,
             "runs"_a = 5, "progress"_a = nb::none(),
             "Bandwidth of every access pattern, operation, strategy and factor, verified, next to its roof. Data is "
             "`factor` times `budget_bytes` (0: oversubscription_budget()), which stands for the device's memory. "
             "Arguments that are not given mean all values, except for operations (read) and page sizes (2 MiB). A "
             "cell that cannot be run has a `note` that says why. `progress` is called from another thread. Ctrl-C "
             "ends it with the cells so far. Raises UsageError that names the option out of range.");
  module.def(
      "oversubscription_budget",
      [](const DeviceOrName& device) { return measure::oversubscription_budget(to_device(device)); },
      "device"_a = "best",
      "An eighth of the device's free memory in whole pages, but at most a thirty-second of the host's.");
}

}  // namespace headrace::python
