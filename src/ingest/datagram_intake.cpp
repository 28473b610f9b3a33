#include <algorithm>
#include <optional>
#include <vector>

#include "headrace/device/buffer.hpp"
#include "headrace/ingest/datagram_sequencer.hpp"
#include "headrace/ingest/parse.hpp"
#include "ingest/intake.hpp"

namespace headrace::ingest {

namespace {

constexpr std::uint32_t kPieces = 4096;
/// Datagrams that a kernel merges into one packet at most (Linux: 128), and some more.
constexpr std::uint32_t kPiecesOfPacket = 256;
/// Of the one stream, with the builder and with the consumer.
constexpr std::uint32_t kStream = 0;

class DatagramIntake final : public HostIntake {
 public:
  DatagramIntake(const IntakeParts& parts, const DatagramReception& datagrams, std::uint32_t frame_count)
      : HostIntake(parts),
        config_(datagrams.config),
        wait_for_space_(datagrams.wait_for_space),
        presence_frames_(frame_count + config_.window_frames + 1),
        memory_(Device::parse("cpu"), MemoryKind::pageable, datagram_state_bytes(config_, presence_frames_)),
        view_(make_datagram_state(memory_.data(), config_, presence_frames_)),
        pieces_(kPieces),
        frames_(kPiecesOfPacket + 2 * std::size_t{config_.window_frames}) {
    view_.shared->frame_limit = frame_count;
    output_.pieces = pieces_.data();
    output_.pieces_max = kPieces;
    output_.frames = frames_.data();
    output_.frames_max = static_cast<std::uint32_t>(frames_.size());
  }

  [[nodiscard]] std::size_t room(std::size_t most) const override {
    if (!wait_for_space_) return most;
    const DatagramShared& shared = *view_.shared;
    const std::uint64_t space = shared.frame_limit * config_.frame_packets;
    if (!shared.started) return static_cast<std::size_t>(std::min<std::uint64_t>(most, config_.frame_packets));
    const std::uint64_t next = shared.known_end();
    return next >= space ? 0 : static_cast<std::size_t>(std::min<std::uint64_t>(most, space - next));
  }

  void take(std::span<const Packet> packets, std::uint64_t before, std::uint64_t now) override {
    DatagramSequencer sequencer = at(now);
    const Layer layer = parts_.source.layer();
    for (const Packet& packet : packets) {
      if (output_.piece_count + kPiecesOfPacket > kPieces || 2 * output_.frame_count > output_.frames_max) {
        drain(packets.front(), before);
      }
      sequencer.receive(packet, layer);
    }
    if (!packets.empty()) drain(packets.front(), parts_.ring.published());
  }

  void act(std::uint64_t now, bool drained) override {
    const auto place = parts_.streams.find(kStream);
    if (!place) return;
    DatagramSequencer sequencer = at(now);
    const StreamTable::Stream& stream = parts_.streams.places()[*place];
    sequencer.set_limit(stream.frames->reserved_end() / frame_bytes());
    // What waits in the source may be what a frame lacks: it is this side that is late then.
    if (!drained || now < sequencer.next_deadline()) return;
    sequencer.tick();
    close_frames(*place);
  }

  [[nodiscard]] std::uint64_t next_deadline() const override {
    DatagramOutput none;
    return DatagramSequencer(view_, parts_.ring.buffer().data(), none, 0).next_deadline();
  }

  void obey(StreamRequest /*request*/, std::uint64_t /*now*/) override {}  // there is nobody to be told

  void end(std::uint64_t now) override {
    if (const auto place = parts_.streams.find(kStream)) {
      DatagramSequencer sequencer = at(now);
      while (!sequencer.finish()) close_frames(*place);
      // The builder has to know where the last frame ends before that frame is closed.
      std::uint64_t packets = view_.shared->base * config_.frame_packets;
      if (output_.frame_count > 0) packets -= config_.frame_packets - output_.frames[output_.frame_count - 1].packets;
      parts_.streams.end(*place, StreamEvent::finished, packets * config_.payload_bytes);
      close_frames(*place);
    }
    wait();
  }

  void count(ReceiverCounters& counters) const override { counters.datagrams = view_.shared->counters; }

 private:
  [[nodiscard]] DatagramSequencer at(std::uint64_t now) { return {view_, parts_.ring.buffer().data(), output_, now}; }
  [[nodiscard]] std::uint64_t frame_bytes() const noexcept {
    return std::uint64_t{config_.frame_packets} * config_.payload_bytes;
  }

  void drain(const Packet& packet, std::uint64_t ring_end) {
    if (output_.piece_count != 0 && !opened_) {
      opened_ = parts_.streams.open(kStream, 0, sender_of(packet));
      if (!opened_) throw DeviceError(Errc::out_of_memory, "there is no memory for the frames of datagrams");
    }
    for (std::uint32_t i = 0; i < output_.piece_count; ++i) output_.pieces[i].stream = kStream;
    parts_.builder->place({output_.pieces, output_.piece_count}, ring_end).or_throw("placing datagrams");
    output_.piece_count = 0;
    close_frames(kStream);
  }

  void close_frames(std::uint32_t place) {
    for (std::uint32_t i = 0; i < output_.frame_count; ++i) {
      const ClosedFrame& frame = output_.frames[i];
      const Status closed =
          parts_.builder->close(place, frame.frame, {view_.presence_of(frame.frame), view_.presence_words});
      const bool completed_by_itself = frame.complete() && !closed && closed.error().code == Errc::invalid_argument;
      if (!completed_by_itself) closed.or_throw("closing a frame of datagrams");
    }
    output_.frame_count = 0;
  }

  [[nodiscard]] Flow sender_of(const Packet& packet) const {
    const Layer layer = parts_.source.layer();
    Headers headers;
    if (layer == Layer::payload || config_.raw ||
        parse_headers(parts_.ring.buffer().data() + packet.ring_offset, packet, layer, headers) != ParseResult::ok) {
      return {};
    }
    return headers.flow;
  }

  DatagramConfig config_;
  bool wait_for_space_;
  std::uint32_t presence_frames_;
  Buffer memory_;
  DatagramView view_;
  std::vector<Piece> pieces_;
  std::vector<ClosedFrame> frames_;
  DatagramOutput output_;
  bool opened_ = false;
};

}  // namespace

std::unique_ptr<Intake> make_datagram_intake(const IntakeParts& parts, const DatagramReception& datagrams) {
  return std::make_unique<DatagramIntake>(parts, datagrams, parts.streams.frame_count());
}

}  // namespace headrace::ingest
