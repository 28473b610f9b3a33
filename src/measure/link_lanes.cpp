#include "measure/link_lanes.hpp"

#include <algorithm>
#include <future>
#include <utility>

#include "measure/link_kernels.hpp"

namespace headrace::measure {

namespace {

constexpr std::size_t kLeadBytes = 1024;

/// Whether a copying call returns before the copy is done. Other calls would wait for a gate that only they could open.
bool copies_asynchronously(const LinkRoute& route) noexcept {
  if (route.means == LinkMeans::kernel) return true;
  return route.memory != LinkMemory::pageable && route.memory != LinkMemory::managed;
}

/// The directions of the lanes: first towards the device, then away from it.
struct Directions {
  bool in;
  bool out;
};

Directions directions(LinkPath path) noexcept {
  switch (path) {
    case LinkPath::to_device:
    case LinkPath::from_peer:
    case LinkPath::within: return {.in = true, .out = false};
    case LinkPath::from_device:
    case LinkPath::to_peer: return {.in = false, .out = true};
    case LinkPath::both_ways:
    case LinkPath::both_peers: break;
  }
  return {.in = true, .out = true};
}

LinkEnd near_end(const LinkRoute& route, std::size_t bytes) {
  return {route.device, route.device, LinkMemory::device, false, bytes};
}

LinkEnd far_end(const LinkRoute& route, std::size_t bytes) {
  const Device owner = route.peer.value_or(route.device);
  const bool on_host = !route.peer && route.path != LinkPath::within;
  return {route.device, owner, route.memory, on_host, bytes};
}

bool needs_access(const LinkRoute& route) noexcept {
  return route.peer && route.peer_access && route.memory != LinkMemory::span;
}

/// Computes the time of each route from those of its lanes.
std::vector<Duration> slowest_lanes(const std::vector<Duration>& lanes, const std::vector<std::size_t>& ends) {
  std::vector<Duration> slowest;
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    slowest.push_back(*std::max_element(lanes.begin() + static_cast<std::ptrdiff_t>(begin),
                                        lanes.begin() + static_cast<std::ptrdiff_t>(end)));
    begin = end;
  }
  return slowest;
}

}  // namespace

LinkLane::LinkLane(const LinkRoute& route, LinkEnd from, LinkEnd to, std::uint64_t seed)
    : means_(route.means),
      from_(std::move(from)),
      to_(std::move(to)),
      seed_(seed),
      kernel_(copy_kernel()),
      stream_(route.device),
      start_(route.device, EventTiming::on),
      end_(route.device, EventTiming::on) {
  from_.fill(seed_);
}

std::size_t LinkLane::touched(std::size_t bytes, std::size_t count) const noexcept {
  return bytes * std::min(count, from_.bytes() / bytes);
}

Status LinkLane::move(std::size_t offset, std::size_t bytes) const {
  std::byte* const to = to_.data() + offset;
  const std::byte* const from = from_.data() + offset;
  if (means_ == LinkMeans::engine) return stream_.copy(to, from, bytes);
  return launch(stream_, kernel_, copy_shape(stream_.device(), bytes), reinterpret_cast<Quad*>(to),
                reinterpret_cast<const Quad*>(from), std::uint64_t{bytes / sizeof(Quad)});
}

Status LinkLane::enqueue(std::size_t bytes, std::size_t count) const {
  const std::size_t places = from_.bytes() / bytes;
  for (std::size_t i = 0; i < count; ++i) {
    if (const Status moved = move(i % places * bytes, bytes); !moved) return moved;
  }
  return {};
}

Status LinkLane::enqueue_timed(std::size_t bytes, std::size_t count) const {
  Status status = move(0, std::min(bytes, kLeadBytes));
  if (status) status = stream_.record(start_);
  if (status) status = enqueue(bytes, count);
  if (status) status = stream_.record(end_);
  return status;
}

LinkLanes::LinkLanes(std::span<const LinkRoute> routes, std::size_t most_bytes, const LinkOptions& options)
    : gate_(routes.front().device, options.gate_bound),
      gated_(std::all_of(routes.begin(), routes.end(), copies_asynchronously)) {
  for (std::size_t i = 0; i < routes.size(); ++i) add(routes[i], most_bytes, options.seed + i);
}

void LinkLanes::add(const LinkRoute& route, std::size_t most_bytes, std::uint64_t seed) {
  if (needs_access(route)) access_.emplace_back(route.device, *route.peer);
  const Directions ways = directions(route.path);
  if (ways.in) lanes_.emplace_back(route, far_end(route, most_bytes), near_end(route, most_bytes), seed);
  if (ways.out) lanes_.emplace_back(route, near_end(route, most_bytes), far_end(route, most_bytes), ~seed);
  ends_.push_back(lanes_.size());
}

std::size_t LinkLanes::count(std::size_t route) const noexcept {
  return ends_[route] - (route == 0 ? 0 : ends_[route - 1]);
}

std::optional<std::vector<Duration>> LinkLanes::time_gated(std::size_t bytes, std::size_t count) {
  gate_.next();
  Status status;
  for (const LinkLane& lane : lanes_) {
    if (status) status = gate_.close(lane.stream());
    if (status) status = lane.enqueue_timed(bytes, count);
  }
  gate_.open();
  for (const LinkLane& lane : lanes_) {
    const Status waited = lane.stream().wait();
    if (status) status = waited;
  }
  status.or_throw("measuring a link");
  if (gate_.expired()) return {};
  std::vector<Duration> times;
  for (const LinkLane& lane : lanes_) times.push_back(lane.time().or_throw("timing a link"));
  return slowest_lanes(times, ends_);
}

std::vector<Duration> LinkLanes::time_by_host(std::size_t bytes, std::size_t count) const {
  const Time start = SteadyClock::now();
  const auto run = [bytes, count, start](const LinkLane& lane) -> Result<Duration> {
    const Status enqueued = lane.enqueue(bytes, count);
    const Status waited = lane.stream().wait();
    if (!enqueued) return enqueued.error();
    if (!waited) return waited.error();
    return Duration(SteadyClock::now() - start);
  };
  std::vector<std::future<Result<Duration>>>
      others;  // one thread per lane, because a call that waits for its copy would block the other lanes
  for (std::size_t i = 1; i < lanes_.size(); ++i) {
    others.push_back(std::async(std::launch::async, run, std::cref(lanes_[i])));
  }
  std::vector<Result<Duration>> taken{run(lanes_.front())};
  for (auto& other : others) taken.push_back(other.get());
  std::vector<Duration> times;
  for (auto& one : taken) times.push_back(std::move(one).or_throw("measuring a link"));
  return slowest_lanes(times, ends_);
}

std::vector<Duration> LinkLanes::time(std::size_t bytes, std::size_t count) {
  if (gated_) {
    if (auto taken = time_gated(bytes, count)) return *std::move(taken);
    expired_ = true;
    gated_ = false;
  }
  return time_by_host(bytes, count);
}

void LinkLanes::spoil(std::size_t bytes, std::size_t count) const {
  for (const LinkLane& lane : lanes_) lane.spoil(bytes, count);
}

bool LinkLanes::arrived(std::size_t route, std::size_t bytes, std::size_t count) const {
  const auto end = lanes_.begin() + static_cast<std::ptrdiff_t>(ends_[route]);
  return std::all_of(end - static_cast<std::ptrdiff_t>(this->count(route)), end,
                     [bytes, count](const LinkLane& lane) { return lane.arrived(bytes, count); });
}

}  // namespace headrace::measure
