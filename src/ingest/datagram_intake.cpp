#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "headrace/base/error.hpp"
#include "ingest/datagram_packet.hpp"
#include "ingest/datagram_sequencer.hpp"
#include "ingest/datagram_streams.hpp"
#include "ingest/intake.hpp"

namespace headrace::ingest {

namespace {

constexpr std::uint32_t kDatagramPieces = 4096;
constexpr std::uint32_t kFrames = 256;
/// How long datagrams may wait to be copied if they do not fill a frame.
constexpr Duration kGather = std::chrono::milliseconds(1);
/// For this long after the consumer made space, it is expected to make more.
constexpr std::uint64_t kPatience = 200'000'000;

/// Numbered datagrams of several senders, each with a stream. It processes the datagrams of a sender in their order of
/// arrival: if one waits for space, later ones of the same sender wait in the ring; other senders continue.
class DatagramIntake final : public HostIntake {
 public:
  DatagramIntake(const IntakeParts& parts, const DatagramReception& datagrams, std::uint32_t frame_count)
      : HostIntake(parts),
        config_(checked(datagrams.config)),
        waits_(datagrams.wait_for_space),
        senders_max_(datagrams.senders),
        idle_ns_(static_cast<std::uint64_t>(std::max(datagrams.idle, Duration{}).count())),
        from_(datagrams.from),
        frame_count_(frame_count),
        pieces_(kDatagramPieces),
        frames_(kFrames),
        by_place_(parts.streams.places().size()) {
    output_.pieces = pieces_.data();
    output_.pieces_max = kDatagramPieces;
    output_.frames = frames_.data();
    output_.frames_max = kFrames;
  }

  /// None while datagrams wait for space, if the source can wait. From other sources none while half of the ring waits
  /// and the consumer makes space: the kernel's buffer holds what arrives meanwhile.
  [[nodiscard]] std::size_t room(std::size_t most) const override {
    const bool full = waits_ ? is_waiting() : progresses() && waits_too_long();
    return full ? 0 : most;
  }
  [[nodiscard]] bool is_waiting() const override {
    return std::any_of(streams_.begin(), streams_.end(), [](const auto& one) { return !one->waiting.empty(); });
  }

  void take(std::span<const Packet> packets, std::uint64_t before, std::uint64_t now) override {
    now_ = now;
    const Layer layer = parts_.source.layer();
    const std::byte* const ring = parts_.ring.buffer().data();
    counted_.packets += packets.size();
    if (gathered_at_ == 0) gathered_at_ = now;
    drained_to_ = before;
    for (std::size_t i = 0; i < packets.size(); ++i) {
      WaitingRun found{.run = {}, .position = before + i};
      const ParseResult result = find_datagrams(ring, packets[i], layer, config_, found.run);
      if (result == ParseResult::ok && layer == Layer::payload) found.run.flow = parts_.source.sender(i);
      if (result == ParseResult::ok) {
        take(found, packets[i].received_ns);
      } else {
        refuse(result);
      }
    }
    drained_to_ = parts_.ring.published();
    drain();
    drop_what_waits_too_long();
  }

  void act(std::uint64_t now, bool drained) override {
    now_ = now;
    drained_to_ = parts_.ring.published();
    for (const auto& stream : streams_) {
      if (stream->place) {
        const FrameRing& frames = *parts_.streams.places()[*stream->place].frames;
        const std::uint64_t limit = frames.reserved_end() / config_.frame_bytes();
        if (limit > stream->view().shared->frame_limit) progress_at_ = now;
        sequencer(*stream).set_limit(limit);
      }
      if (!stream->waiting.empty()) go_on(*stream, true);
      // Packets that still wait in the source may be those that a frame lacks: then this side is late, not the sender.
      const bool current = drained && !waits_ && stream->waiting.empty();
      if (current && now >= sequencer(*stream).next_deadline()) sequencer(*stream).tick();
    }
    if (output_.piece_count != 0 || output_.frame_count != 0) drain();
  }

  [[nodiscard]] Duration patience(std::uint64_t now) const override {
    const bool waited_for = waits_ || closed_ || gathered_at_ == 0;
    const bool crowded = parts_.ring.published() - parts_.ring.released() > parts_.ring.slot_count() / 4;
    if (waited_for || crowded) return {};
    return kGather - Duration{static_cast<std::int64_t>(now - gathered_at_)};
  }

  void flush(bool ring_full) override {
    HostIntake::flush(ring_full);
    gathered_at_ = 0;
    closed_ = false;
    if (ring_full && ring_end() == parts_.ring.released()) free_slots();
  }

  [[nodiscard]] std::uint64_t next_deadline() const override {
    std::uint64_t deadline = ~std::uint64_t{0};
    if (waits_) return deadline;
    DatagramOutput none;
    for (const auto& stream : streams_) {
      deadline = std::min(deadline, DatagramSequencer(stream->view(), nullptr, none, 0).next_deadline());
    }
    return deadline;
  }

  void obey(StreamRequest /*request*/, std::uint64_t /*now*/) override {}  // datagrams have no connection to answer

  void end(std::uint64_t now) override { end_all(StreamEnd::finished, now); }
  void give_up() noexcept override {
    try {
      end_all(StreamEnd::cut, now_);
    } catch (...) {  // NOLINT(bugprone-empty-catch): why the receiver ends is known
    }
    HostIntake::give_up();
  }

  void count(ReceiverCounters& counters) const override {
    counters.datagrams = counted_;
    for (const auto& stream : streams_) counters.datagrams.add(stream->counters());
    std::copy(std::begin(refused_), std::end(refused_), std::begin(counters.refused));
  }

 private:
  [[nodiscard]] DatagramSequencer sequencer(const DatagramStream& stream) {
    output_.stream = stream.place.value_or(0);
    return {stream.view(), parts_.ring.buffer().data(), output_, now_};
  }

  void refuse(ParseResult why) {
    ++refused_[static_cast<std::size_t>(why)];
    const bool datagram = why == ParseResult::no_number || why == ParseResult::too_long || why == ParseResult::no_place;
    if (datagram) {
      ++counted_.malformed;
    } else {
      ++counted_.unparsed;
    }
  }

  void take(const WaitingRun& found, std::uint64_t received_ns) {
    const auto passes = [&](const SenderFilter& filter) { return filter.matches(found.run.flow); };
    if (!from_.empty() && std::none_of(from_.begin(), from_.end(), passes)) return refuse(ParseResult::other_sender);
    DatagramStream* const stream = stream_of(found.run, received_ns);
    if (stream == nullptr) return;
    stream->heard_at = received_ns;
    WaitingRun left = found;
    const bool others = !stream->waiting.empty();
    if (!others && feed(*stream, left, true)) return;
    if (!others) progress_at_ = now_;
    stream->waiting.push_back(left);
  }

  /// The stream of the sender of these datagrams; null, and counted, if it cannot have one.
  [[nodiscard]] DatagramStream* stream_of(const DatagramRun& run, std::uint64_t received_ns) {
    if (DatagramStream* const known = streams_.find(run.flow)) return known;
    // A sender gets no place before it sends a datagram that fits.
    if (const ParseResult fits = DatagramSequencer::fit(config_, parts_.ring.buffer().data() + run.at, run.next());
        fits != ParseResult::ok) {
      refuse(fits);
      return nullptr;
    }
    if (streams_.size() >= senders_max_ && !retire_idle(received_ns)) {
      refuse(ParseResult::too_many);
      return nullptr;
    }
    DatagramStream* const added = streams_.add(run.flow, config_, frame_count_, next_number_);
    if (added == nullptr) {
      refuse(ParseResult::too_many);
      return nullptr;
    }
    ++next_number_;
    return added;
  }

  /// Ends the stream that has been silent longest, if that is long enough.
  [[nodiscard]] bool retire_idle(std::uint64_t received_ns) {
    if (received_ns < idle_look_at_) return false;
    DatagramStream* const idlest = streams_.idlest();
    idle_look_at_ = idlest == nullptr ? 0 : idlest->heard_at + idle_ns_;
    if (idlest == nullptr || received_ns < idle_look_at_ || !idlest->waiting.empty()) return false;
    end_stream(*idlest, StreamEnd::timed_out);
    counted_.add(idlest->counters());
    streams_.remove(*idlest);
    return true;
  }

  /// Takes the datagrams of a run as far as there is space. False if some are left and have to wait.
  [[nodiscard]] bool feed(DatagramStream& stream, WaitingRun& left, bool may_wait) {
    const std::byte* const ring = parts_.ring.buffer().data();
    do {
      const std::uint32_t bytes = left.run.next();
      if (const ParseResult fits = DatagramSequencer::fit(config_, ring + left.run.at, bytes);
          fits != ParseResult::ok) {
        refuse(fits);
      } else {
        if (!stream.place && !open(stream)) {
          if (may_wait && !no_memory_) return false;
          refuse(ParseResult::too_many);
          return true;
        }
        switch (sequencer(stream).take(left.run.at, bytes, may_wait)) {
          case Taken::done: break;
          case Taken::suspect: stream.suspect_position = left.position; break;
          case Taken::space: return false;
          case Taken::room: drain(); continue;
          case Taken::restart: return begin_anew(stream, left);
        }
      }
      left.run.skip(bytes);
    } while (left.run.length > 0);
    return true;
  }

  /// Begins another stream: the sender has restarted with its suspect and the first datagram of `left`.
  [[nodiscard]] bool begin_anew(DatagramStream& stream, const WaitingRun& left) {
    const DatagramSuspect suspect = stream.view().shared->suspect;
    const WaitingRun first{.run = {suspect.at, suspect.length, suspect.length, stream.sender},
                           .position = stream.suspect_position};
    stream.view().shared->suspect.valid = false;
    stream.before = stream.number;
    end_stream(stream, StreamEnd::restarted);
    counted_.add(stream.counters());
    ++counted_.restarts;
    stream.begin_anew(next_number_++);
    stream.waiting.push_front(left);
    stream.waiting.push_front(first);
    return true;
  }

  /// Opens the stream in the table. False if its datagrams have to wait for that, or if no_memory_.
  [[nodiscard]] bool open(DatagramStream& stream) {
    if (no_memory_ || (stream.before && parts_.streams.find(*stream.before))) return false;
    if (!parts_.streams.open(stream.number, 0, stream.sender)) {
      no_memory_ = !parts_.streams.may_open_later();
      const bool others = std::any_of(streams_.begin(), streams_.end(), [](const auto& one) { return !!one->place; });
      if (no_memory_ && !others) {
        throw DeviceError(Errc::out_of_memory, "there is not enough memory for the frames of a stream of datagrams");
      }
      return false;
    }
    stream.place = parts_.streams.find(stream.number);
    by_place_[*stream.place] = &stream;
    return true;
  }

  /// Takes the waiting datagrams, in order.
  void go_on(DatagramStream& stream, bool may_wait) {
    while (!stream.waiting.empty()) {
      WaitingRun left = stream.waiting.front();
      stream.waiting.pop_front();
      if (feed(stream, left, may_wait)) continue;
      stream.waiting.push_front(left);
      return;
    }
  }

  /// Closes the stream's frames and ends the stream.
  void end_stream(DatagramStream& stream, StreamEnd why) {
    if (!stream.place) return;
    while (!sequencer(stream).finish()) drain();
    drain();
    const std::uint64_t bytes = sequencer(stream).stream_bytes();
    parts_.streams.end(*stream.place, why, stream.view().shared->base, bytes);
    by_place_[*stream.place] = nullptr;
    stream.place.reset();
    no_memory_ = false;
  }

  void end_all(StreamEnd why, std::uint64_t now) {
    now_ = now;
    drained_to_ = parts_.ring.published();
    for (const auto& stream : streams_) {
      while (!stream->waiting.empty()) go_on(*stream, false);
      end_stream(*stream, why);
      stream->waiting.clear();
    }
    drain();
    wait();
  }

  /// Frees slots when waiting datagrams fill the ring: drops suspects and, without progress of the consumer, old ones.
  void free_slots() {
    if (waits_ && is_waiting()) return;  // the consumer makes space
    for (const auto& stream : streams_) sequencer(*stream).drop_suspect();
    drop_what_waits_too_long();
  }

  /// True if the consumer has made space lately.
  [[nodiscard]] bool progresses() const { return now_ - progress_at_ < kPatience; }
  /// True if a datagram waits that came half a ring ago.
  [[nodiscard]] bool waits_too_long(const DatagramStream& stream) const {
    const std::uint64_t end = parts_.ring.published();
    return !stream.waiting.empty() && end - stream.waiting.front().position > parts_.ring.slot_count() / 2;
  }
  [[nodiscard]] bool waits_too_long() const {
    return std::any_of(streams_.begin(), streams_.end(), [this](const auto& one) { return waits_too_long(*one); });
  }

  /// If the consumer makes no space, waiting datagrams may keep at most half of the ring, unless the source can wait.
  void drop_what_waits_too_long() {
    if (waits_ || progresses()) return;
    for (const auto& stream : streams_) {
      if (!waits_too_long(*stream)) continue;
      while (waits_too_long(*stream)) {
        WaitingRun left = stream->waiting.front();
        stream->waiting.pop_front();
        static_cast<void>(feed(*stream, left, false));
      }
      drain();
    }
  }

  /// The ring position below which no slot is needed once all placed datagrams are copied.
  [[nodiscard]] std::uint64_t ring_end() const {
    std::uint64_t end = drained_to_;
    for (const auto& stream : streams_) end = std::min(end, stream->oldest_position().value_or(end));
    return end;
  }

  void drain() {
    parts_.builder->place({output_.pieces, output_.piece_count}, ring_end()).or_throw("placing datagrams");
    output_.piece_count = 0;
    closed_ = closed_ || output_.frame_count != 0;
    for (std::uint32_t i = 0; i < output_.frame_count; ++i) close_frame(output_.frames[i]);
    output_.frame_count = 0;
  }

  void close_frame(const ClosedFrame& frame) {
    if (frame.payload_bytes == config_.frame_bytes()) return;  // the builder knows that it is full
    const DatagramView& view = by_place_[frame.stream]->view();
    const bool all_full = frame.payload_bytes == std::uint64_t{frame.present} * config_.payload_bytes;
    FrameEnd end{.bytes = frame.bytes,
                 .packet_bytes = config_.payload_bytes,
                 .presence = {view.presence_of(frame.frame), view.presence_words}};
    if (!all_full) end.lengths = {view.lengths_of(frame.frame), frame.packets};
    parts_.builder->close(frame.stream, frame.frame, end).or_throw("closing a frame of datagrams");
  }

  DatagramConfig config_;
  bool waits_;
  std::uint32_t senders_max_;
  std::uint64_t idle_ns_;
  std::vector<SenderFilter> from_;
  std::uint32_t frame_count_;
  std::vector<Piece> pieces_;
  std::vector<ClosedFrame> frames_;
  DatagramOutput output_;
  DatagramStreams streams_;
  std::vector<DatagramStream*> by_place_;
  bool no_memory_ = false;  ///< There is no memory for another stream's frames until a stream ends.
  std::uint32_t next_number_ = 0;
  std::uint64_t now_ = 0;
  std::uint64_t gathered_at_ = 0;   ///< When the first datagram came that may not have been copied; 0: all have.
  bool closed_ = false;             ///< A frame was closed since then; the consumer waits for it.
  std::uint64_t progress_at_ = 0;   ///< When the consumer last made space, or a datagram began to wait for it.
  std::uint64_t drained_to_ = 0;    ///< Ring positions below this have been processed.
  std::uint64_t idle_look_at_ = 0;  ///< No stream is idle before this time.
  DatagramCounters counted_;        ///< Counts of packets and of ended streams.
  std::uint64_t refused_[kParseResults] = {};
};

}  // namespace

std::unique_ptr<Intake> make_datagram_intake(const IntakeParts& parts, const DatagramReception& datagrams) {
  return std::make_unique<DatagramIntake>(parts, datagrams, parts.streams.frame_count());
}

}  // namespace headrace::ingest
