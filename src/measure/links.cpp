#include "headrace/measure/links.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/base/error.hpp"
#include "headrace/device/host_memory.hpp"
#include "measure/link_kernels.hpp"
#include "measure/link_lanes.hpp"
#include "measure/median.hpp"

namespace headrace::measure {

namespace {

constexpr std::size_t kTransfersMax = 64;  // fewer than a stream's queue holds: enqueueing behind the gate never waits
constexpr std::size_t kShareOfFree = 6;    // of what is free; a route has up to four ends

void check(const LinkOptions& options) {
  if (options.sizes.empty()) throw UsageError("a link needs a size to be measured with");
  if (options.samples < 1) throw UsageError(fmt::format("samples must be 1 or more, not {}", options.samples));
  if (options.gate_bound <= Duration::zero()) throw UsageError("a gate must be bounded by a time above 0");
  std::size_t before = 0;
  for (const std::size_t size : options.sizes) {
    if (size == 0 || size % sizeof(Quad) != 0) {
      throw UsageError(fmt::format("sizes must be multiples of {} bytes above 0, not {}", sizeof(Quad), size));
    }
    if (size <= before) throw UsageError("sizes must ascend");
    before = size;
  }
}

/// The sizes that there is room for.
std::vector<std::size_t> fitting(const LinkRoute& route, const std::vector<std::size_t>& sizes) {
  std::size_t free = std::min(route.device.memory().free_bytes, host_memory().free_bytes);
  if (route.peer) free = std::min(free, route.peer->memory().free_bytes);
  std::vector<std::size_t> found;
  for (const std::size_t size : sizes) {
    if (size <= free / kShareOfFree) found.push_back(size);
  }
  return found;
}

LinkPoint measure_size(LinkLanes& lanes, std::size_t bytes, const LinkOptions& options) {
  const std::size_t count = std::clamp<std::size_t>(options.bytes_per_sample / bytes, 1, kTransfersMax);
  lanes.spoil(bytes, count);
  lanes.warm_up(bytes, count);
  std::vector<Duration> many;
  std::vector<Duration> single;
  for (int sample = 0; sample < options.samples; ++sample) {
    many.push_back(lanes.time(bytes, count));
    single.push_back(count == 1 ? many.back() : lanes.time(bytes, 1));
  }
  const double moved = static_cast<double>(bytes) * static_cast<double>(count) * static_cast<double>(lanes.count());
  const auto rate = [moved](Duration taken) {
    return moved / std::chrono::duration<double>(std::max(taken, Duration{1})).count();
  };
  const auto [shortest, longest] = std::minmax_element(many.begin(), many.end());
  LinkPoint point{.bytes = bytes, .least = rate(*longest), .most = rate(*shortest), .samples = options.samples};
  point.rate = rate(median(many));
  point.alone = std::max(median(single), Duration{1});
  point.verified = lanes.arrived(bytes, count);
  return point;
}

/// What the machine has not or has no room for: a note and no failure.
bool is_lack(const Exception& error) noexcept {
  return error.code() == Errc::not_supported || error.code() == Errc::out_of_memory ||
         error.code() == Errc::no_permission;
}

}  // namespace

LinkCurve measure_link(const LinkRoute& route, const LinkOptions& options) {
  check(options);
  LinkCurve curve{.route = route, .points = {}, .gated = false, .note = why_not(route)};
  if (!curve.note.empty()) return curve;
  const auto sizes = fitting(route, options.sizes);
  if (sizes.empty()) {
    curve.note = "no room for the smallest size";
    return curve;
  }
  try {
    LinkLanes lanes(route, sizes.back(), options);
    for (const std::size_t size : sizes) curve.points.push_back(measure_size(lanes, size, options));
    curve.gated = lanes.gated();
    if (lanes.expired()) curve.note = "enqueueing took longer than the gate waits, so the host's clock timed it";
  } catch (const Exception& error) {
    if (!is_lack(error)) throw;
    curve.points.clear();
    curve.note = error.what();
  }
  return curve;
}

}  // namespace headrace::measure
