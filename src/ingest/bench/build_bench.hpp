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

/// How fast payloads get from a ring into frames, each figure beside the roof of the same run.
namespace headrace::ingest {

/// What packets look like, and how they are copied.
struct BuildCase {
  CopyWay way = CopyWay::automatic;
  /// Payload bytes of every packet; with payload_max above it, anything between the two, drawn at random.
  std::uint32_t payload_bytes = 8000;
  std::uint32_t payload_max = 0;
  std::uint32_t header_bytes = 54;  ///< Before the payload in its slot.
  /// Bytes of a slot; 0: the least multiple of 16 that holds the longest packet.
  std::uint32_t slot_bytes = 0;
  std::size_t total_bytes = kGiB;  ///< Bytes of all slots: more than fits in a cache.
  std::uint64_t seed = 1;
};

struct BuildRuns {
  std::vector<Duration> times{};    ///< The time of each run.
  std::vector<Duration> plain{};    ///< The times of copies within the device of as many bytes, in turns with the runs.
  std::uint64_t payload_bytes = 0;  ///< Payload bytes of one run.
  std::uint64_t packets = 0;
  std::uint64_t parts = 0;  ///< Copies that they were cut into.
  bool supported = true;    ///< False: the device has no such way, and nothing was measured.
  bool verified = false;    ///< Every byte of the last run was where a plain copy puts it.
};

/// Packets that lie in device memory, and their list too: what the copies themselves cost. A run places all packets
/// once; its time is the device's. Throws UsageError for what cannot be, DeviceError where there is no room.
[[nodiscard]] BuildRuns measure_device_build(Device device, const BuildCase& of, std::size_t runs,
                                             const std::stop_token& stop = {});

struct RingCase {
  BuildCase packets{};  ///< total_bytes is what a run brings; the ring is gone round as often as that takes.
  RingAccess ring_access = RingAccess::automatic;
  std::size_t ring_bytes = 128 * kMiB;
  std::size_t frame_bytes = 64 * kMiB;
  std::uint32_t frame_count = 4;
  std::size_t flush_bytes = 8 * kMiB;
  std::uint32_t burst = 1024;  ///< Packets of one place().
};

/// A ring in pinned host memory, gone round by a Builder while a consumer on a stream takes every frame: the whole path
/// but for source and sequencer. `plain` are copies of as many payload bytes by the copy engine, from host memory to
/// the device. Throws as measure_device_build().
[[nodiscard]] BuildRuns measure_ring_build(Device device, const RingCase& of, std::size_t runs,
                                           const std::stop_token& stop = {});

/// The same with a ResidentControl in place of Builder and host: packets of one TCP connection in order, whose sender
/// keeps to the window that replies offer. payload_max, header_bytes, `way` and `ring_access` are not looked at.
[[nodiscard]] BuildRuns measure_resident_build(Device device, const RingCase& of, std::size_t runs,
                                               const std::stop_token& stop = {});

/// One iteration of a builder's loop: a burst of packets placed, submitted and waited for. Its time for several numbers
/// of packets is what the model of Ito 2024 is fitted to. Of each run, in the order of `packets`.
[[nodiscard]] std::vector<Duration> measure_iterations(Device device, CopyWay way, std::uint32_t payload_bytes,
                                                       const std::vector<std::uint32_t>& packets, std::size_t runs);

}  // namespace headrace::ingest
