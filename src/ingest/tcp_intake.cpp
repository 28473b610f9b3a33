#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/device/buffer.hpp"
#include "ingest/answer_queue.hpp"
#include "ingest/in_place.hpp"
#include "ingest/intake.hpp"
#include "ingest/tcp/sequencer.hpp"

namespace headrace::ingest {

namespace {

constexpr std::uint32_t kTcpPieces = 4096;
constexpr std::uint32_t kReplies = 1024;
constexpr std::uint32_t kEvents = 256;
/// Most pieces of a packet: one for each gap between intervals, and one after them.
constexpr std::uint32_t kPiecesOfPacket = Intervals::kMax + 1;

/// A key from the system's random numbers.
HashKey draw_key() {
  std::random_device device;
  const auto word = [&] { return std::uint64_t{device()} << 32 | device(); };
  return {{word(), word()}};
}

class TcpIntake final : public HostIntake {
 public:
  TcpIntake(const IntakeParts& parts, const TcpReception& tcp)
      : HostIntake(parts),
        memory_(Device::parse("cpu"), MemoryKind::pageable, tcp_state_bytes(tcp_connections(tcp), tcp.config)),
        view_(make_tcp_state(memory_.data(), tcp_connections(tcp), completed(tcp.config, parts.streams.space_bytes()))),
        pieces_(kTcpPieces),
        replies_(kReplies),
        events_(kEvents),
        answers_(parts.answer_bytes),
        in_place_(parts.source, parts.ring.buffer().data()) {
    output_.pieces = pieces_.data();
    output_.replies = replies_.data();
    output_.events = events_.data();
    output_.pieces_max = kTcpPieces;
    output_.replies_max = kReplies;
    output_.events_max = kEvents;
  }

  [[nodiscard]] Expectation expect() override { return in_place_.expect(view_, parts_.streams); }

  void take(std::span<const Packet> packets, std::uint64_t before, std::uint64_t now) override {
    in_place_.begin(packets);
    TcpSequencer sequencer = at(now);
    const Layer layer = parts_.source.layer();
    const TcpShared& shared = *view_.shared;
    bool places = true;
    for (const Packet& packet : packets) {
      if (!output_.has_room() || output_.piece_count + kPiecesOfPacket > kTcpPieces) drain(before);
      sequencer.receive(packet, layer);
      if (places && shared.places_now() == 0) places = grant(sequencer);
    }
    sequencer.flush();
    drain(parts_.ring.published());
    in_place_.end(packets);
  }

  void act(std::uint64_t now, bool /*drained*/) override {
    TcpSequencer sequencer = at(now);
    const std::uint64_t end = parts_.ring.published();
    if (now >= sequencer.next_deadline()) {
      sequencer.tick();
      drain(end);
    }
    std::uint32_t streams = 0;
    do {  // streams that finished without a byte open without a packet
      if (!output_.has_room()) drain(end);
      streams = view_.shared->streams;
      static_cast<void>(grant(sequencer));
    } while (view_.shared->streams != streams);
    for (StreamTable::Stream& stream : parts_.streams.places()) {
      if (!stream.frames || stream.end) continue;
      const std::uint64_t limit = stream.frames->reserved_end();
      if (limit == stream.limit) continue;
      stream.limit = limit;
      if (!output_.has_room()) drain(end);
      sequencer.set_limit(stream.connection, stream.number, limit);
    }
    answers_.hand_on(sequencer, view_);  // if the output has no room, the next tick sends the rest
    drain(end);
    note_peeks(end);
  }

  [[nodiscard]] std::uint64_t next_deadline() const override { return view_.shared->deadline(); }

  void obey(StreamRequest request, std::uint64_t now) override {
    switch (request.kind) {
      case StreamRequest::Kind::reset: return reset(request.stream, now);
      case StreamRequest::Kind::send: return answers_.add(view_, request.stream, std::move(request.bytes));
      case StreamRequest::Kind::close: return answers_.close(view_, request.stream);
      case StreamRequest::Kind::peek: break;
    }
    const auto place = parts_.streams.find(request.stream);
    if (place) parts_.streams.places()[*place].peek = {.offset = request.offset, .least = request.end};
  }

  void reset(std::uint32_t stream, std::uint64_t now) {
    const auto place = parts_.streams.find(stream);
    if (!place || parts_.streams.places()[*place].end) return;
    TcpSequencer sequencer = at(now);
    parts_.streams.places()[*place].cut = true;
    static_cast<void>(sequencer.abort(parts_.streams.places()[*place].connection,
                                      stream));  // there is room, because the output is drained
    drain(parts_.ring.published());
  }

  void end(std::uint64_t now) override {
    for (const StreamTable::Stream& stream : parts_.streams.places()) {
      if (stream.frames) reset(stream.number, now);
    }
    wait();
  }

  void count(ReceiverCounters& counters) const override {
    counters.tcp = view_.shared->counters;
    counters.replies_lost = replies_lost_;
    bool any = false;
    for (const StreamTable::Stream& stream : parts_.streams.places()) {
      if (!stream.frames || stream.end) continue;
      const TcpConnection& connection = view_.connections[stream.connection];
      if (connection.stream != stream.number || !connection.receives()) continue;
      const std::uint64_t window = connection.window();
      counters.window_least_bytes = any ? std::min(counters.window_least_bytes, window) : window;
      any = true;
    }
  }

 private:
  [[nodiscard]] TcpSequencer at(std::uint64_t now) { return {view_, parts_.ring.buffer().data(), output_, now}; }

  /// Lets one more stream open than have opened: frames are made on demand, but before a byte of the stream is
  /// accepted. False if there is no place for it.
  bool grant(TcpSequencer& sequencer) {
    StreamTable& streams = parts_.streams;
    if (streams.granted() == view_.shared->streams) streams.grant();
    sequencer.set_streams_limit(streams.granted(), streams.grantable());
    return streams.granted() != view_.shared->streams;
  }

  /// Carries out the sequencer's output. Slots before `ring_end` hold nothing that is not placed then.
  void drain(std::uint64_t ring_end) {
    open_streams();
    place(ring_end);
    end_streams();
    send_replies();
    output_.clear();
  }

  void open_streams() {
    for (std::uint32_t i = 0; i < output_.event_count; ++i) {
      const Event& event = output_.events[i];
      if (event.kind != StreamEvent::opened) continue;
      if (!parts_.streams.open(event.stream, event.connection, event.flow)) {
        throw Exception(Errc::invalid_argument, "a stream was opened that has no place in the stream table");
      }
    }
  }

  void place(std::uint64_t ring_end) {
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < output_.piece_count; ++i) {
      Piece piece = output_.pieces[i];
      const std::uint32_t placed = in_place_.placed(piece);
      piece.stream = parts_.streams.find(piece.stream).value();  // a stream is open before its first piece comes
      if (placed != 0) parts_.builder->note(piece.stream, piece.stream_offset, placed).or_throw("placing TCP payloads");
      if (placed == piece.length) continue;
      piece.ring_offset += placed;
      piece.stream_offset += placed;
      piece.length -= placed;
      output_.pieces[count++] = piece;
    }
    parts_.builder->place({output_.pieces, count}, ring_end).or_throw("placing TCP payloads");
  }

  void end_streams() {
    for (std::uint32_t i = 0; i < output_.event_count; ++i) {
      const Event& event = output_.events[i];
      if (event.kind == StreamEvent::opened || event.kind == StreamEvent::closed) continue;
      const auto place = parts_.streams.find(event.stream);
      if (place) parts_.streams.end(*place, event.kind, event.offset);
    }
  }

  /// Notes for peeks which bytes have come in order. The builder has them: they are in the frame once the ring is
  /// copied up to `ring_end`.
  void note_peeks(std::uint64_t ring_end) {
    for (StreamTable::Stream& stream : parts_.streams.places()) {
      if (!stream.frames || stream.end || !stream.peek || stream.peek->end != 0) continue;
      const std::uint64_t in_order = view_.connections[stream.connection].intervals.next();
      if (in_order <= stream.peek->offset || in_order < stream.peek->least) continue;
      stream.peek->end = in_order;
      stream.peek->ring_end = ring_end;
      parts_.builder->flush().or_throw("copying payloads");
    }
  }

  void send_replies() {
    for (std::uint32_t i = 0; i < output_.reply_count; ++i) {
      if (!send_reply(parts_.source, output_.replies[i])) ++replies_lost_;
    }
  }

  Buffer memory_;
  TcpView view_;
  std::vector<Piece> pieces_;
  std::vector<Reply> replies_;
  std::vector<Event> events_;
  Output output_;
  AnswerQueue answers_;
  InPlace in_place_;
  std::uint64_t replies_lost_ = 0;
};

}  // namespace

TcpConfig completed(TcpConfig config, std::uint64_t initial_limit) {
  if (config.key.words[0] == 0 && config.key.words[1] == 0) config.key = draw_key();
  config.initial_limit = initial_limit;
  config.initial_streams = 0;
  return config;
}

std::uint32_t tcp_connections(const TcpReception& tcp) noexcept { return 2 * tcp.connections; }

bool send_reply(Source& source, const Reply& reply) {
  const Status sent = source.send({reply.bytes, reply.length});
  if (!sent && sent.error().code != Errc::full) throw_source_error("answering a TCP peer", source, sent.error());
  return sent.ok();
}

std::unique_ptr<Intake> make_tcp_intake(const IntakeParts& parts, const TcpReception& tcp) {
  return std::make_unique<TcpIntake>(parts, tcp);
}

}  // namespace headrace::ingest
