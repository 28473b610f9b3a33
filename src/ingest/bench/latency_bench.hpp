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

/// Measures how soon after its last byte a frame is READY.
namespace headrace::ingest {

struct LatencyCase {
  /// With resident control, way, ring_access, flush_bytes, list_count and prompt_count are ignored, and packets are
  /// those of one TCP connection in order.
  Control control = Control::host;
  /// `packets.total_bytes` and `packets.payload_max` are ignored. No payload may be longer than a frame.
  RingCase ring{.frame_bytes = kMiB, .frame_count = 16, .flush_bytes = 256 * kKiB, .burst = 256};
  std::uint32_t list_count = 4;  ///< As in BuilderOptions, like prompt_count.
  std::uint32_t prompt_count = 1;
  /// The rate of payload, which comes evenly; 0: `load` times the rate of the same builder when packets always wait.
  double bytes_per_second = 0;
  double load = 0.5;
  std::uint64_t frames = 10'000;  ///< Frames of a sample.
};

struct LatencySample {
  /// The latency of frames: from when the packet with the last byte came until try_take() returned the frame.
  measure::LatencySummary latency{};
  /// The wait of bursts: from when the first packet came until it was taken from the ring. Part of `latency`: the
  /// schedule itself is never late.
  measure::LatencySummary waited{};
  double bytes_per_second = 0;  ///< Rate of payload: below the schedule's if the builder fell behind.
};

struct LatencyRuns {
  std::vector<LatencySample> samples{};
  Duration alone{};               ///< Median for one packet that completes a frame while nothing else happens.
  double reached_per_second = 0;  ///< Bytes of payload per second when packets always wait.
  double bytes_per_second = 0;    ///< The rate of the schedule.
  double burst_bytes = 0;         ///< Average payload that the builder submitted at once in the samples.
  bool supported = true;          ///< False: the device does not support the way, and nothing was measured.
  bool verified = false;          ///< The last frames of every sample held what was sent.
};

/// Measures frame latency with packets in a ring in pinned host memory. Each packet comes at a fixed time, whatever the
/// builder does. One thread places packets that have come, as a Receiver does, submits when no packet waits, and takes
/// and releases each READY frame. Warms up first. Throws as measure_device_build().
[[nodiscard]] LatencyRuns measure_frame_latency(Device device, const LatencyCase& of, std::size_t samples,
                                                const std::stop_token& stop = {});

}  // namespace headrace::ingest
