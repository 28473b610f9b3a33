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

/// Lets a source put payloads directly into their frames, which saves a copy: those of one connection that sends in
/// order, into frames of the CPU. The source is told where the next payloads belong if the connection continues as
/// before (Expectation). InPlace then reads the headers. From the first unexpected packet on, it moves payloads back
/// into the ring, and they take the usual path. Nothing reads wrong bytes meanwhile: there is an expectation only if no
/// byte beyond the last one in order has been accepted, so that the rest of the frame is unused.
class InPlace {
 public:
  InPlace(Source& source, std::byte* ring) : source_(source), ring_(ring) {}

  /// Call before a burst is taken from the source.
  [[nodiscard]] Expectation expect(const TcpView& view, StreamTable& streams);
  /// Call with the burst before the sequencer gets it.
  void begin(std::span<const Packet> packets);
  /// How many bytes at the beginning of `piece` are already in their frame. Call it for all pieces of a burst in order.
  [[nodiscard]] std::uint32_t placed(const Piece& piece);
  /// Call when the burst is done.
  void end(std::span<const Packet> packets);

 private:
  /// A payload in its frame.
  struct Payload {
    std::uint64_t ring_offset;  ///< Where it would be in the ring.
    std::uint64_t stream_offset;
    std::uint32_t bytes;  ///< Bytes in the frame; the rest is in the ring.
    const std::byte* at;
  };
  /// A connection that has sent in order.
  struct Steady {
    std::uint32_t stream;
    std::uint64_t end;  ///< The end of its last payload.
    std::uint32_t header_bytes;
  };

  [[nodiscard]] bool is_expected(const Packet& packet, std::uint32_t sequence) const;
  void put_back(const Payload& payload) const;

  Source& source_;
  std::byte* ring_;
  std::optional<std::uint32_t> alone_;  ///< The stream whose pieces alone, in order, made up the last burst.
  std::optional<Steady> steady_;        ///< The connection, once it has sent two such bursts.
  Expectation expected_;
  Flow flow_;  ///< This and the next three describe the expected packet.
  std::uint32_t stream_ = 0;
  std::uint32_t sequence_ = 0;
  std::uint64_t offset_ = 0;
  std::vector<Payload> payloads_;  ///< The payloads of this burst, in order.
  std::size_t next_ = 0;           ///< The first of payloads_ that the next piece may belong to.
  bool any_ = false;               ///< The burst has had a piece; the last one ended at last_end_ of last_stream_.
  bool in_order_ = true;           ///< Each piece of the burst follows the one before it.
  std::uint64_t last_end_ = 0;
  std::uint32_t last_stream_ = 0;
};

}  // namespace headrace::ingest
