#include <fmt/format.h>

#include <algorithm>

#include "device/backend.hpp"
#include "device/span/span_state.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"
#include "headrace/device/detail/host_memory.hpp"

/// Makes the pages of a span: checks the request and takes the memory.
namespace headrace::detail {

namespace {

void require_kind(Device device, Device other) {
  if (other.kind() == device.kind()) return;
  throw UsageError(
      fmt::format("all devices of a span must be of one kind; {} and {} are not", device.name(), other.name()));
}

/// Throws DeviceError unless everything fits. The message lists the needed and the free bytes of each place.
void require_room(const std::vector<SpanUse>& uses) {
  std::string text;
  std::size_t bytes = 0;
  bool fits = true;
  for (const SpanUse& use : uses) {
    const std::size_t free = free_bytes(use.place, use.bytes);
    fits = fits && use.bytes <= free;
    bytes += use.bytes;
    text += fmt::format("{}{} on {} ({} free)", text.empty() ? "" : ", ", format_bytes(use.bytes), use.place.name(),
                        format_bytes(free));
  }
  if (fits) return;
  throw DeviceError(Errc::out_of_memory, fmt::format("a span of {} needs {}", format_bytes(bytes), text));
}

std::vector<Device> devices_of(const std::vector<SpanUse>& uses) {
  std::vector<Device> devices;
  for (const SpanUse& use : uses) {
    if (!use.place.is_host()) devices.push_back(*use.place.device());
  }
  return devices;
}

PageMemory& checked_memory(Device device, const std::vector<Place>& places, const SpanOptions& options) {
  if (options.numa_node && *options.numa_node < 0) {
    throw UsageError(fmt::format("there is no NUMA node {}", *options.numa_node));
  }
  const auto uses = count_places(places, options.page_bytes);
  require_places(device, uses, options.accessed_by);
  PageMemory& memory = device.backend().page_memory();
  std::vector<Accessor> who{device};
  for (const Device other : devices_of(uses)) who.emplace_back(other);
  for (const Device other : options.accessed_by) who.emplace_back(other);
  require_reach(memory, who, uses);
  require_room(uses);
  return memory;
}

}  // namespace

std::string name_of(Accessor who) { return who ? who->name() : "the host"; }

std::size_t free_bytes(Place place, std::size_t wanted) {
  const auto free = [&] { return place.is_host() ? host_memory().free_bytes : place.device()->memory().free_bytes; };
  const std::size_t before = free();
  return before < wanted && reclaim_spares(place) > 0 ? free() : before;
}

std::vector<SpanUse> count_places(const std::vector<Place>& places, std::size_t page_bytes) {
  std::vector<SpanUse> uses;
  for (const Place place : places) {
    auto use = std::find_if(uses.begin(), uses.end(), [&](const SpanUse& one) { return one.place == place; });
    if (use == uses.end()) use = uses.insert(use, SpanUse{place, 0, 0});
    ++use->page_count;
    use->bytes += page_bytes;
  }
  return uses;
}

void require_places(Device device, const std::vector<SpanUse>& uses, const std::vector<Device>& others) {
  for (const Device other : devices_of(uses)) require_kind(device, other);
  for (const Device other : others) require_kind(device, other);
  PageMemory& memory = device.backend().page_memory();
  const auto require_pages = [&](Place place) {
    const std::string absence = memory.absence(place);
    if (absence.empty()) return;
    throw DeviceError(Errc::not_supported,
                      fmt::format("a span of {} cannot have pages on {}: {}", device.name(), place.name(), absence));
  };
  require_pages(Place::on(device));
  for (const SpanUse& use : uses) require_pages(use.place);
}

void require_reach(PageMemory& memory, const std::vector<Accessor>& who, const std::vector<SpanUse>& uses) {
  for (const Accessor one : who) {
    for (const SpanUse& use : uses) {
      if (memory.reaches(one, use.place)) continue;
      throw UsageError(fmt::format("{} cannot reach pages on {}", name_of(one), use.place.name()));
    }
  }
}

PlacedPages::PlacedPages(Device owner, std::size_t bytes, std::vector<Place> at, const SpanOptions& span_options)
    : device(owner),
      options{span_options.numa_node, span_options.shareable, span_options.page_bytes},
      places(std::move(at)),
      range(checked_memory(owner, places, span_options), places.size(), span_options.page_bytes),
      rights(places.size()) {
  rights.add(owner);
  for (const Device other : devices_of(uses())) rights.add(other);
  for (const Device other : span_options.accessed_by) rights.add(other);
  pages.reserve(places.size());
  for (const Place place : places) {
    auto page = with_spares_reclaimed(place, [&] { return memory().create(place, options); });
    if (!page) {
      throw_error(fmt::format("creating page {} of {} of a span of {}, on {} ({} free)", pages.size() + 1,
                              places.size(), format_bytes(bytes), place.name(), format_bytes(free_bytes(place))),
                  page.error());
    }
    pages.emplace_back(memory(), *page);
  }
  map_all();
}

PlacedPages::PlacedPages(const SharedPages& shared)
    : device(shared.device),
      options{{}, true, shared.page_bytes},
      places(shared.descriptors.size(), Place::on(shared.device)),
      range((require_places(device, count_places(places, shared.page_bytes), {}), device.backend().page_memory()),
            places.size(), shared.page_bytes),
      rights(places.size()) {
  rights.add(device);
  pages.reserve(places.size());
  for (const int descriptor : shared.descriptors) {
    auto page = memory().import_page(descriptor, device, page_bytes());
    if (!page) {
      throw_error(fmt::format("importing page {} of {}, file descriptor {}, on {}", pages.size() + 1, places.size(),
                              descriptor, device.name()),
                  page.error());
    }
    pages.emplace_back(memory(), *page);
  }
  map_all();
}

std::vector<SpanUse> PlacedPages::uses() const { return count_places(places, page_bytes()); }

void PlacedPages::map_all() {
  for (std::size_t page = 0; page < pages.size(); ++page) {
    range.map(page, pages[page].page())
        .or_throw(fmt::format("mapping page {} of {} of a span, on {}", page + 1, pages.size(), places[page].name()));
  }
  rights.apply(range, places, {0, pages.size()}, Mapped::just_now)
      .or_throw(fmt::format("setting the rights to the {} pages of a span", pages.size()));
}

}  // namespace headrace::detail
