#include "ingest/bench/latency_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <thread>

#include "headrace/base/error.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/stream.hpp"
#include "ingest/bench/latency_feeds.hpp"
#include "ingest/builder/part_list.hpp"

namespace headrace::ingest {

namespace {

constexpr std::uint64_t kAloneRunsMax = 200;
constexpr double kAtOnce = std::numeric_limits<double>::infinity();

LatencyCase checked(LatencyCase of) {
  if (of.ring.burst == 0) throw UsageError("a burst must have at least 1 packet, not 0");
  if (of.frames == 0) throw UsageError("a sample must have at least 1 frame, not 0");
  if (of.ring.packets.payload_bytes > of.ring.frame_bytes) {
    throw UsageError(fmt::format("payloads of {} bytes are longer than frames of {}", of.ring.packets.payload_bytes,
                                 of.ring.frame_bytes));
  }
  const double rate = of.bytes_per_second == 0 ? of.load : of.bytes_per_second;
  if (!std::isfinite(rate) || rate <= 0)
    throw UsageError(fmt::format("the packet rate must be finite and above 0, not {}", rate));
  of.ring.packets.payload_max = 0;
  return of;
}

/// The frames and their feed. One thread runs the feed and takes frames.
template <class Feed>
class LatencyRun {
 public:
  LatencyRun(Device device, const LatencyCase& of)
      : of_(of.ring),
        frame_count_(of.frames),
        frames_(device, {.frame_bytes = of_.frame_bytes, .frame_count = of_.frame_count}),
        looked_at_(device, MemoryKind::pinned, of_.frame_bytes),
        stream_(device),
        feed_(device, of, frames_) {
    held_.reserve(of_.frame_count);
  }

  /// The time from when a frame's last packet is there until the frame is READY, with nothing else happening.
  [[nodiscard]] Duration alone() {
    const std::uint64_t last_packet = ((taken_ + 1) * of_.frame_bytes - 1) / of_.packets.payload_bytes;
    const Time until = SteadyClock::now() + kPatience;
    while (feed_.position() < last_packet) {
      throw_after(until);
      if (feed_.gather(last_packet * of_.packets.payload_bytes) == 0) {
        feed_.flush();
      } else {
        feed_.submit();
      }
    }
    feed_.wait();
    while (feed_.gather((last_packet + 1) * of_.packets.payload_bytes) == 0) {
      throw_after(until);
      feed_.flush();
    }
    const Time start = SteadyClock::now();
    feed_.submit();
    feed_.flush();
    std::optional<Frame> frame;
    while (!frame) {
      throw_after(until);
      feed_.look();
      frame = frames_.try_take().or_throw(kDoing);
    }
    const Duration took = SteadyClock::now() - start;
    ++taken_;
    frames_.release(frame->number).or_throw(kDoing);
    return took;
  }

  /// Runs with packets at this rate until frame_count_ frames are taken.
  [[nodiscard]] LatencySample run(double bytes_per_second, const std::stop_token& stop) {
    measure::Latencies latencies;
    measure::Latencies waited;
    const std::uint64_t last = taken_ + frame_count_;
    hold_from_ = last - std::min<std::uint64_t>(frame_count_, of_.frame_count - 1);
    base_ = feed_.stream_offset();
    ns_per_byte_ = 1e9 / bytes_per_second;
    start_ = SteadyClock::now();
    const std::uint64_t end = packets_end(last * of_.frame_bytes);
    Time moved = start_;
    while (taken_ < last && !stop.stop_requested()) {
      const Time now = SteadyClock::now();
      const std::uint64_t first = feed_.stream_offset() + of_.packets.payload_bytes;
      const std::uint64_t come = come_until(now);
      if (feed_.gather(std::min(end, come)) == 0) {
        // Waiting for packets that are not due is progress; waiting for the frame of the last packet is not.
        if (come < std::min(first, end)) moved = now;
        throw_after(moved + kPatience);
        feed_.try_flush();
        std::this_thread::yield();  // as a Receiver, which waits in its source
      } else {
        moved = now;
        waited.record(now - came_at(first));
        feed_.submit();
      }
      take_ready(latencies);
    }
    const Duration took = SteadyClock::now() - start_;
    feed_.wait();
    if (!stop.stop_requested()) look_at_held();
    return {latencies.summary(), waited.summary(),
            static_cast<double>(end - base_) / std::chrono::duration<double>(took).count()};
  }

  [[nodiscard]] bool right() const noexcept { return looked_ && right_; }
  [[nodiscard]] const Feed& feed() const noexcept { return feed_; }

 private:
  static void throw_after(Time until) {
    if (SteadyClock::now() > until)
      throw DeviceError(Errc::hung, fmt::format("{}: no progress within the time limit", kDoing));
  }
  /// The end of the packet that holds the byte before `offset`.
  [[nodiscard]] std::uint64_t packets_end(std::uint64_t offset) const noexcept {
    const std::uint64_t payload = of_.packets.payload_bytes;
    return (offset + payload - 1) / payload * payload;
  }
  /// When the packet that ends at stream offset `offset` came.
  [[nodiscard]] Time came_at(std::uint64_t offset) const noexcept {
    return start_ + Duration{std::llround(static_cast<double>(offset - base_) * ns_per_byte_)};
  }
  [[nodiscard]] std::uint64_t come_until(Time now) const noexcept {
    if (ns_per_byte_ == 0) return std::numeric_limits<std::uint64_t>::max();
    constexpr double kMost = 1e18;
    const double bytes = static_cast<double>((now - start_).count()) / ns_per_byte_;
    return base_ + static_cast<std::uint64_t>(std::min(bytes, kMost));
  }

  void take_ready(measure::Latencies& latencies) {
    while (frames_.state(taken_) == FrameState::complete) {
      const auto frame = frames_.try_take().or_throw(kDoing);
      if (!frame) return;
      latencies.record(SteadyClock::now() - came_at(packets_end((taken_ + 1) * of_.frame_bytes)));
      if (taken_++ >= hold_from_) {
        held_.push_back(*frame);
      } else {
        frames_.release(frame->number).or_throw(kDoing);
      }
    }
  }

  /// Verifies the last frames of the run, after the measurement.
  void look_at_held() {
    for (const Frame& frame : held_) {
      stream_.copy(looked_at_.data(), frame.data, frame.bytes).or_throw(kDoing);
      stream_.wait().or_throw(kDoing);
      right_ = right_ && frame.missing_bytes == 0 && frame.stream_offset == frame.number * of_.frame_bytes &&
               feed_.holds(looked_at_.data(), frame.stream_offset, frame.bytes);
      looked_ = true;
      frames_.release(frame.number).or_throw(kDoing);
    }
    held_.clear();
  }

  RingCase of_;
  std::uint64_t frame_count_;
  FrameRing frames_;
  Buffer looked_at_;
  Stream stream_;  ///< Declared after the memory that it uses, so that it is destroyed first.
  Feed feed_;
  std::vector<Frame> held_;
  std::uint64_t taken_ = 0;
  std::uint64_t hold_from_ = 0;  ///< Frames from this number on are held until the run has ended.
  Time start_{};
  std::uint64_t base_ = 0;  ///< Stream offset at which the run began.
  double ns_per_byte_ = 0;
  bool looked_ = false;
  bool right_ = true;
};

template <class Feed>
Duration median_alone(LatencyRun<Feed>& run, std::uint64_t runs, const std::stop_token& stop) {
  std::vector<Duration> times;
  while (times.size() < runs && !stop.stop_requested()) times.push_back(run.alone());
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return times.empty() ? Duration{} : *middle;
}

template <class Feed>
LatencyRuns measure(Device device, const LatencyCase& of, std::size_t samples, const std::stop_token& stop) {
  LatencyRun<Feed> run(device, of);
  LatencyRuns found;
  found.alone = median_alone(run, std::min(of.frames, kAloneRunsMax), stop);
  static_cast<void>(run.run(kAtOnce, stop));
  found.reached_per_second = run.run(kAtOnce, stop).bytes_per_second;
  found.bytes_per_second = of.bytes_per_second > 0 ? of.bytes_per_second : of.load * found.reached_per_second;
  static_cast<void>(run.run(found.bytes_per_second, stop));
  const std::uint64_t bursts = run.feed().bursts();
  const std::uint64_t bytes = run.feed().burst_bytes();
  for (std::size_t i = 0; i < samples; ++i) {
    const LatencySample sample = run.run(found.bytes_per_second, stop);
    if (stop.stop_requested()) break;
    found.samples.push_back(sample);
  }
  if (run.feed().bursts() > bursts) {
    found.burst_bytes =
        static_cast<double>(run.feed().burst_bytes() - bytes) / static_cast<double>(run.feed().bursts() - bursts);
  }
  found.verified = !found.samples.empty() && run.right();
  return found;
}

}  // namespace

LatencyRuns measure_frame_latency(Device device, const LatencyCase& of, std::size_t samples,
                                  const std::stop_token& stop) {
  const LatencyCase made = checked(of);
  if (made.control == Control::resident) return measure<ResidentFeed>(device, made, samples, stop);
  if (!has_copy_way(device, made.ring.packets.way)) return {.supported = false};
  return measure<BuilderFeed>(device, made, samples, stop);
}

}  // namespace headrace::ingest
