#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bindings.hpp"
#include "convert.hpp"
#include "gil.hpp"
#include "headrace/device/advice.hpp"
#include "measure/memory_rates.hpp"
#include "span_handle.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

void bind_rates(nb::module_& module) {
  using Rates = MemoryRates;
  nb::class_<OperationRates>(module, "OperationRates", "Bytes of data processed per second, each counted once.")
      .def(nb::init<double, double, double>(), "read"_a = 0.0, "write"_a = 0.0, "read_modify_write"_a = 0.0)
      .def_rw("read", &OperationRates::read)
      .def_rw("write", &OperationRates::write)
      .def_rw("read_modify_write", &OperationRates::read_modify_write);
  nb::class_<FaultRates>(module, "FaultRates", "The rate at which page faults bring data to the device, by pattern.")
      .def(nb::init<double, double, double>(), "grid_stride"_a = 0.0, "block_stride"_a = 0.0, "random"_a = 0.0)
      .def_rw("grid_stride", &FaultRates::grid_stride)
      .def_rw("block_stride", &FaultRates::block_stride)
      .def_rw("random", &FaultRates::random);
  nb::class_<Rates>(module, "MemoryRates",
                    "The memory rates of a device and of its host for a kernel; bytes per second and seconds.")
      .def(nb::init<>())
      .def(nb::init<const Rates&>(), "other"_a)
      .def_rw("name", &Rates::name)
      .def_rw("device", &Rates::device, "A kernel that goes through device memory in order.")
      .def_rw("device_random", &Rates::device_random, "A kernel that reads 128 bytes at random places with each warp.")
      .def_rw("link", &Rates::link, "In order through pinned host memory.")
      .def_rw("link_random", &Rates::link_random, "At random in pinned host memory.")
      .def_rw("link_reach_bytes", &Rates::link_reach_bytes, "Host memory that address translation covers, in bytes.")
      .def_rw("link_beyond_reach", &Rates::link_beyond_reach, "Fraction of the rate beyond that reach.")
      .def_rw("faults", &Rates::faults, "Managed memory, first touch.")
      .def_rw("prefetch", &Rates::prefetch, "The copy engine, pinned host memory to the device.")
      .def_rw("host_copy", &Rates::host_copy, "One host thread that copies within host memory.")
      .def_rw("device_page", &Rates::device_page, "Seconds to allocate and map a page of 2 MiB on the device.")
      .def_rw("host_page", &Rates::host_page, "The same for a host page.")
      .def_rw("page_move", &Rates::page_move, "Seconds to move a page between device and host.")
      .def_rw("device_latency", &Rates::device_latency)
      .def_rw("link_latency", &Rates::link_latency)
      .def_rw("in_flight_bytes", &Rates::in_flight_bytes, "Bytes of random accesses that a full device has in flight.")
      .def_rw("cache_bytes", &Rates::cache_bytes)
      .def_rw("cache", &Rates::cache, "Bytes per second from the cache.")
      .def_rw("one_memory", &Rates::one_memory, "Whether the device's memory is the host's.")
      .def_rw("memory_bytes", &Rates::memory_bytes, "Memory of the device; free memory if the device is present.")
      .def_rw("managed", &Rates::managed, "Managed memory with concurrent access.")
      .def_rw("managed_bytes", &Rates::managed_bytes, nb::arg().none(),
              "Most managed memory that may be allocated; None if unknown.")
      .def("__repr__", [](const Rates& rates) {
        return fmt::format("<headrace.span.MemoryRates {}: device {:.3g}, link {:.3g} bytes/s>", rates.name,
                           rates.device.read, rates.link.read);
      });
  module.def("known_memory_rates", &known_memory_rates, "The rates of known machines, by name.");
  module.def(
      "find_memory_rates", [](std::string_view name) { return find_memory_rates(name); }, "name"_a,
      "The rates of a machine in the table, such as \"H100\". Raises UsageError that lists them.");
  module.def(
      "memory_rates_of", [](const DeviceOrName& device) { return memory_rates_of(to_device(device)); }, "device"_a,
      "The rates of a present device without a measurement: those in the table for such a device.");
  module.def(
      "memory_rates",
      [](const DeviceOrName& device) {
        const Device parsed = to_device(device);
        const GilRelease released;
        return measure::measure_memory_rates(parsed);
      },
      "device"_a = "best", "Measures these rates, in a few tenths of a second.");
}

AccessProfile make_profile(std::size_t bytes, std::size_t budget_bytes, std::string_view pattern,
                           std::string_view operation, double reuse, double exponent, std::size_t row_bytes,
                           std::string_view order, double hot_sweeps, std::vector<std::uint64_t> heat,
                           bool pinned_already) {
  AccessProfile profile{.pattern = parse_access_pattern(pattern),
                        .operation = parse_access_operation(operation),
                        .bytes = bytes,
                        .budget_bytes = budget_bytes,
                        .reuse = reuse,
                        .exponent = exponent,
                        .row_bytes = row_bytes,
                        .order = parse_row_order(order),
                        .hot_sweeps = hot_sweeps,
                        .heat = std::move(heat),
                        .pinned_already = pinned_already};
  profile.check();
  return profile;
}

void bind_profile(nb::module_& module) {
  nb::class_<AccessProfile>(module, "AccessProfile",
                            "How a kernel uses its data, as far as it determines where the data should be.")
      .def(
          "__init__",
          [](AccessProfile* self, std::size_t bytes, std::size_t budget_bytes, std::string_view pattern,
             std::string_view operation, double reuse, double exponent, std::size_t row_bytes, std::string_view order,
             double hot_sweeps, std::vector<std::uint64_t> heat, bool pinned_already) {
            new (self) AccessProfile(make_profile(bytes, budget_bytes, pattern, operation, reuse, exponent, row_bytes,
                                                  order, hot_sweeps, std::move(heat), pinned_already));
          },
          "bytes"_a, "budget_bytes"_a, "pattern"_a = "grid-stride", "operation"_a = "read", nb::kw_only(),
          "reuse"_a = AccessProfile{}.reuse, "exponent"_a = AccessProfile{}.exponent,
          "row_bytes"_a = AccessProfile{}.row_bytes, "order"_a = to_string(RowOrder::ordered),
          "hot_sweeps"_a = AccessProfile{}.hot_sweeps, "heat"_a = std::vector<std::uint64_t>{},
          "pinned_already"_a = AccessProfile{}.pinned_already,
          "`bytes` of data and `budget_bytes` of device memory for it; the number of passes over the data (`reuse`, "
          "where infinity ignores preparation); zipf-rows: `exponent`, `row_bytes`, `order` (ordered or scattered); "
          "`heat`: counted accesses to each page of 2 MiB.")
      .def_prop_ro("pattern", [](const AccessProfile& profile) { return to_string(profile.pattern); })
      .def_prop_ro("operation", [](const AccessProfile& profile) { return to_string(profile.operation); })
      .def_ro("bytes", &AccessProfile::bytes)
      .def_ro("budget_bytes", &AccessProfile::budget_bytes)
      .def_ro("reuse", &AccessProfile::reuse)
      .def_ro("exponent", &AccessProfile::exponent)
      .def_ro("row_bytes", &AccessProfile::row_bytes)
      .def_prop_ro("order", [](const AccessProfile& profile) { return to_string(profile.order); })
      .def_ro("hot_sweeps", &AccessProfile::hot_sweeps)
      .def_ro("heat", &AccessProfile::heat)
      .def_ro("pinned_already", &AccessProfile::pinned_already)
      .def_prop_ro("factor", &AccessProfile::factor, "bytes / budget_bytes.")
      .def_prop_ro("page_count", &AccessProfile::page_count);
}

void bind_constants(nb::module_& module) {
  using Constants = AdviceConstants;
  nb::class_<Constants>(module, "AdviceConstants",
                        "The model's assumptions besides the rates; see bench/advice_grid.py.")
      .def(nb::init<>())
      .def(nb::init<const Constants&>(), "other"_a)
      .def_rw("dealt_overlap", &Constants::dealt_overlap)
      .def_rw("front_overlap", &Constants::front_overlap)
      .def_rw("span_link", &Constants::span_link)
      .def_rw("managed_link", &Constants::managed_link)
      .def_rw("managed_device", &Constants::managed_device)
      .def_rw("eviction", &Constants::eviction)
      .def_rw("fault_bytes", &Constants::fault_bytes)
      .def_rw("device_cache_hits", &Constants::device_cache_hits)
      .def_rw("host_cache_hits", &Constants::host_cache_hits)
      .def_rw("simpler", &Constants::simpler);
}

void bind_answer(nb::module_& module) {
  using Forecast = StrategyForecast;
  nb::class_<Forecast>(module, "StrategyForecast", "The prediction for one strategy.")
      .def_prop_ro("strategy", [](const Forecast& one) { return to_string(one.strategy); })
      .def_ro("refused", &Forecast::refused, "Why it cannot be used here; empty if it can.")
      .def_ro("pass_seconds", &Forecast::pass_seconds, "Seconds of one pass over the data.")
      .def_ro("prepare_seconds", &Forecast::prepare_seconds, "Seconds before the first pass.")
      .def_ro("host_share", &Forecast::host_share, "The fraction of the bytes touched that cross the link.")
      .def_ro("bytes_per_second", &Forecast::bytes_per_second,
              "Bytes touched per second, over all passes, including preparation.")
      .def_ro("roof_per_second", &Forecast::roof_per_second, "What memory and link would allow for sequential access.")
      .def("__repr__", [](const Forecast& one) {
        return fmt::format("<headrace.span.StrategyForecast {}: {:.3g} bytes/s>", to_string(one.strategy),
                           one.bytes_per_second);
      });
  nb::class_<Advice>(module, "Advice", "A recommendation for data, with reasons.")
      .def_prop_ro(
          "strategy", [](const Advice& advice) { return to_string(advice.strategy); }, "The choice.")
      .def_ro("forecasts", &Advice::forecasts,
              "For every strategy: the choice first, then from best to worst, with unusable ones last.")
      .def_ro("because", &Advice::because, "The reasons in words.")
      .def_ro("placement", &Advice::placement, "For a Span; if the strategy has none, the nearest to it.")
      .def_ro("cpp", &Advice::cpp, "C++ to paste.")
      .def_ro("python", &Advice::python, "Python to paste.");
}

void bind_advised_span() {
  nb::borrow<nb::class_<SpanHandle>>(nb::type<SpanHandle>())
      .def_static(
          "advised",
          [](const DeviceOrName& device, const AccessProfile& profile, const std::optional<MemoryRates>& rates) {
            const Device owner = to_device(device);
            const GilRelease released;
            return SpanHandle(Span::advised(owner, profile, rates ? *rates : memory_rates_of(owner)));
          },
          "device"_a, "profile"_a, "rates"_a = nb::none(),
          "A span of profile.bytes placed as advise() says: all on the host for zero-copy, what fits on the device for "
          "managed memory.");
}

}  // namespace

void bind_advice(nb::module_& module) {
  bind_rates(module);
  bind_profile(module);
  bind_constants(module);
  bind_answer(module);
  bind_advised_span();
  module.def(
      "advise",
      [](const AccessProfile& profile, const std::optional<MemoryRates>& rates, const DeviceOrName& device,
         const AdviceConstants& constants) {
        const Device parsed = to_device(device);
        return advise(parsed, profile, rates ? *rates : memory_rates_of(parsed), constants);
      },
      "profile"_a, "rates"_a = nb::none(), "device"_a = "best", "constants"_a = AdviceConstants{},
      "Chooses strategy and placement for data that is used as `profile` says. Without `rates`, uses those in the "
      "table for the device; headrace.measure.memory_rates() gives better ones.");
}

}  // namespace headrace::python
