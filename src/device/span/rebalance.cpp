#include "headrace/device/rebalance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"
#include "headrace/device/detail/waits_at_end.hpp"

namespace headrace {

namespace {

/// Pages of one place, hottest first; equally hot pages in order.
std::vector<std::size_t> hottest_first(const std::vector<Place>& places, Place place,
                                       const std::vector<std::uint64_t>& heat) {
  std::vector<std::size_t> pages;
  for (std::size_t page = 0; page < places.size(); ++page) {
    if (places[page] == place) pages.push_back(page);
  }
  std::stable_sort(pages.begin(), pages.end(), [&](std::size_t a, std::size_t b) { return heat[a] > heat[b]; });
  return pages;
}

bool hotter_than_chance(std::uint64_t hot, std::uint64_t cold) {
  const double difference = static_cast<double>(hot) - static_cast<double>(cold);
  return difference > 2 * std::sqrt(static_cast<double>(hot) + static_cast<double>(cold));
}

}  // namespace

std::vector<Place> rebalanced(const std::vector<Place>& places, Device device, std::size_t budget_bytes,
                              const std::vector<std::uint64_t>& heat, std::size_t page_bytes) {
  if (heat.size() != places.size()) {
    throw UsageError(fmt::format("the span has {} pages, but there are counts for {}", places.size(), heat.size()));
  }
  if (page_bytes == 0) throw UsageError("the page size of a span must be above 0");
  const Place near = Place::on(device);
  std::vector<Place> result = places;
  std::vector<std::size_t> up = hottest_first(places, Place::host(), heat);
  std::vector<std::size_t> down = hottest_first(places, near, heat);
  const std::size_t room = budget_bytes / page_bytes;
  while (down.size() > room) {
    result[down.back()] = Place::host();
    down.pop_back();
  }
  std::size_t next = 0;
  for (std::size_t free = room - down.size(); free > 0 && next < up.size() && heat[up[next]] > 0; --free) {
    result[up[next++]] = near;
  }
  for (; next < up.size() && !down.empty() && hotter_than_chance(heat[up[next]], heat[down.back()]); ++next) {
    result[up[next]] = near;
    result[down.back()] = Place::host();
    down.pop_back();
  }
  return result;
}

std::size_t rebalance(Span& span, StreamRef stream, const PageHeat& heat, std::size_t budget_bytes) {
  const std::vector<Place>& places = span.places();
  if (heat.page_bytes() != span.page_bytes()) {
    throw UsageError(fmt::format("the span has pages of {}, but the counts are for pages of {}",
                                 format_bytes(span.page_bytes()), format_bytes(heat.page_bytes())));
  }
  const std::vector<Place> target =
      rebalanced(places, span.device(), budget_bytes, heat.read(stream), span.page_bytes());
  std::size_t moves = 0;
  for (std::size_t page = 0; page < target.size(); ++page) moves += target[page] == places[page] ? 0 : 1;
  if (moves > 0) span.move(stream, Placement::map(target));
  return moves;
}

Span sampled_span(StreamRef stream, const AccessProfile& profile, const Sample& sample, const SpanOptions& options) {
  profile.check();
  const Device device = stream.device();
  Span span(device, profile.bytes, Placement::budget(device, profile.budget_bytes), options);
  const PageHeat heat(stream, span.data(), span.page_count(), span.page_bytes());
  const detail::WaitsAtEnd waits(stream);
  sample(stream, span, heat.counter()).or_throw("sampling the accesses to a span");
  rebalance(span, stream, heat, profile.budget_bytes);
  return span;
}

}  // namespace headrace
