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
  std::uint64_t packets = 0;     ///< Packets received.
  std::uint64_t bytes = 0;       ///< Bytes of those packets.
  std::uint64_t dropped = 0;     ///< Packets known to have been lost: no free slot, or the kernel's own count.
  std::uint64_t truncated = 0;   ///< Packets that did not fit a slot.
  std::uint64_t left_out = 0;    ///< Packets of a capture that its layer cannot carry, because they are not IP.
  std::uint64_t sent = 0;        ///< Packets sent.
  std::uint64_t sent_bytes = 0;  ///< Bytes of those packets.
};

/// Where the payloads of the next packets belong, one after the other, if they continue those before.
struct Expectation {
  std::span<std::byte> place{};    ///< In the host's memory. Empty: nothing is expected.
  std::uint32_t header_bytes = 0;  ///< Bytes of each packet before its payload.
};

/// Where packets come from. It fills slots of a Ring in order, one packet a slot, and owns the producer's side of the
/// ring: receive() reserves and publishes. The reader returns slots with Ring::release(), in ring order, once it has
/// copied what it needs. Used by one thread at a time.
class Source {
 public:
  virtual ~Source() = default;

  /// Which header packets begin with.
  [[nodiscard]] virtual Layer layer() const noexcept = 0;
  /// Receives a burst of at most packets.size() packets, in the order of arrival, and returns their number. Waits up to
  /// `timeout` for the first one; 0 if none came, no slot is free, or the source has ended.
  [[nodiscard]] virtual Result<std::size_t> receive(std::span<Packet> packets, Duration timeout) noexcept = 0;
  /// Allows the next receive(), and no later one, to put the bytes of packets after their first header_bytes into
  /// `place` instead of their slots, one packet after the other, until it is full. The source does not interpret
  /// packets; the caller checks their headers.
  virtual void expect(const Expectation& /*expectation*/) noexcept {}
  /// How many bytes of each packet of the last burst went to the expected place; empty if none did.
  [[nodiscard]] virtual std::span<const std::uint32_t> placed() const noexcept { return {}; }
  /// True once no packet can come any more, such as at the end of a capture.
  [[nodiscard]] virtual bool ended() const noexcept = 0;
  /// The sender of packet `index` of the last burst, if packets have no headers (Layer::payload); Flow::version is 0 if
  /// it is not known.
  [[nodiscard]] virtual Flow sender(std::size_t /*index*/) const noexcept { return {}; }
  /// Sends one packet of this layer. Returns Errc::not_supported if the source cannot send.
  [[nodiscard]] virtual Status send(std::span<const std::byte> packet) noexcept = 0;
  /// The counts so far, for the thread that uses the source.
  [[nodiscard]] virtual SourceCounters counters() const noexcept = 0;
  /// A message for people about the last error of receive() or send(): what is wrong and where. Empty if the error says
  /// everything.
  [[nodiscard]] virtual std::string failure() const { return {}; }
  /// Releases sockets, network devices and files, so that others can use them. Counters and packets in the ring stay;
  /// nothing may be received or sent afterwards.
  virtual void close() noexcept {}
};

}  // namespace headrace::ingest
