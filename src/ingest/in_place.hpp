#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "headrace/ingest/detail/packet.hpp"
#include "headrace/ingest/detail/piece.hpp"
#include "headrace/ingest/source.hpp"
#include "ingest/stream_table.hpp"
#include "ingest/tcp/state.hpp"

namespace headrace::ingest {

/// Payloads that a source puts into their frames by itself, which saves a copy: those of one connection that sends in
/// order, to frames of the CPU. The source is told where the next payloads belong if all goes on as before
/// (Expectation). Headers are then read, and from the first packet on that is another than was expected, payloads go
/// back into the ring and take the usual way. Nothing that is wrong can be seen meanwhile: behind the last byte in
/// order the frame is nobody's, for there is an expectation only where no later byte has been accepted.
class InPlace {
 public:
  InPlace(Source& source, std::byte* ring) : source_(source), ring_(ring) {}

  /// Before a burst is taken from the source.
  [[nodiscard]] Expectation expect(const TcpView& view, StreamTable& streams);
  /// The burst, before the sequencer sees it.
  void begin(std::span<const Packet> packets);
  /// How many bytes at the beginning of `piece` lie in their frame. To be asked for all pieces of the burst, in order.
  [[nodiscard]] std::uint32_t placed(const Piece& piece);
  /// The burst is done.
  void end(std::span<const Packet> packets);

 private:
  /// A payload in its frame.
  struct Payload {
    std::uint64_t ring_offset;  ///< Where it would be.
    std::uint64_t stream_offset;
    std::uint32_t bytes;  ///< In the frame; what follows is in the ring.
    const std::byte* at;
  };
  /// The connection that has sent in order.
  struct Steady {
    std::uint32_t stream;
    std::uint64_t end;  ///< The end of its last payload.
    std::uint32_t header_bytes;
  };

  [[nodiscard]] bool is_expected(const Packet& packet, std::uint32_t sequence) const;
  void put_back(const Payload& payload) const;

  Source& source_;
  std::byte* ring_;
  std::optional<std::uint32_t> alone_;  ///< The connection whose pieces, in order, the last burst had, and no others.
  std::optional<Steady> steady_;        ///< The connection that has sent two such bursts.
  Expectation expected_;
  Flow flow_;  ///< These are of what is expected.
  std::uint32_t stream_ = 0;
  std::uint32_t sequence_ = 0;
  std::uint64_t offset_ = 0;
  std::vector<Payload> payloads_;  ///< The payloads of this burst, in order.
  std::size_t next_ = 0;           ///< The first of them that a piece may still be of.
  bool any_ = false;               ///< The burst has had a piece: the last ended as follows.
  bool in_order_ = true;           ///< Each piece of the burst follows the one before it.
  std::uint64_t last_end_ = 0;
  std::uint32_t last_stream_ = 0;
};

}  // namespace headrace::ingest
