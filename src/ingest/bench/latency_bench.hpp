#pragma once

#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <vector>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/detail/clock.hpp"
#include "headrace/device/device.hpp"
#include "headrace/ingest/builder.hpp"
#include "headrace/ingest/receiver.hpp"
#include "headrace/measure/detail/latencies.hpp"
#include "ingest/bench/build_bench.hpp"

/// How soon after its last byte a frame is READY.
namespace headrace::ingest {

struct LatencyCase {
  /// Resident: way, ring_access, flush_bytes, list_count and prompt_count are not looked at, and packets are those of
  /// one TCP connection in order.
  Control control = Control::host;
  /// The bench does not look at packets, total_bytes and payload_max, and no payload is longer than a frame.
  RingCase ring{.frame_bytes = kMiB, .frame_count = 16, .flush_bytes = 256 * kKiB, .burst = 256};
  std::uint32_t list_count = 4;  ///< As for BuilderOptions, as is prompt_count.
  std::uint32_t prompt_count = 1;
  /// The rate of payload, which comes evenly; 0: `load` times what the same builder reaches when packets always wait.
  double bytes_per_second = 0;
  double load = 0.5;
  std::uint64_t frames = 10'000;  ///< Frames of a sample.
};

struct LatencySample {
  /// The latency of frames: from when the packet with the last byte came until try_take() gave the frame.
  measure::LatencySummary latency{};
  /// The wait of bursts: from when the first packet came until it was taken from the ring. Part of `latency`: the
  /// schedule itself is never late.
  measure::LatencySummary waited{};
  double bytes_per_second = 0;  ///< Payload that came through: below the schedule's where the builder fell behind.
};

struct LatencyRuns {
  std::vector<LatencySample> samples{};
  Duration alone{};               ///< Median for one packet that completes a frame while nothing else happens.
  double reached_per_second = 0;  ///< Bytes of payload, when packets always wait.
  double bytes_per_second = 0;    ///< The rate of the schedule.
  double burst_bytes = 0;         ///< Payload that the builder submitted at once in the samples, on the average.
  bool supported = true;          ///< False: the device has no such way, and nothing was measured.
  bool verified = false;          ///< The last frames of every sample held what was sent.
};

/// Packets in a ring in pinned host memory, each there at a time that is fixed beforehand, whatever the builder does;
/// one thread places what has come, as a Receiver does, submits when nothing waits, and takes and releases each frame
/// that is READY. After runs that warm up. Throws as measure_device_build().
[[nodiscard]] LatencyRuns measure_frame_latency(Device device, const LatencyCase& of, std::size_t samples,
                                                const std::stop_token& stop = {});

}  // namespace headrace::ingest
