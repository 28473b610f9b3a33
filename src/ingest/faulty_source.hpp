#pragma once

#include <cstdint>
#include <memory>

#include "headrace/ingest/source.hpp"

namespace headrace::ingest {

/// Faults of a network, each with a probability from 0 to 1 and independent of the others.
struct Faults {
  double loss = 0;
  double duplication = 0;              ///< The copy follows directly.
  double corruption = 0;               ///< One bit anywhere flips, and the packet is no longer marked as verified.
  double reordering = 0;               ///< The packet is held back until 1 to `reorder_distance` others have passed it.
  std::uint32_t reorder_distance = 8;  ///< At most 64.
  double loss_sent = 0;                ///< The share of outgoing packets (acknowledgements) that is lost.
  std::uint64_t seed = 1;
};

struct FaultCounters {
  std::uint64_t lost = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t corrupted = 0;
  std::uint64_t reordered = 0;
  std::uint64_t lost_sent = 0;
};

/// A source that passes on another source's packets with the faults of bad networks, the same for the same packets and
/// seed. A merged super-packet (Packet::segment_bytes) is one packet: open the inner source without offloads to lose
/// single segments. The payload of a datagram has no checksum left, so nothing downstream can detect a corrupted one.
class FaultySource : public Source {
 public:
  [[nodiscard]] virtual FaultCounters faults() const noexcept = 0;
};

/// @param inner  fills `between`, a ring that nothing else uses and that outlives this source.
/// @param ring   gets the packets that come through. Its slots must be at least as large.
/// Throws UsageError for faults out of range.
[[nodiscard]] std::unique_ptr<FaultySource> make_faulty_source(Ring& ring, std::unique_ptr<Source> inner, Ring& between,
                                                               Faults faults);

}  // namespace headrace::ingest
