#include <algorithm>
#include <optional>
#include <vector>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/detail/health.hpp"
#include "headrace/device/detail/peer.hpp"
#include "headrace/device/span.hpp"
#include "headrace/measure/links.hpp"
#include "measure/link_costs.hpp"
#include "measure/median.hpp"

namespace headrace::measure {

namespace {

constexpr std::size_t kCopyBytes = 64 * kMiB;
constexpr std::size_t kAllocations = 256;
constexpr std::size_t kAllocationBytes = 2 * kMiB;
constexpr std::size_t kSpanPages = 32;

/// As many allocations as fit next to the memory of the other measurements.
std::size_t allocation_count(Device peer) {
  return std::clamp<std::size_t>(peer.memory().free_bytes / 4 / kAllocationBytes, 1, kAllocations);
}

std::vector<Buffer> allocate(Device peer, std::size_t count) {
  std::vector<Buffer> buffers;
  buffers.reserve(count);
  for (std::size_t i = 0; i < count; ++i) buffers.emplace_back(peer, MemoryKind::device, kAllocationBytes);
  return buffers;
}

/// The time of `count` allocations, without freeing them.
Duration time_allocations(Device peer, std::size_t count, int samples) {
  std::vector<Duration> times;
  for (int sample = 0; sample < samples; ++sample) {
    const Time start = SteadyClock::now();
    const auto buffers = allocate(peer, count);
    times.push_back(SteadyClock::now() - start);
  }
  return median(times);
}

double copy_rate(Device device, Device peer, bool access, int samples) {
  const LinkRoute route{
      .device = device, .path = LinkPath::from_peer, .memory = LinkMemory::device, .peer = peer, .peer_access = access};
  LinkOptions options{.sizes = {kCopyBytes}};
  options.samples = samples;
  const LinkCurve curve = measure_link(route, options);
  return curve.points.empty() || !curve.points.front().verified ? 0 : curve.points.front().rate;
}

Duration time_allow(Device device, Device peer, int samples) {
  Span span(peer, kSpanPages * kPageBytes, Placement::all(Place::on(peer)));
  std::vector<Duration> times;
  for (int sample = 0; sample < samples; ++sample) {
    const Time start = SteadyClock::now();
    span.allow(device, Right::read_write);
    times.push_back(SteadyClock::now() - start);
    span.allow(device, Right::none);
  }
  return median(times);
}

/// Copies `bytes` bytes in pieces, from buffer to buffer.
void copy_much(StreamRef stream, const Buffer& to, const Buffer& from, std::uint64_t bytes) {
  constexpr std::uint64_t kAtOnce = 16;  // so that the stream's queue never fills
  std::uint64_t enqueued = 0;
  for (std::uint64_t done = 0; done < bytes; done += kCopyBytes) {
    stream.copy(to.data(), from.data(), std::min<std::uint64_t>(kCopyBytes, bytes - done))
        .or_throw("copying over a link");
    if (++enqueued % kAtOnce == 0) stream.wait().or_throw("copying over a link");
  }
  stream.wait().or_throw("copying over a link");
}

}  // namespace

PeerCosts measure_peer_costs(Device device, Device peer, int samples) {
  if (samples < 1) throw UsageError("an experiment needs at least one sample");
  if (device == peer) throw UsageError("a device cannot be its own peer");
  PeerCosts costs;
  if (!peer_connection(device, peer).access) {
    costs.note = device.name() + " cannot reach the memory of " + peer.name();
    return costs;
  }
  costs.allocation_bytes = kAllocationBytes;
  costs.allocations = allocation_count(peer);
  costs.copy_without = copy_rate(device, peer, false, samples);
  costs.allocate_without = time_allocations(peer, costs.allocations, samples);
  {
    const auto there = allocate(peer, costs.allocations);
    const Time start = SteadyClock::now();
    const PeerAccess access(device, peer);
    costs.enable = SteadyClock::now() - start;
  }
  {
    const PeerAccess access(device, peer);
    costs.allocate_with = time_allocations(peer, costs.allocations, samples);
    costs.copy_with = copy_rate(device, peer, true, samples);
  }
  try {
    costs.allow = time_allow(device, peer, samples);
    costs.span_pages = kSpanPages;
  } catch (const DeviceError& error) {
    if (error.code() != Errc::not_supported && error.code() != Errc::out_of_memory) throw;
    costs.span_note = error.what();
  }
  return costs;
}

CounterCheck measure_counters(Device device, Device peer, std::uint64_t bytes) {
  if (bytes == 0) throw UsageError("the counters need at least one byte to count");
  CounterCheck check;
  const LinkCounters received = read_link_counters(device);
  const LinkCounters sent = read_link_counters(peer);
  check.note = received.absence.empty() ? sent.absence : received.absence;
  if (check.note.empty() && !peer_connection(device, peer).access) check.note = "no peer access";
  if (!check.note.empty()) return check;
  const PeerAccess access(device, peer);
  const Buffer from(peer, MemoryKind::device, kCopyBytes);
  const Buffer to(device, MemoryKind::device, kCopyBytes);
  const Stream stream(device);
  copy_much(stream, to, from, kCopyBytes);  // warms up
  const LinkCounters received_before = read_link_counters(device);
  const LinkCounters sent_before = read_link_counters(peer);
  const Time start = SteadyClock::now();
  copy_much(stream, to, from, bytes);
  const Duration taken = std::max(SteadyClock::now() - start, Duration{1});
  check.moved_bytes = bytes;
  check.received_bytes = read_link_counters(device).received_bytes - received_before.received_bytes;
  check.sent_bytes = read_link_counters(peer).sent_bytes - sent_before.sent_bytes;
  check.rate = static_cast<double>(bytes) / std::chrono::duration<double>(taken).count();
  return check;
}

}  // namespace headrace::measure
