#pragma once

// A Source brings packets into the slots of a Ring. Sockets, network devices, captures and memory have one each; a
// Receiver takes any.
//
//     auto count_bytes = [](headrace::ingest::Source& source, headrace::Ring& ring) {
//       std::vector<headrace::ingest::Packet> burst(64);
//       while (!source.ended()) {
//         std::size_t count = source.receive(burst, std::chrono::milliseconds(10)).or_throw("receiving");
//         for (std::size_t i = 0; i < count; ++i) std::printf("%u bytes\n", burst[i].length);
//         ring.release(ring.published());
//       }
//     };

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "headrace/base/detail/clock.hpp"
#include "headrace/base/result.hpp"
#include "headrace/device/ring.hpp"
#include "headrace/ingest/detail/headers.hpp"
#include "headrace/ingest/detail/packet.hpp"

namespace headrace::ingest {

/// What a source has seen since it was made.
struct SourceCounters {
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
  std::uint64_t dropped = 0;    ///< Packets known to have been lost: no free slot, or the kernel's own count.
  std::uint64_t truncated = 0;  ///< Packets that did not fit a slot.
  std::uint64_t left_out = 0;   ///< Packets that a capture holds and that have no place in its layer: they are not IP.
  std::uint64_t sent = 0;
  std::uint64_t sent_bytes = 0;
};

/// Where the payloads of the next packets belong, one behind the other, if they come as those before.
struct Expectation {
  std::span<std::byte> place{};  ///< In the host's memory. Empty: nothing is expected.
  std::uint32_t header_bytes = 0;
};

/// Where packets come from. It fills slots of a Ring in order, one packet a slot, and owns the producer's side of the
/// ring: receive() reserves and publishes. Whoever has copied what it needs gives slots back with Ring::release(), in
/// ring order. Used by one thread at a time.
class Source {
 public:
  virtual ~Source() = default;

  [[nodiscard]] virtual Layer layer() const noexcept = 0;
  /// A burst: at most packets.size() packets, in the order of arrival. Waits for the first one until `timeout`; 0 when
  /// none came, no slot is free, or the source has ended.
  [[nodiscard]] virtual Result<std::size_t> receive(std::span<Packet> packets, Duration timeout) noexcept = 0;
  /// What the next receive() may make use of, and no later one: behind their first header_bytes it may put the bytes of
  /// packets to `place` instead of into their slots, those of one packet behind those of the one before, until it is
  /// full. Whatever packets hold: whoever expects them looks at their headers.
  virtual void expect(const Expectation& /*expectation*/) noexcept {}
  /// How many bytes of each packet of the last burst were put there. Empty: none of any.
  [[nodiscard]] virtual std::span<const std::uint32_t> placed() const noexcept { return {}; }
  /// True once nothing can come any more (the end of a capture).
  [[nodiscard]] virtual bool ended() const noexcept = 0;
  /// The sender of packet `index` of the last burst, where packets have no headers (Layer::payload); of version 0 where
  /// that is not known.
  [[nodiscard]] virtual Flow sender(std::size_t /*index*/) const noexcept { return {}; }
  /// Sends one packet of this layer; Errc::not_supported where the source has no way out.
  [[nodiscard]] virtual Status send(std::span<const std::byte> packet) noexcept = 0;
  [[nodiscard]] virtual SourceCounters counters() const noexcept = 0;
  /// After receive() or send() gave an error: what is wrong and where, for people. Empty where the error says all there
  /// is.
  [[nodiscard]] virtual std::string failure() const { return {}; }
  /// Gives back what it has of the system: sockets, network devices, files, so that others can have the same. Counters
  /// stay, and packets that are in the ring. Nothing may be received or sent any more.
  virtual void close() noexcept {}
};

}  // namespace headrace::ingest
