#pragma once

#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <vector>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/detail/clock.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/device.hpp"
#include "headrace/ingest/builder.hpp"
#include "headrace/ingest/detail/copy_way.hpp"

/// Measures how fast payloads get from a ring into frames, each figure with the roof of the same run.
namespace headrace::ingest {

/// The layout of packets, and how they are copied.
struct BuildCase {
  CopyWay way = CopyWay::automatic;
  /// Payload bytes of every packet. If payload_max is above it, sizes are drawn at random between the two.
  std::uint32_t payload_bytes = 8000;
  std::uint32_t payload_max = 0;
  std::uint32_t header_bytes = 54;  ///< Bytes before the payload in its slot.
  /// Bytes of a slot; 0: the least multiple of 16 that holds the longest packet.
  std::uint32_t slot_bytes = 0;
  std::size_t total_bytes = kGiB;  ///< Bytes of all slots: more than a cache holds.
  std::uint64_t seed = 1;
};

struct BuildRuns {
  std::vector<Duration> times{};    ///< The time of each run.
  std::vector<Duration> plain{};    ///< Times of plain copies of as many bytes, alternating with the runs.
  std::uint64_t payload_bytes = 0;  ///< Payload bytes of one run.
  std::uint64_t packets = 0;
  std::uint64_t parts = 0;  ///< Copies that the payloads were cut into.
  bool supported = true;    ///< False: the device does not support the way, and nothing was measured.
  bool verified = false;    ///< Every byte of the last run was where a plain copy puts it.
};

/// Measures the copies alone: packets and their list are in device memory. A run places all packets once; the device
/// measures its time. Throws UsageError for a case out of range, DeviceError if there is no room.
[[nodiscard]] BuildRuns measure_device_build(Device device, const BuildCase& of, std::size_t runs,
                                             const std::stop_token& stop = {});

struct RingCase {
  BuildCase packets{};  ///< total_bytes are the bytes of a run; it goes around the ring as often as that takes.
  RingAccess ring_access = RingAccess::automatic;
  std::size_t ring_bytes = 128 * kMiB;
  std::size_t frame_bytes = 64 * kMiB;
  std::uint32_t frame_count = 4;
  std::size_t flush_bytes = 8 * kMiB;
  std::uint32_t burst = 1024;  ///< Most packets of one place().
};

/// Measures the whole path except source and sequencer: a Builder reads a ring in pinned host memory again and again
/// while a consumer on a stream takes every frame. `plain` are copies of as many payload bytes by the copy engine, from
/// host memory to the device. Throws as measure_device_build().
[[nodiscard]] BuildRuns measure_ring_build(Device device, const RingCase& of, std::size_t runs,
                                           const std::stop_token& stop = {});

/// The same with a ResidentControl instead of Builder and host: packets of one TCP connection in order, whose sender
/// respects the window that replies offer. Ignores payload_max, header_bytes, `way` and `ring_access`.
[[nodiscard]] BuildRuns measure_resident_build(Device device, const RingCase& of, std::size_t runs,
                                               const std::stop_token& stop = {});

/// Measures one iteration of a builder's loop: it places and submits a burst of packets and waits for it. The model of
/// Ito 2024 is fitted to its time for several numbers of packets. Returns medians in the order of `packets`.
[[nodiscard]] std::vector<Duration> measure_iterations(Device device, CopyWay way, std::uint32_t payload_bytes,
                                                       const std::vector<std::uint32_t>& packets, std::size_t runs);

}  // namespace headrace::ingest
