#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "headrace/ingest/packet.hpp"
#include "headrace/ingest/receiver.hpp"
#include "ingest/stream_table.hpp"

namespace headrace::ingest {

/// What all intakes work with.
struct IntakeParts {
  Source& source;
  Ring& ring;
  Builder& builder;
  StreamTable& streams;
};

/// A receiver's sequencer, and what becomes of what it says: pieces go to the builder, streams begin and end, replies
/// are sent. `now` is SteadyClock's, in nanoseconds. Throws what ends the receiver.
class Intake {
 public:
  Intake() = default;
  Intake(const Intake&) = delete;
  Intake& operator=(const Intake&) = delete;
  virtual ~Intake() = default;

  /// How many packets may be taken, at most `most`.
  [[nodiscard]] virtual std::size_t room(std::size_t most) const { return most; }
  /// A burst, which ends with the ring's last published slot; `before` is where it begins.
  virtual void take(std::span<const Packet> packets, std::uint64_t before, std::uint64_t now) = 0;
  /// What is due, and what follows from space that the consumer has made. `drained`: no packet that came before `now`
  /// waits in the source.
  virtual void act(std::uint64_t now, bool drained) = 0;
  /// When act() has to be called.
  [[nodiscard]] virtual std::uint64_t next_deadline() const = 0;
  /// Ends a stream, and tells its peer.
  virtual void reset(std::uint32_t stream, std::uint64_t now) = 0;
  /// Nothing more will come: ends all streams.
  virtual void end(std::uint64_t now) = 0;
  virtual void count(ReceiverCounters& counters) const = 0;
};

[[nodiscard]] std::unique_ptr<Intake> make_tcp_intake(const IntakeParts& parts, const TcpReception& tcp);
[[nodiscard]] std::unique_ptr<Intake> make_datagram_intake(const IntakeParts& parts,
                                                           const DatagramReception& datagrams);

}  // namespace headrace::ingest
