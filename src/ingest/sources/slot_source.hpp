#pragma once

#include <string_view>

#include "headrace/ingest/source.hpp"
#include "ingest/sources/slots.hpp"

namespace headrace::ingest {

/// The common part of sources: slots, counters, and defaults for sources that never end or cannot send. `Base` is
/// Source or an extension of it.
template <class Base = Source>
class SlotSource : public Base {
 public:
  [[nodiscard]] bool ended() const noexcept override { return false; }
  [[nodiscard]] Status send(std::span<const std::byte> /*packet*/) noexcept override { return Errc::not_supported; }
  [[nodiscard]] SourceCounters counters() const noexcept override { return counters_; }

 protected:
  SlotSource(Ring& ring, std::string_view name) : slots_(ring, name) {}

  /// Counts a packet that is handed out.
  void count(const Packet& packet) noexcept {
    ++counters_.packets;
    counters_.bytes += packet.length;
    if (packet.truncated) ++counters_.truncated;
  }
  void count_sent(std::size_t bytes) noexcept {
    ++counters_.sent;
    counters_.sent_bytes += bytes;
  }

  Slots slots_;
  SourceCounters counters_;
};

}  // namespace headrace::ingest
