#pragma once

#include <cstdint>
#include <memory>

#include "headrace/ingest/source.hpp"

namespace headrace::ingest {

/// What happens to packets on their way, each with a probability from 0 to 1 and independently of the others.
struct Faults {
  double loss = 0;
  double duplication = 0;  ///< The copy comes right after.
  double corruption = 0;   ///< One bit, anywhere, changes; the packet no longer says that its checksum was verified.
  double reordering = 0;   ///< The packet is held back until 1 to `reorder_distance` others have passed it.
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

/// A source that does to another's packets what bad networks do; the same for the same packets and seed. A merged
/// super-packet (Packet::segment_bytes) is one packet: make the source without offloads to lose single segments. A
/// datagram's payload has no checksum left, so that nothing downstream can tell a corrupted one.
class FaultySource : public Source {
 public:
  [[nodiscard]] virtual FaultCounters faults() const noexcept = 0;
};

/// @param inner  fills `between`, a ring that nobody else uses and that outlives this source.
/// @param ring   takes the packets that come through. Its slots must not be smaller.
/// Throws UsageError for probabilities that are none.
[[nodiscard]] std::unique_ptr<FaultySource> make_faulty_source(Ring& ring, std::unique_ptr<Source> inner, Ring& between,
                                                               Faults faults);

}  // namespace headrace::ingest
