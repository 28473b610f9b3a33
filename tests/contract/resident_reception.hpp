#pragma once

#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "ingest/faulty_source.hpp"
#include "ingest/resident/control.hpp"
#include "tests/contract/devices.hpp"
#include "tests/ingest_peer.hpp"

/// Scripted senders for a ResidentControl.
namespace headrace::ingest::testing {

/// A network in one process: packets put on the wire arrive, and answers are kept.
class Wire : public Source {
 public:
  explicit Wire(Ring& ring) : ring_(ring) {}
  [[nodiscard]] Layer layer() const noexcept override { return Layer::ip; }
  [[nodiscard]] Result<std::size_t> receive(std::span<Packet> packets, Duration /*timeout*/) noexcept override {
    std::size_t count = 0;
    for (; count < packets.size() && !coming.empty(); ++count) {
      const auto position = ring_.try_reserve();
      if (!position) break;
      const Bytes& bytes = coming.front();
      if (!bytes.empty()) std::memcpy(ring_.slot(*position), bytes.data(), bytes.size());
      packets[count] = {.ring_offset = static_cast<std::uint64_t>(ring_.slot(*position) - ring_.buffer().data()),
                        .length = static_cast<std::uint32_t>(bytes.size())};
      ring_.publish(*position + 1);
      coming.pop_front();
    }
    return count;
  }
  [[nodiscard]] bool ended() const noexcept override { return false; }
  [[nodiscard]] Status send(std::span<const std::byte> packet) noexcept override {
    Reply reply;
    reply.length = static_cast<std::uint16_t>(packet.size());
    std::memcpy(reply.bytes, packet.data(), packet.size());
    answers.push_back(read_answer(reply));
    return {};
  }
  [[nodiscard]] SourceCounters counters() const noexcept override { return {}; }

  std::deque<Bytes> coming;
  std::deque<Answer> answers;

 private:
  Ring& ring_;
};

/// Sends all of its data over a bad network, and retransmits what is not acknowledged for a while.
class Sender {
 public:
  Sender(const Peer& peer, Bytes bytes, std::uint32_t initial, bool timestamps)
      : data(std::move(bytes)), peer_(peer), initial_(initial), timestamps_(timestamps) {}

  /// Sends what the window allows. `again`: unacknowledged data has been lost.
  void send(Wire& wire, bool again) {
    if (again) ++elapsed_;
    if (finished() || reset) return;
    if (!opened_) {
      if (again || !begun_) put_on(wire, {.sequence = initial_, .flags = kSyn, .options = syn_options(1460, 7, true)});
      begun_ = true;
      return;
    }
    if (again) next_ = acknowledged;
    const std::uint64_t end = std::min<std::uint64_t>(data.size(), edge_);
    while (next_ < end && next_ - acknowledged < kInFlightMax) send_some(wire, std::min(segment, end - next_));
    if (again && next_ == edge_ && next_ < data.size()) send_some(wire, 1);  // probes a closed window
    if (next_ == data.size() && !held_open && (again || !finish_sent_)) {
      put_on(wire, at(data.size(), kAck | kFin, {}));
      finish_sent_ = true;
    }
  }

  void take(Wire& wire, const Answer& answer) {
    if (answer.is(kRst) || answer.is(kRst | kAck)) {
      reset = true;
    } else if (answer.is(kSyn | kAck)) {
      if (!opened_) edge_ = answer.headers.window;
      opened_ = true;
      scale_ = answer.headers.options.window_scale;
      their_next_ = answer.sequence() + 1;
      put_on(wire, at(0, kAck, {}));
    } else {
      const auto said = static_cast<std::uint64_t>(serial_distance(answer.acknowledgement(), initial_ + 1));
      acknowledged = std::max(acknowledged, std::min<std::uint64_t>(said, data.size()));
      next_ = std::max(next_, acknowledged);
      finish_acknowledged_ = finish_acknowledged_ || said > data.size();
      edge_ = std::max(edge_, said + (std::uint64_t{answer.headers.window} << scale_));
      if ((answer.headers.flags & kFin) != 0) {
        their_next_ = answer.sequence() + 1;
        put_on(wire, at(data.size() + 1, kAck, {}));
      }
    }
  }

  [[nodiscard]] bool opened() const { return opened_; }
  [[nodiscard]] bool finished() const { return finish_acknowledged_; }
  [[nodiscard]] std::uint16_t port() const { return peer_.port; }
  /// A segment of the stream, or as modified by a test.
  [[nodiscard]] Segment at(std::uint64_t offset, std::uint8_t flags, Bytes payload) const {
    Segment made{.sequence = initial_ + 1 + static_cast<std::uint32_t>(offset),
                 .acknowledgement = their_next_,
                 .flags = flags,
                 .payload = std::move(payload)};
    if (timestamps_) made.options = testing::timestamps(1000 + elapsed_, 0);
    return made;
  }
  void put_on(Wire& wire, Segment made) const {
    if (timestamps_ && made.flags == kSyn) made.options = made.options + testing::timestamps(1000 + elapsed_, 0);
    wire.coming.push_back(tcp_packet(peer_, made));
  }

  Bytes data;
  std::uint64_t acknowledged = 0;
  std::uint64_t segment = 1400;
  bool held_open = false;  ///< No FIN.
  bool reset = false;

 private:
  static constexpr std::uint64_t kInFlightMax = 200'000;

  void send_some(Wire& wire, std::uint64_t bytes) {
    const auto from = data.begin() + static_cast<std::ptrdiff_t>(next_);
    put_on(wire, at(next_, kAck, Bytes(from, from + static_cast<std::ptrdiff_t>(bytes))));
    next_ += bytes;
  }

  Peer peer_;
  std::uint32_t initial_;
  bool timestamps_;
  bool begun_ = false;
  bool opened_ = false;
  bool finish_sent_ = false;
  bool finish_acknowledged_ = false;
  std::uint32_t scale_ = 0;
  std::uint32_t their_next_ = 0;
  std::uint32_t elapsed_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t edge_ = 0;
};

/// Everything between senders and consumers of frames.
class Reception {
 public:
  static constexpr std::size_t kSlotBytes = 2048;
  struct Sizes {
    std::size_t slots = 512;
    std::size_t frame_bytes = 4096;
    std::uint32_t frame_count = 3;
    std::size_t streams = 4;  ///< Maximum number of streams.
    Faults faults{};
  };
  /// A stream as its consumer sees it.
  struct Received {
    FrameRing* frames = nullptr;
    Bytes bytes;
    std::vector<Frame> seen;
    std::optional<Event> end;
  };

  [[nodiscard]] static ResidentOptions options() {
    ResidentOptions options;
    options.tcp = test_config();
    options.tcp.initial_streams = 0;
    options.tcp.resets_per_second = 1U << 30;
    options.connections = 8;
    options.packets = 256;
    options.parts = 8192;
    options.replies = options.events = 256;
    options.commands = 4;
    return options;
  }

  Reception(Device device, ResidentOptions options, const Sizes& sizes)
      : ring_(device, MemoryKind::mapped, kSlotBytes, sizes.slots),
        between_(device, MemoryKind::mapped, kSlotBytes, sizes.slots),
        connections_(options.connections),
        consumer_(device),
        content_(device, MemoryKind::pinned, sizes.frame_bytes) {
    auto wire = std::make_unique<Wire>(between_);
    wire_ = wire.get();
    source_ = make_faulty_source(ring_, std::move(wire), between_, sizes.faults);
    for (std::size_t s = 0; s < sizes.streams; ++s) {
      frames_.push_back(std::make_unique<FrameRing>(
          device, FrameOptions{.frame_bytes = sizes.frame_bytes, .frame_count = sizes.frame_count}));
    }
    options.tcp.initial_limit = sizes.frame_bytes * sizes.frame_count;
    control.emplace(device, ring_.buffer(), Layer::ip, options);
  }

  /// One round of everything; `consume` says whether frames are taken.
  void turn(bool consume = true) {
    const bool again = std::chrono::steady_clock::now() - progress_ > patience;
    if (again) moved();
    give_frames();
    for (Sender& sender : senders) sender.send(*wire_, again);
    const auto came = control->step(*source_, ring_, Duration::zero());
    ASSERT_OK(came) << control->failure();
    for (; !wire_->answers.empty(); wire_->answers.pop_front()) {
      moved();
      const Answer& answer = wire_->answers.front();
      for (Sender& sender : senders) {
        if (sender.port() == answer.headers.flow.local_port || sender.port() == answer.headers.flow.remote_port) {
          sender.take(*wire_, answer);
        }
      }
    }
    take_events();
    if (consume) take_frames();
    if (*came == 0) std::this_thread::yield();
  }
  /// Runs rounds until `done()`, for at most a minute.
  template <class Done>
  [[nodiscard]] bool turn_until(Done done, bool consume = true) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!done()) {
      if (std::chrono::steady_clock::now() > give_up) return false;
      turn(consume);
      if (::testing::Test::HasFatalFailure()) return false;
    }
    return true;
  }
  [[nodiscard]] bool all_ended() const {
    return received.size() == senders.size() &&
           std::ranges::all_of(received, [](const auto& one) { return one.second.end.has_value(); });
  }
  /// Whether some stream has exactly these bytes.
  [[nodiscard]] bool has(const Bytes& data) const {
    return std::ranges::any_of(received, [&](const auto& one) { return one.second.bytes == data; });
  }

  void take_events() {
    while (true) {
      const auto event = control->next_event();
      ASSERT_OK(event);
      if (!event->has_value()) break;
      moved();
      if ((*event)->kind == StreamEvent::opened) {
        opened.push_back(**event);
        received[(*event)->stream].frames = frames_.at((*event)->stream).get();
      } else if ((*event)->kind != StreamEvent::closed) {
        received[(*event)->stream].end = **event;
        ++ended_;
      }
    }
  }
  /// So that the maximum number of streams can open.
  void give_frames() {
    for (; attach && attached_ < frames_.size() && attached_ - ended_ < connections_; ++attached_) {
      ASSERT_EQ(control->attach(*frames_[attached_]), attached_);
    }
  }

  void take_frames() {
    for (auto& [stream, one] : received) {
      if (one.frames == nullptr) continue;
      while (true) {
        const auto frame = one.frames->try_take();
        ASSERT_OK(frame);
        if (!frame->has_value()) break;
        moved();
        ASSERT_OK(consumer_.copy(content_.data(), (*frame)->data, (*frame)->bytes));
        ASSERT_OK(consumer_.wait());
        one.bytes.insert(one.bytes.end(), content_.data(), content_.data() + (*frame)->bytes);
        one.seen.push_back(**frame);
        ASSERT_OK(one.frames->release((*frame)->number));
      }
    }
  }

  [[nodiscard]] Wire& wire() { return *wire_; }
  [[nodiscard]] Ring& ring() { return ring_; }
  [[nodiscard]] Source& source() { return *source_; }
  [[nodiscard]] FaultCounters faults() const { return source_->faults(); }

  std::vector<Sender> senders;
  std::map<std::uint32_t, Received> received;
  std::vector<Event> opened;
  bool attach = true;
  Duration patience = std::chrono::milliseconds(20);  ///< Time without progress after which senders retransmit.

 private:
  void moved() { progress_ = std::chrono::steady_clock::now(); }

  Ring ring_;
  Ring between_;
  Wire* wire_;
  std::unique_ptr<FaultySource> source_;
  std::vector<std::unique_ptr<FrameRing>> frames_;
  std::size_t connections_;
  std::size_t attached_ = 0;
  std::size_t ended_ = 0;
  Stream consumer_;
  Buffer content_;
  std::chrono::steady_clock::time_point progress_ = std::chrono::steady_clock::now();

 public:
  std::optional<ResidentControl> control;
};

}  // namespace headrace::ingest::testing
