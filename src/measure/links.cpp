#include "headrace/measure/links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headrace/base/error.hpp"
#include "headrace/device/detail/host_memory.hpp"
#include "measure/link_kernels.hpp"
#include "measure/link_lanes.hpp"
#include "measure/median.hpp"

namespace headrace::measure {

namespace {

constexpr std::size_t kTransfersMax = 64;  // fewer than a stream's queue holds, so enqueueing never blocks
constexpr std::size_t kShareOfFree = 6;    // of the free memory for each end; a route has up to four ends

void check(const LinkOptions& options) {
  if (options.sizes.empty()) throw UsageError("measuring a link needs at least one size");
  if (options.samples < 1) throw UsageError(fmt::format("samples must be 1 or more, not {}", options.samples));
  if (options.gate_bound <= Duration::zero()) throw UsageError("gate_bound must be above 0");
  std::size_t before = 0;
  for (const std::size_t size : options.sizes) {
    if (size == 0 || size % sizeof(Quad) != 0) {
      throw UsageError(fmt::format("sizes must be multiples of {} bytes above 0, not {}", sizeof(Quad), size));
    }
    if (size <= before) throw UsageError("sizes must be in strictly ascending order");
    before = size;
  }
}

/// The sizes that fit in memory if every route has its own ends.
std::vector<std::size_t> fitting(std::span<const LinkRoute> routes, const std::vector<std::size_t>& sizes) {
  std::size_t free = host_memory().free_bytes;
  for (const LinkRoute& route : routes) {
    free = std::min(free, route.device.memory().free_bytes);
    if (route.peer) free = std::min(free, route.peer->memory().free_bytes);
  }
  std::vector<std::size_t> found;
  for (const std::size_t size : sizes) {
    if (size <= free / (kShareOfFree * routes.size())) found.push_back(size);
  }
  return found;
}

/// A route's samples at one size: of several queued transfers, and of a single one.
struct Samples {
  std::vector<Duration> many;
  std::vector<Duration> single;
};

LinkPoint point_of(Samples samples, std::size_t bytes, double moved) {
  const auto rate = [moved](Duration taken) {
    return moved / std::chrono::duration<double>(std::max(taken, Duration{1})).count();
  };
  const auto [shortest, longest] = std::minmax_element(samples.many.begin(), samples.many.end());
  LinkPoint point{.bytes = bytes, .least = rate(*longest), .most = rate(*shortest)};
  point.samples = static_cast<int>(samples.many.size());
  point.rate = rate(median(samples.many));
  point.alone = std::max(median(samples.single), Duration{1});
  return point;
}

/// Adds a point to the curve of each route.
void measure_size(LinkLanes& lanes, std::size_t bytes, const LinkOptions& options, std::vector<LinkCurve>& curves) {
  const std::size_t count = std::clamp<std::size_t>(options.bytes_per_sample / bytes, 1, kTransfersMax);
  lanes.warm_up(bytes, count);
  std::vector<Samples> samples(curves.size());
  for (int sample = 0; sample < options.samples; ++sample) {
    const auto many = lanes.time(bytes, count);
    const auto single = count == 1 ? many : lanes.time(bytes, 1);
    for (std::size_t i = 0; i < curves.size(); ++i) {
      samples[i].many.push_back(many[i]);
      samples[i].single.push_back(single[i]);
    }
  }
  // Run once more, uncounted, so that timed transfers are verified and not the warm-up.
  lanes.spoil(bytes, count);
  static_cast<void>(lanes.time(bytes, count));
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const double moved = static_cast<double>(bytes) * static_cast<double>(count) * static_cast<double>(lanes.count(i));
    LinkPoint point = point_of(std::move(samples[i]), bytes, moved);
    point.verified = lanes.arrived(i, bytes, count);
    curves[i].points.push_back(point);
  }
}

/// Whether the machine lacks something or has no room, which is a note and not a failure.
bool is_lack(const Exception& error) noexcept {
  return error.code() == Errc::not_supported || error.code() == Errc::out_of_memory ||
         error.code() == Errc::no_permission;
}

/// Curves without points, each with the same note.
std::vector<LinkCurve> without_points(std::span<const LinkRoute> routes, const std::string& note) {
  std::vector<LinkCurve> curves;
  for (const LinkRoute& route : routes) {
    curves.push_back({.route = route, .points = {}, .gated = false, .note = note});
  }
  return curves;
}

}  // namespace

std::vector<LinkCurve> measure_links_at_once(std::span<const LinkRoute> routes, const LinkOptions& options) {
  check(options);
  if (routes.empty()) throw UsageError("measuring links at once needs at least one route");
  for (const LinkRoute& route : routes) {
    const std::string reason = why_not(route);
    if (!reason.empty()) return without_points(routes, reason);
  }
  const auto sizes = fitting(routes, options.sizes);
  if (sizes.empty()) return without_points(routes, "no room for the smallest size");
  try {
    LinkLanes lanes(routes, sizes.back(), options);
    std::vector<LinkCurve> curves = without_points(routes, "");
    for (const std::size_t size : sizes) measure_size(lanes, size, options, curves);
    for (LinkCurve& curve : curves) {
      curve.gated = lanes.gated();
      if (lanes.expired()) curve.note = "enqueueing took longer than the gate waits, so the host's clock timed it";
    }
    return curves;
  } catch (const Exception& error) {
    if (!is_lack(error)) throw;
    return without_points(routes, error.what());
  }
}

LinkCurve measure_link(const LinkRoute& route, const LinkOptions& options) {
  return measure_links_at_once({&route, 1}, options).front();
}

}  // namespace headrace::measure
