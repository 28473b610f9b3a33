#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include <functional>

#include "bindings.hpp"
#include "convert.hpp"
#include "gil.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "span_handle.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

using Places = std::vector<PlaceOrName>;

std::vector<Place> to_places(const Places& places) {
  std::vector<Place> converted;
  converted.reserve(places.size());
  for (const PlaceOrName& place : places) converted.push_back(to_place(place));
  return converted;
}

/// Pages are given as a range: range(2, 5) is pages 2, 3 and 4. None means all of them.
std::optional<PageRange> to_pages(nb::handle pages) {
  if (pages.is_none()) return {};
  if (!PyRange_Check(pages.ptr())) throw nb::type_error("pages must be a range, such as range(2, 5), or None");
  const auto first = nb::cast<std::int64_t>(pages.attr("start"));
  const auto end = nb::cast<std::int64_t>(pages.attr("stop"));
  if (nb::cast<std::int64_t>(pages.attr("step")) != 1 || first < 0) {
    throw UsageError("pages must be a range of step 1 that starts at page 0 or later");
  }
  return PageRange{static_cast<std::size_t>(first), end > first ? static_cast<std::size_t>(end - first) : 0};
}

void bind_place(nb::module_& module) {
  nb::class_<Place>(module, "Place", "Where a page of a span is: on a device, or on the host.")
      .def_static("parse", &Place::parse, "name"_a,
                  "The place of that name: \"host\", or a device's. Raises UsageError.")
      .def_static("host", &Place::host, "The memory of the host.")
      .def_static(
          "on", [](const DeviceOrName& device) { return Place::on(to_device(device)); }, "device"_a,
          "The memory of a device.")
      .def_prop_ro("is_host", &Place::is_host)
      .def_prop_ro("device", &Place::device, "None for the host.")
      .def_prop_ro("name", &Place::name)
      .def(
          "__eq__", [](const Place& a, const Place& b) { return a == b; }, nb::is_operator(),
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const Place& place) { return std::hash<std::string>{}(place.name()); })
      .def("__repr__", [](const Place& place) { return fmt::format("headrace.span.Place.parse('{}')", place.name()); });
}

Placement interleaved(const std::vector<std::pair<PlaceOrName, std::uint32_t>>& shares) {
  std::vector<Share> converted;
  for (const auto& [place, weight] : shares) converted.push_back({to_place(place), weight});
  return Placement::interleaved(std::move(converted));
}

Placement budget(const DeviceOrName& device, std::size_t device_bytes, std::optional<std::vector<std::uint64_t>> heat) {
  if (!heat) return Placement::budget(to_device(device), device_bytes);
  return Placement::budget(to_device(device), device_bytes, *std::move(heat));
}

void bind_placement(nb::module_& module) {
  nb::class_<Placement>(module, "Placement", "A rule that places the pages of a span; it holds no memory.")
      .def_static(
          "all", [](const PlaceOrName& place) { return Placement::all(to_place(place)); }, "place"_a,
          "All pages in one place.")
      .def_static(
          "interleaved", &interleaved, "shares"_a,
          "Pages distributed over (place, weight) in proportion to the weights, as evenly as whole pages allow.")
      .def_static(
          "blocked", [](const Places& places) { return Placement::blocked(to_places(places)); }, "places"_a,
          "Consecutive pages, as evenly as possible for each place.")
      .def_static(
          "map", [](const Places& pages) { return Placement::map(to_places(pages)); }, "pages"_a,
          "A place for each page.")
      .def_static("budget", &budget, "device"_a, "device_bytes"_a, "heat"_a = nb::none(),
                  "At most `device_bytes` on the device, the rest on the host: spread evenly, or with the hottest "
                  "pages on the device if `heat` has a count of accesses for each page.")
      .def("pages", &Placement::pages, "page_count"_a, "page_bytes"_a = kPageBytes,
           "The place of each page of a span of this many pages.");
}

void bind_span_statistics(nb::module_& module) {
  nb::enum_<Right>(module, "Right", "What a device, or the host, may do with a page.")
      .value("none", Right::none)
      .value("read", Right::read)
      .value("read_write", Right::read_write);
  nb::class_<SpanUse>(module, "SpanUse", "Pages and bytes in one place.")
      .def_ro("place", &SpanUse::place)
      .def_ro("page_count", &SpanUse::page_count)
      .def_ro("bytes", &SpanUse::bytes);
  nb::class_<SpanStatistics>(module, "SpanStatistics", "The pages of a span in each place, and what was moved.")
      .def_ro("places", &SpanStatistics::places, "In the order in which they first appear.")
      .def_ro("pages_moved", &SpanStatistics::pages_moved)
      .def_ro("bytes_moved", &SpanStatistics::bytes_moved)
      .def_ro("spare_pages", &SpanStatistics::spare_pages, "Kept from moves, for the next ones.");
  nb::class_<SharedPages>(
      module, "SharedPages",
      "Device pages of a span as file descriptors, for another process. The caller must close the descriptors.")
      .def(
          "__init__",
          [](SharedPages* self, std::size_t bytes, const DeviceOrName& device, std::vector<int> descriptors,
             std::size_t page_bytes) {
            new (self) SharedPages{bytes, to_device(device), std::move(descriptors), page_bytes};
          },
          "bytes"_a, "device"_a, "descriptors"_a, "page_bytes"_a = kPageBytes)
      .def_ro("bytes", &SharedPages::bytes)
      .def_ro("device", &SharedPages::device)
      .def_ro("descriptors", &SharedPages::descriptors, "One for each page.")
      .def_ro("page_bytes", &SharedPages::page_bytes);
}

void construct(SpanHandle* self, const DeviceOrName& device, std::size_t bytes, const Placement& placement,
               const std::vector<DeviceOrName>& accessed_by, std::optional<int> numa_node, bool shareable,
               std::size_t page_bytes) {
  SpanOptions options{.accessed_by = {}, .numa_node = numa_node, .shareable = shareable, .page_bytes = page_bytes};
  for (const DeviceOrName& other : accessed_by) options.accessed_by.push_back(to_device(other));
  const Device owner = to_device(device);
  const GilRelease released;
  new (self) SpanHandle(Span(owner, bytes, placement, options));
}

void bind_rights(nb::class_<SpanHandle>& span) {
  span.def(
          "right",
          [](const SpanHandle& self, const DeviceOrName& device, std::size_t page) {
            return self.span().right(to_device(device), page);
          },
          "device"_a, "page"_a, "What a device may do with a page; none if it cannot reach it.")
      .def(
          "host_right", [](const SpanHandle& self, std::size_t page) { return self.span().host_right(page); }, "page"_a,
          "What the host may do with a page; none if it cannot reach it.")
      .def_prop_ro(
          "host_readable", [](const SpanHandle& self) { return self.span().host_readable(); },
          "Whether the host may read every page.")
      .def(
          "allow",
          [](SpanHandle& self, const DeviceOrName& device, Right right, nb::handle pages) {
            self.span().allow(to_device(device), right, to_pages(pages));
          },
          "device"_a, "right"_a, "pages"_a = nb::none(),
          nb::sig("def allow(self, device: Device | str, right: Right, pages: range | None = None) -> None"),
          "Sets what a device may do with pages. Work in flight on them must be done.")
      .def(
          "allow_host",
          [](SpanHandle& self, Right right, nb::handle pages) { self.allow_host(right, to_pages(pages)); }, "right"_a,
          "pages"_a = nb::none(), nb::sig("def allow_host(self, right: Right, pages: range | None = None) -> None"),
          "The same for the host, which on CUDA reaches host pages only.");
}

void bind_moves(nb::class_<SpanHandle>& span) {
  span.def(
          "move", [](SpanHandle& self, const Placement& to) { self.move(to); }, "to"_a,
          "Moves every page that is not where the placement says, and waits for it. Work in flight on the span must be "
          "done. After a failure every page is intact, in its old place or its new one.")
      .def(
          "move",
          [](SpanHandle& self, const PlaceOrName& to, nb::handle pages) {
            const std::size_t all = self.span().page_count();
            self.move(to_pages(pages).value_or(PageRange{0, all}), to_place(to));
          },
          "to"_a, "pages"_a = nb::none(),
          nb::sig("def move(self, to: Place | Device | str, pages: range | None = None) -> None"),
          "Moves pages to one place.")
      .def(
          "keep_spare_pages", [](SpanHandle& self, std::size_t count) { self.span().keep_spare_pages(count); },
          "count_per_place"_a,
          "Keeps at most this many of the pages that moves leave in a place, in each place, for later moves to it "
          "(SPARE_PAGES unless called; 0: none), and releases any more at once.")
      .def(
          "trim", [](SpanHandle& self) { self.span().trim(); },
          "Releases the pages kept from moves; later moves keep pages again.")
      .def("release", &SpanHandle::release,
           "Releases all memory now. Raises UsageError while arrays or operators use the span.")
      .def(
          "share", [](const SpanHandle& self) { return self.span().share(); },
          "The pages for another process, which needs the descriptors (socket.send_fds). Raises UsageError if the span "
          "was not made shareable, or has pages on the host or on two devices.")
      .def_static(
          "from_shared", [](const SharedPages& pages) { return SpanHandle(Span(pages)); }, "pages"_a,
          "Maps the result of share() in another process. The descriptors may be closed afterwards.");
}

}  // namespace

void bind_span(nb::module_& module) {
  bind_place(module);
  bind_placement(module);
  bind_span_statistics(module);
  module.attr("PAGE_BYTES") = kPageBytes;
  module.attr("SPARE_PAGES") = kSparePages;
  nb::class_<SpanHandle> span(module, "Span", nb::type_slots(span_buffer_slots()),
                              "One range of addresses whose pages, of 2 MiB or more, are on devices and on the host as "
                              "a Placement says, and can be moved later.");
  span.def("__init__", &construct, "device"_a, "bytes"_a, "placement"_a, nb::kw_only(),
           "accessed_by"_a = std::vector<DeviceOrName>{}, "numa_node"_a = nb::none(), "shareable"_a = false,
           "page_bytes"_a = kPageBytes,
           "The contents are undefined. The size of a page is a power of two, at least PAGE_BYTES; large ones move "
           "with fewer calls of the driver. Raises UsageError for invalid arguments, and DeviceError if there is no "
           "virtual memory management or not enough memory.")
      .def_prop_ro("device", [](const SpanHandle& self) { return self.span().device(); })
      .def_prop_ro(
          "address", [](const SpanHandle& self) { return reinterpret_cast<std::uintptr_t>(self.span().data()); },
          "Address of the first byte; 0 once released.")
      .def_prop_ro(
          "bytes", [](const SpanHandle& self) { return self.span().bytes(); }, "The requested size.")
      .def_prop_ro("page_count", [](const SpanHandle& self) { return self.span().page_count(); })
      .def_prop_ro(
          "page_bytes", [](const SpanHandle& self) { return self.span().page_bytes(); },
          "Size of a page; 0 once released.")
      .def("__len__", [](const SpanHandle& self) { return self.span().bytes(); })
      .def_prop_ro(
          "places", [](const SpanHandle& self) { return self.span().places(); }, "The place of each page.")
      .def(
          "statistics", [](const SpanHandle& self) { return self.span().statistics(); },
          "Where the pages are, and what moves have cost so far.")
      .def("__repr__", [](const SpanHandle& self) {
        if (self.span().data() == nullptr) return std::string("<headrace.Span, released>");
        return fmt::format("<headrace.Span of {} on {}: {} pages>", format_bytes(self.span().bytes()),
                           self.span().device().name(), self.span().page_count());
      });
  bind_rights(span);
  bind_moves(span);
  bind_span_arrays(span);
}

}  // namespace headrace::python
