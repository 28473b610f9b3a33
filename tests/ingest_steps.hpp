#pragma once

#include <cstddef>
#include <cstdint>

#include "ingest/tcp/sequencer.hpp"

namespace headrace::ingest::testing {

/// One call of a sequencer, recorded so that it can be repeated elsewhere.
struct Step {
  enum class Kind : std::uint32_t { packet, tick, limit, close, abort, send, streams_limit } kind = Kind::packet;
  std::uint32_t connection = 0;
  std::uint32_t stream = 0;
  std::uint64_t now = 0;
  std::uint64_t value = 0;
  std::uint32_t pieces_max = 512;  ///< Capacity for pieces.
  std::uint32_t replies_max = 64;
  Packet packet = {};
};

/// Makes the call; a packet's bytes are what is sent. Each step makes its own sequencer, so anything outside its state
/// is lost between steps. False if send() returns false.
HEADRACE_HD inline bool run_step(const TcpView& view, const std::byte* ring, Output& output, const Step& step) {
  TcpSequencer sequencer(view, ring, output, step.now);
  bool taken = true;
  if (step.kind == Step::Kind::packet) sequencer.receive(step.packet, Layer::ip);
  if (step.kind == Step::Kind::tick) sequencer.tick();
  if (step.kind == Step::Kind::limit) sequencer.set_limit(step.connection, step.stream, step.value);
  if (step.kind == Step::Kind::streams_limit) {
    const auto limit = static_cast<std::uint32_t>(step.value);
    sequencer.set_streams_limit(limit, limit + step.stream);
  }
  if (step.kind == Step::Kind::close) sequencer.close(step.connection, step.stream);
  if (step.kind == Step::Kind::abort) (void)sequencer.abort(step.connection, step.stream);
  if (step.kind == Step::Kind::send) {
    taken = sequencer.send(step.connection, step.stream, ring + step.packet.ring_offset, step.packet.length);
  }
  sequencer.flush();
  return taken;
}

}  // namespace headrace::ingest::testing
