#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <tuple>
#include <utility>

#include "convert.hpp"
#include "fetch_handle.hpp"
#include "gil.hpp"
#include "headrace/fetch/table.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

using Aggregates = std::vector<std::tuple<fetch::Aggregate, std::optional<fetch::Expression>>>;
using Orders = std::vector<std::pair<std::uint32_t, bool>>;

fetch::Query make_query(std::optional<fetch::Expression> filter, std::vector<fetch::Expression> keys,
                        const Aggregates& aggregates, std::vector<fetch::Expression> values, const Orders& order,
                        std::optional<std::int64_t> limit) {
  fetch::Query query{.filter = std::move(filter), .keys = std::move(keys), .values = std::move(values)};
  for (const auto& [function, value] : aggregates) query.aggregates.push_back({.function = function, .value = value});
  for (const auto& [value, descending] : order) query.order.push_back({.value = value, .descending = descending});
  if (limit) query.limit = *limit;
  return query;
}

/// Checks for Ctrl-C, and calls a Python function if there is one. Called without the GIL.
fetch::Watch make_watch(const nb::object& watch) {
  return [&watch](const fetch::FetchProgress& progress) {
    const GilAcquire acquired;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!watch.is_none() && progress.chunks > 0) watch(progress);  // chunks is 0 while it waits for others
  };
}

void bind_table_report(nb::module_& module) {
  using fetch::TableReport;
  nb::class_<TableReport>(module, "TableReport", "The figures of a query on a table.")
      .def_prop_ro("groups", [](const TableReport& report) { return report.scan.groups; })
      .def_prop_ro(
          "read_bytes", [](const TableReport& report) { return report.scan.read_bytes; },
          "Bytes of the columns that the query names.")
      .def_prop_ro(
          "seconds", [](const TableReport& report) { return report.scan.seconds; },
          "Seconds of the kernels, each from its launch until its end.")
      .def_prop_ro(
          "order_seconds", [](const TableReport& report) { return report.scan.order_seconds; },
          "Time to order rows, on the device, and to merge windows.")
      .def_ro("windows", &TableReport::windows, "The number of pieces in which the columns went through the device.")
      .def_ro("pruned", &TableReport::pruned,
              "Fragments that were skipped, because by their statistics none of their rows passes the filter.")
      .def_ro("streamed", &TableReport::streamed,
              "Why there were windows; empty if the columns were on the device together.")
      .def_prop_ro("disk", [](const TableReport& report) { return report.levels[0]; })
      .def_prop_ro("cpu", [](const TableReport& report) { return report.levels[1]; })
      .def_prop_ro("device", [](const TableReport& report) { return report.levels[2]; })
      .def_prop_ro(
          "fetch_seconds", [](const TableReport& report) { return to_seconds(report.fetching); },
          "Time of the fetches, including what scans hid.")
      .def_prop_ro(
          "waited_seconds", [](const TableReport& report) { return to_seconds(report.waited); },
          "Time waited for columns.");
}

}  // namespace

void bind_fetch_table(nb::module_& module) {
  bind_table_report(module);
  nb::class_<fetch::Table>(module, "FetchTable", "A table that is scanned on the device of its levels.")
      .def(nb::init<fetch::Levels, std::shared_ptr<fetch::Source>, fetch::FetchOptions>(), "levels"_a, "source"_a,
           "options"_a = fetch::FetchOptions{})
      .def("close", &fetch::Table::close, nb::call_guard<GilRelease>(),
           "Releases the memory of its chunks and dictionaries; it cannot be queried any more.")
      .def_prop_ro("levels", &fetch::Table::levels)
      .def_prop_ro("options", &fetch::Table::options)
      .def(
          "scan",
          [](fetch::Table& self, std::optional<fetch::Expression> filter, std::vector<fetch::Expression> keys,
             const Aggregates& aggregates, std::vector<fetch::Expression> values, const Orders& order,
             std::optional<std::int64_t> limit, const nb::object& watch) {
            const fetch::Query query =
                make_query(std::move(filter), std::move(keys), aggregates, std::move(values), order, limit);
            fetch::TableResult result;
            {
              const GilRelease released;
              result = self.scan(query, make_watch(watch));
            }
            return std::pair(std::move(result.columns), std::move(result.report));
          },
          "filter"_a.none(), "keys"_a, "aggregates"_a, "values"_a, "order"_a, "limit"_a.none(), "watch"_a = nb::none(),
          nb::sig("def scan(self, filter: ScanExpression | None, keys: collections.abc.Sequence[ScanExpression], "
                  "aggregates: collections.abc.Sequence[tuple[Aggregate, ScanExpression | None]], values: "
                  "collections.abc.Sequence[ScanExpression], order: collections.abc.Sequence[tuple[int, bool]], limit: "
                  "int | "
                  "None, watch: typing.Callable[[FetchProgress], None] | None = None) -> tuple[list[ResultColumn], "
                  "TableReport]"),
          "Fetches what the query names, and runs it: `order` is (number of a value, whether descending), of `values` "
          "only. `watch` gets the progress of a fetch. Ctrl-C ends it.")
      .def(
          "explain",
          [](fetch::Table& self, std::optional<fetch::Expression> filter, std::vector<fetch::Expression> keys,
             const Aggregates& aggregates, std::vector<fetch::Expression> values, const Orders& order,
             std::optional<std::int64_t> limit) {
            const fetch::Query query =
                make_query(std::move(filter), std::move(keys), aggregates, std::move(values), order, limit);
            const nb::none nobody;  // reference-counted under the GIL, like every Python object
            const GilRelease released;
            return self.explain(query, make_watch(nobody));
          },
          "filter"_a.none(), "keys"_a, "aggregates"_a, "values"_a, "order"_a, "limit"_a.none(),
          "What is fetched for a query, and how it runs, as lines of text. Columns that fit the device are fetched for "
          "this.")
      .def("windows", &fetch::Table::windows, "columns"_a,
           "The fragments of the windows in which columns would go through the device.");
}

}  // namespace headrace::python
