#include "ingest/bench/build_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "headrace/base/error.hpp"
#include "ingest/bench/consumer.hpp"
#include "ingest/bench/ring.hpp"
#include "ingest/builder/part_list.hpp"

namespace headrace::ingest {

namespace {

/// Packets on the device, the list of their parts, and the targets of their payloads.
class DevicePackets {
 public:
  DevicePackets(Device device, const BuildCase& of)
      : of_(of),
        slots_(slots_of(of, of.total_bytes)),
        lengths_(lengths_of(of, slots_.count)),
        host_(device, MemoryKind::pinned, slots_.bytes()),
        ring_(device, MemoryKind::device, slots_.bytes()),
        frames_(device, MemoryKind::device, slots_.bytes()),
        list_(device, of.way, parts()),
        stream_(device) {
    fill_randomly(host_.data(), host_.bytes(), of.seed);
    stream_.copy(ring_.data(), host_.data(), ring_.bytes()).or_throw(kDoing);
    std::byte* to = frames_.data();
    for (std::size_t i = 0; i < slots_.count; ++i) {
      for_each_part(to, ring_.data() + i * slots_.stride + of.header_bytes, lengths_[i], list_.part_bytes(),
                    [&](const Part& part) { list_.push(part); });
      to += lengths_[i];
    }
    list_.upload(stream_).or_throw(kDoing);
    stream_.wait().or_throw(kDoing);
  }

  [[nodiscard]] StreamRef stream() const noexcept { return stream_; }
  [[nodiscard]] std::size_t packets() const noexcept { return slots_.count; }
  [[nodiscard]] std::uint64_t payload_bytes() const noexcept { return list_.bytes(); }
  [[nodiscard]] std::uint32_t part_count() const noexcept { return list_.count(); }
  void clear() { stream_.fill(frames_.data(), 0, list_.bytes()).or_throw(kDoing); }
  void copy() {
    static_cast<void>(list_.copy(stream_).or_throw(fmt::format("copying with way '{}'", to_string(of_.way))));
  }
  void copy_plainly() { stream_.copy(frames_.data(), ring_.data(), list_.bytes()).or_throw(kDoing); }

  /// True if every byte is where a plain copy puts it.
  [[nodiscard]] bool right() {
    const Buffer found(stream_.device(), MemoryKind::pinned, list_.bytes());
    stream_.copy(found.data(), frames_.data(), found.bytes()).or_throw(kDoing);
    stream_.wait().or_throw(kDoing);
    const std::byte* at = found.data();
    for (std::size_t i = 0; i < slots_.count; ++i) {
      if (std::memcmp(at, host_.data() + i * slots_.stride + of_.header_bytes, lengths_[i]) != 0) return false;
      at += lengths_[i];
    }
    return true;
  }

 private:
  /// An upper bound: each packet is cut at aligned targets, which adds one part.
  [[nodiscard]] std::uint32_t parts() const {
    constexpr std::uint32_t kCut = 4096;
    std::size_t count = 0;
    for (const std::uint32_t length : lengths_) count += length / (kCut - kLineBytes) + 2;
    return static_cast<std::uint32_t>(count);
  }

  BuildCase of_;
  SlotSizes slots_;
  std::vector<std::uint32_t> lengths_;
  Buffer host_;
  Buffer ring_;
  Buffer frames_;
  PartList list_;
  Stream stream_;  ///< Declared after the memory that it uses, so that it is destroyed first.
};

/// A ring in pinned memory that a Builder reads again and again, and a consumer that takes every frame.
class RingRun {
 public:
  RingRun(Device device, const RingCase& of)
      : of_(of),
        ring_(device, of),
        consumer_(device, of),
        builder_(device, ring_.memory(),
                 {.way = of.packets.way, .ring_access = of.ring_access, .flush_bytes = of.flush_bytes}),
        packets_(std::max<std::uint64_t>(of.packets.total_bytes / ring_.slot_bytes(), 1)) {
    builder_.attach(0, consumer_.frames());
    pieces_.reserve(of.burst);
  }

  /// Continues where the last run ended: the stream is endless. `keep` copies the first frames of the run to the host.
  [[nodiscard]] Duration run(bool keep, const std::stop_token& stop) {
    first_ = ring_.stream_offset();
    const std::uint64_t last = ring_.position() + packets_;
    const Time start = SteadyClock::now();
    while (ring_.position() < last && !stop.stop_requested()) {
      ring_.gather({.packets = std::min<std::uint64_t>(of_.burst, last - ring_.position()),
                    .copied = builder_.copied().or_throw(kDoing),
                    .stream_end = consumer_.frames().reserved_end()},
                   pieces_);
      if (pieces_.empty()) {
        consumer_.consume(keep);
        builder_.flush().or_throw(kDoing);
        continue;
      }
      builder_.place(pieces_, ring_.position()).or_throw(kDoing);
      consumer_.consume(keep);
    }
    builder_.wait().or_throw(kDoing);
    consumer_.consume(keep);
    consumer_.wait();
    return SteadyClock::now() - start;
  }

  [[nodiscard]] std::uint64_t run_bytes() const noexcept { return ring_.stream_offset() - first_; }
  [[nodiscard]] std::uint64_t packets() const noexcept { return packets_; }
  [[nodiscard]] const Builder& builder() const noexcept { return builder_; }
  [[nodiscard]] StreamRef stream() const noexcept { return consumer_.stream(); }
  [[nodiscard]] const Buffer& memory() const noexcept { return ring_.memory(); }

  /// True if the kept frames hold the payloads of their packets.
  [[nodiscard]] bool right() const {
    return consumer_.all_right(
        [this](const std::byte* frame, std::uint64_t offset) { return ring_.holds(frame, offset, of_.frame_bytes); });
  }

 private:
  RingCase of_;
  BenchRing ring_;
  BenchConsumer consumer_;
  Builder builder_;
  std::vector<Piece> pieces_;
  std::uint64_t packets_;
  std::uint64_t first_ = 0;
};

}  // namespace

BuildRuns measure_device_build(Device device, const BuildCase& of, std::size_t runs, const std::stop_token& stop) {
  if (!has_copy_way(device, of.way)) return {.supported = false};
  DevicePackets packets(device, of);
  BuildRuns found;
  found.payload_bytes = packets.payload_bytes();
  found.packets = packets.packets();
  found.parts = packets.part_count();
  Timer timer(device);
  for (std::size_t run = 0; run <= runs && !stop.stop_requested(); ++run) {
    const Duration plain = timer.time(packets.stream(), [&] { packets.copy_plainly(); });
    packets.clear();
    const Duration took = timer.time(packets.stream(), [&] { packets.copy(); });
    if (run == 0) continue;  // warm-up
    found.plain.push_back(plain);
    found.times.push_back(took);
  }
  found.verified = !found.times.empty() && packets.right();
  return found;
}

BuildRuns measure_ring_build(Device device, const RingCase& of, std::size_t runs, const std::stop_token& stop) {
  if (!has_copy_way(device, of.packets.way)) return {.supported = false};
  if (of.burst == 0) throw UsageError("a burst must have at least 1 packet, not 0");
  RingRun ring(device, of);
  const Buffer target(device, MemoryKind::device, ring.memory().bytes());
  BuildRuns found;
  measure_runs(ring, target, runs, stop, found);
  found.parts = ring.builder().counters().parts;
  return found;
}

std::vector<Duration> measure_iterations(Device device, CopyWay way, std::uint32_t payload_bytes,
                                         const std::vector<std::uint32_t>& packets, std::size_t runs) {
  std::vector<Duration> found;
  for (const std::uint32_t count : packets) {
    BuildCase of{.way = way, .payload_bytes = payload_bytes};
    of.total_bytes = std::size_t{slots_of(of, kGiB).stride} * count;
    DevicePackets burst(device, of);
    std::vector<Duration> times;
    for (std::size_t run = 0; run <= runs; ++run) {
      const Time start = SteadyClock::now();
      burst.copy();
      burst.stream().wait().or_throw(kDoing);
      if (run > 0) times.push_back(SteadyClock::now() - start);
    }
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
    found.push_back(times[times.size() / 2]);
  }
  return found;
}

}  // namespace headrace::ingest
