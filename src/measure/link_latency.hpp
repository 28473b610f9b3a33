#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/base/detail/clock.hpp"
#include "headrace/device/device.hpp"

/// Measures the latency of an access over a link, how much of it other work hides, and whether atomic operations are
/// exact (Evtushenko 2020).
namespace headrace::measure {

/// The owner of the accessed memory.
enum class FarMemory : std::uint8_t { local, peer, host };

/// "local", "peer", "host".
[[nodiscard]] std::string_view to_string(FarMemory memory) noexcept;
/// Throws UsageError that lists the known names.
[[nodiscard]] FarMemory parse_far_memory(std::string_view text);

struct ChaseOptions {
  FarMemory memory = FarMemory::local;
  std::optional<Device> peer;      ///< For FarMemory::peer.
  std::size_t bytes = 1 << 20;     ///< Bytes over which the chain is spread.
  std::size_t stride_bytes = 128;  ///< Between neighbouring nodes; a multiple of 8.
  bool first_cache = true;         ///< Whether L1 may cache loads (ld.global.ca instead of .cg); no effect on a CPU.
  std::uint32_t steps = 1 << 14;   ///< Timed steps.
  int samples = 5;
  std::uint64_t seed = 1;  ///< The seed of the order of the nodes.
};

struct ChaseResult {
  double nanoseconds = 0;  ///< Per step; median.
  double least = 0;
  double most = 0;
  std::optional<double> cycles;  ///< Cycles of the multiprocessor's clock per step; empty on a CPU device.
  bool verified = false;         ///< The chain ended where it should.
  std::string note;              ///< Why there is no figure.
};

/// One thread follows a chain of addresses through all nodes in random order, so that each load waits for the previous
/// one (pointer chase). The chain has been followed before, so that the caches hold what they can. Throws UsageError (a
/// stride of 0 or not a multiple of 8, fewer than two nodes, no peer) or DeviceError.
[[nodiscard]] ChaseResult measure_chase(Device device, const ChaseOptions& options);

/// Shows whose L2 caches data read over a link: a chain in a peer's memory is followed once, first with every cache
/// swept, then after its owner has followed it, then after the reader has. Nanoseconds per step; medians.
struct OwnerCache {
  double swept = 0;
  double after_owner = 0;
  double after_reader = 0;  ///< Without L1.
  bool verified = false;
  std::string note;
};

[[nodiscard]] OwnerCache measure_owner_cache(Device reader, Device owner, int samples = 5);

/// Additions to the same words, by one device and by two at once.
struct AtomicsResult {
  double local_per_second = 0;     ///< The owner of the words alone.
  double remote_per_second = 0;    ///< The other alone.
  double together_per_second = 0;  ///< Both at once.
  bool verified = false;           ///< Every word equals the sum of the additions to it.
  std::string note;                ///< Why there are no figures.
};

/// Words in the memory of `owner`, added to by it and by `other` (system scope, relaxed).
[[nodiscard]] AtomicsResult measure_peer_atomics(Device owner, Device other, int samples = 5);
/// Words in mapped host memory, added to by the device and by a thread of the host: "local" is the host.
[[nodiscard]] AtomicsResult measure_host_atomics(Device device, int samples = 5);

/// The work between a load over a link and its use.
enum class HiddenWork : std::uint8_t { loads, arithmetic };

struct HidingPoint {
  std::uint32_t count = 0;  ///< Local loads, all in flight at once; or steps of dependent integer arithmetic.
  double far_only = 0;      ///< Nanoseconds per round: the load alone,
  double work_only = 0;     ///< the work alone,
  double both = 0;          ///< and both.
  /// The share of the shorter one that the longer one hides: 1 if both together take no longer than the longer alone.
  double hidden = 0;
};

struct HidingCurve {
  HiddenWork work = HiddenWork::loads;
  std::vector<HidingPoint> points;
  bool verified = false;
  std::string note;
};

/// The time against the number of local loads (0 to 32) or arithmetic steps (0 to 4,096) that come between a load from
/// `memory` and its use (Evtushenko's graph).
[[nodiscard]] HidingCurve measure_hiding(Device device, FarMemory memory, std::optional<Device> peer, HiddenWork work,
                                         int samples = 5);

}  // namespace headrace::measure
