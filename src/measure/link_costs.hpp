#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/base/detail/clock.hpp"
#include "headrace/device/device.hpp"

/// Measures the cost of sending small pieces and of peer access (Evtushenko 2020).
namespace headrace::measure {

/// Many small copies compared with one large copy, from pinned host memory to the device. Medians by the host's clock,
/// from the first call until everything has arrived.
struct BatchedSend {
  std::size_t pieces = 0;
  std::size_t piece_bytes = 0;
  Duration each{};   ///< One call per piece.
  Duration whole{};  ///< One call for all pieces.
  Duration batch{};  ///< The pieces through a CopyBatch, scattered on both sides so that none merge.
  int samples = 0;
  bool verified = false;
};

/// Evtushenko's 512 pieces of 1 KiB by default. Throws UsageError (no pieces, no bytes, not a multiple of 16) or
/// DeviceError.
[[nodiscard]] BatchedSend measure_batched_send(Device device, std::size_t pieces = 512, std::size_t piece_bytes = 1024,
                                               int samples = 9);

/// The cost of access to another device's memory: to all of it, and by rights to a span.
struct PeerCosts {
  std::string note;         ///< Why there are no figures.
  double copy_without = 0;  ///< Bytes per second of one copy of 64 MiB from the peer without access; 0 if not possible.
  double copy_with = 0;     ///< The same with access.
  Duration enable{};        ///< Time of PeerAccess, measured once while the peer has `allocations`.
  std::size_t allocations = 0;  ///< Timed allocations of allocation_bytes each on the peer:
  std::size_t allocation_bytes = 0;
  Duration allocate_without{};  ///< the time of all of them, without access,
  Duration allocate_with{};     ///< and with it.
  std::size_t span_pages = 0;
  Duration allow{};       ///< Span::allow() for a span of so many pages on the peer; median.
  std::string span_note;  ///< Why there is no figure for spans.
};

[[nodiscard]] PeerCosts measure_peer_costs(Device device, Device peer, int samples = 5);

/// NVLink's own counters, compared with a known number of bytes.
struct CounterCheck {
  std::string note;                  ///< Why there are no figures.
  std::uint64_t moved_bytes = 0;     ///< Copied from the peer to the device.
  std::uint64_t received_bytes = 0;  ///< By the device's counters,
  std::uint64_t sent_bytes = 0;      ///< and by the peer's.
  double rate = 0;                   ///< Bytes per second of the copies, by the host's clock.
};

/// Copies `bytes` bytes in pieces of 64 MiB over the link, and reads the counters before and after.
[[nodiscard]] CounterCheck measure_counters(Device device, Device peer, std::uint64_t bytes = std::uint64_t{4} << 30U);

}  // namespace headrace::measure
