#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "tests/ingest_memory_sender.hpp"

namespace {

using namespace headrace::ingest;
using namespace headrace::ingest::testing;

constexpr std::uint32_t kHonest = 3;
constexpr std::uint32_t kHostile = 4;
constexpr std::uint16_t kHonestPort = 1000;
constexpr std::uint16_t kHostilePort = 2000;
constexpr std::size_t kInFlightMax = 32;
constexpr std::uint64_t kIdle = 8 * kSecond;
constexpr std::uint64_t kFirstByte = 4 * kSecond;
/// The receiver may give up an honest peer from which the network has delivered nothing for this long.
constexpr std::uint64_t kNeglected = 2 * kSecond;
constexpr std::uint64_t kPlenty = 1 << 20;
constexpr int kRoundsShort = 100;    ///< Rounds of 10 ms; the others last 100 ms.
constexpr int kRoundsStalled = 800;  ///< Limit without progress of any honest peer.

void require(bool right) {
  if (!right) __builtin_trap();
}

/// Bytes that choose what happens; zeros follow the last one.
struct Input {
  const std::uint8_t* data;
  std::size_t left;
  std::uint32_t byte() {
    if (left == 0) return 0;
    --left;
    return *data++;
  }
  std::uint32_t word() { return byte() << 8 | byte(); }
};

/// A sender with its own kernel, its packets in the network, and the known state of its stream.
struct Honest {
  Bytes data;
  std::unique_ptr<MemorySender> sender;
  std::deque<Bytes> in_flight;
  std::vector<bool> accepted;  ///< Bytes that pieces gave out.
  std::uint64_t prefix = 0;    ///< Bytes given out without a gap.
  std::uint64_t limit = 0;     ///< Space of the consumer.
  std::uint64_t delivered_at = 0;
  std::uint32_t stream = 0;
  std::uint16_t port = 0;
  bool opened = false;
  bool finished = false;
  bool excused = false;  ///< The receiver may give it up; see kNeglected.
};

/// A peer that sends anything and knows the answers.
struct Hostile {
  std::uint32_t initial = 0;
  std::uint32_t acknowledgement = 0;
};

/// Honest and hostile peers, the network between them and the receiver, and its consumer.
class Conversation {
 public:
  explicit Conversation(Input& input) : input_(input), config_(make_config(input)), receiver_(config_, 4) {
    places_ = 1 + input.byte() % 3;
    receiver_.set_streams_limit(places_);
    for (std::uint32_t i = 0; i < kHonest; ++i) add(i);
  }

  void run() {
    while (input_.left > 0) step();
    finish();
  }

 private:
  static TcpConfig make_config(Input& input) {
    const std::uint32_t choices = input.byte();
    TcpConfig config = test_config(1 + input.word() % 8000);
    config.initial_streams = 0;
    config.open_at_first_byte = (choices & 1) == 0;
    config.half_open_max = 4 + (choices >> 1 & 31);
    config.backlog = 8 + (choices >> 6) * 8;
    config.idle_max = kIdle;
    config.first_byte_max = kFirstByte;
    config.challenges_per_second = 1000;
    return config;
  }

  void add(std::uint32_t i) {
    Honest& peer = honest_[i];
    peer.port = static_cast<std::uint16_t>(kHonestPort + i);
    peer.data = pattern(std::uint64_t{i} << 32, input_.word() % 12'000);
    peer.accepted.assign(peer.data.size(), false);
    peer.limit = config_.initial_limit;
    peer.delivered_at = receiver_.now;
    MemorySender::Options options{.peer = {.host = static_cast<std::uint8_t>(1 + i), .port = peer.port}};
    options.initial = 0U - (input_.byte() << 8);  // numbers wrap early in the stream
    options.segment_bytes = 1 + input_.word() % 1460;
    options.retransmit_after = std::chrono::milliseconds(20);
    peer.sender = std::make_unique<MemorySender>(peer.data, options);
  }

  void step() {
    const std::uint32_t choice = input_.byte();
    Honest& peer = honest_[choice / 16 % kHonest];
    switch (choice % 16) {
      case 0:
      case 1:
      case 2: return send(peer);
      case 3:
      case 4: return deliver(peer, 0, false);
      case 5: return deliver(peer, input_.byte(), false);
      case 6: return deliver(peer, input_.byte(), true);
      case 7:
        if (!peer.in_flight.empty()) peer.in_flight.pop_front();
        return;
      case 8: return pass((1 + choice / 16) * kMs);
      case 9: return pass((1 + choice / 16) * 40 * kMs);
      case 10:
        if (choice >= 128) grant();
        return consume(peer, input_.word() % 6000);
      case 11: lost_answers_ = choice / 16; return;
      case 12:
      case 13: return attack_alone(choice / 16 % kHostile);
      case 14: return attack(peer);
      default: return say(peer);
    }
  }

  void send(Honest& peer) {
    if (peer.in_flight.size() == kInFlightMax) return;
    Bytes packet = peer.sender->next(time());
    if (!packet.empty()) peer.in_flight.push_back(std::move(packet));
  }

  void deliver(Honest& peer, std::uint32_t which, bool again) {
    if (peer.in_flight.empty()) return;
    const auto at = peer.in_flight.begin() + static_cast<std::ptrdiff_t>(which % peer.in_flight.size());
    const Bytes packet = *at;
    if (!again) peer.in_flight.erase(at);
    peer.delivered_at = receiver_.now;
    receiver_.arrive(packet);
    look();
  }

  void pass(std::uint64_t nanoseconds) {
    receiver_.now += nanoseconds;
    for (Honest& peer : honest_) peer.excused = peer.excused || receiver_.now - peer.delivered_at > kNeglected;
    receiver_.tick();
    look();
  }

  void consume(Honest& peer, std::uint64_t bytes) {
    if (!peer.opened || peer.finished) return;
    peer.limit += bytes;
    receiver_.set_limit(peer.limit, peer.stream);
    look();
  }

  void say(Honest& peer) {
    if (!peer.opened || peer.finished) return;
    (void)receiver_.send(pattern(0, input_.byte()), peer.stream);
    look();
  }

  /// A segment of one of the attacker's own connections.
  void attack_alone(std::uint32_t i) {
    Hostile& peer = hostile_[i];
    const std::uint32_t choice = input_.byte();
    Segment segment{.sequence = peer.initial + 1 + (choice >> 4) * (choice >> 4),
                    .acknowledgement = peer.acknowledgement,
                    .flags = kAck,
                    .window = static_cast<std::uint16_t>(input_.word())};
    switch (choice % 8) {
      case 0:
        peer.initial = input_.word() << 16;
        segment = {.sequence = peer.initial, .flags = kSyn, .options = syn_options(536, 3, true)};
        break;
      case 1: break;  // the end of the handshake, or a probe
      case 2:
      case 3: segment.payload = Bytes(input_.byte() * 4, std::byte{0xBB}); break;
      case 4: segment.flags = kAck | kFin; break;
      case 5: segment.flags = kRst; break;
      case 6: segment.sequence -= 2; break;
      default: segment.flags = static_cast<std::uint8_t>(input_.byte()); break;
    }
    receiver_.arrive(tcp_packet({.host = 100, .port = static_cast<std::uint16_t>(kHostilePort + i)}, segment));
    look();
  }

  /// A segment that pretends to come from an honest peer: the attacker knows both ends, but no sequence number.
  void attack(Honest& peer) {
    if (!peer.opened || peer.finished) return;  // after its end, a SYN may begin another stream
    const std::uint32_t choice = input_.byte();
    const std::uint32_t far = 1U << 30 | input_.word() << 8;
    Segment segment{.sequence = far, .acknowledgement = far, .flags = static_cast<std::uint8_t>(choice)};
    if (choice % 2 == 0) segment.payload = Bytes(20, std::byte{0xCC});
    receiver_.arrive(tcp_packet(peer.sender->peer(), segment));
    look();
  }

  /// Checks the results of the last call against the known state.
  void look() {
    for (const Event& event : receiver_.events) {
      if (event.kind == StreamEvent::opened) note_opened(event);
    }
    for (const Piece& piece : receiver_.pieces) note(piece);
    for (const Event& event : receiver_.events) {
      if (event.kind != StreamEvent::opened && event.kind != StreamEvent::closed) note_ended(event);
    }
    for (const Answer& answer : receiver_.answers) note(answer);
    const std::uint64_t lost = receiver_.counters().half_open_lost;
    if (lost != std::exchange(half_open_lost_, lost)) {  // the table of handshakes is small here
      for (Honest& peer : honest_) peer.excused = peer.excused || !peer.opened;
    }
  }

  [[nodiscard]] Honest* owner(std::uint32_t stream) {
    for (Honest& peer : honest_) {
      if (peer.opened && peer.stream == stream) return &peer;
    }
    return nullptr;
  }

  void note_opened(const Event& event) {
    require(event.stream < places_);
    open_.push_back(event.stream);
    const std::uint32_t port = event.flow.remote_port;
    if (port < kHonestPort || port >= kHonestPort + kHonest) return;
    Honest& peer = honest_[port - kHonestPort];
    require(!peer.opened || peer.excused || peer.finished);  // once, unless it is over and an old SYN arrives again
    if (peer.opened) return;
    peer.opened = true;
    peer.stream = event.stream;
  }

  void note_ended(const Event& event) {
    ++ended_;
    std::erase(open_, event.stream);
    Honest* const peer = owner(event.stream);
    if (peer == nullptr) return;
    if (event.kind == StreamEvent::finished) {
      require(event.offset == peer->data.size() && peer->prefix == peer->data.size());
      peer->finished = true;
      return;
    }
    require(peer->excused);  // nothing that other peers do ends it
  }

  void note(const Piece& piece) {
    Honest* const peer = owner(piece.stream);
    if (peer == nullptr) return;
    require(piece.length > 0 &&
            piece.stream_offset + piece.length <= std::min<std::uint64_t>(peer->limit, peer->data.size()));
    for (std::uint64_t i = 0; i < piece.length; ++i) {
      const std::uint64_t at = piece.stream_offset + i;
      require(!peer->accepted[at]);  // once
      peer->accepted[at] = true;
      require(receiver_.ring()[piece.ring_offset + i] == peer->data[at]);
    }
    while (peer->prefix < peer->data.size() && peer->accepted[peer->prefix]) ++peer->prefix;
  }

  void note(const Answer& answer) {
    const std::uint32_t port = answer.headers.flow.local_port;
    if (port >= kHostilePort && port < kHostilePort + kHostile) {
      Hostile& peer = hostile_[port - kHostilePort];
      if (!answer.is(kRst)) peer.acknowledgement = answer.sequence() + (answer.is(kSyn | kAck) ? 1U : 0U);
      return;
    }
    if (port < kHonestPort || port >= kHonestPort + kHonest) return;
    Honest& peer = honest_[port - kHonestPort];
    if ((answer.headers.flags & kRst) != 0) {
      if (!peer.excused && !peer.finished) return;  // outside of its window: its kernel would refuse it as well
    } else if (lost_answers_ > 0) {
      --lost_answers_;
      return;
    }
    peer.sender->take(answer, time());
    require(peer.excused || peer.sender->acknowledged() <= peer.prefix + (peer.finished ? 1 : 0));
  }

  /// From now on the network loses nothing and the consumer takes everything, so every honest peer finishes.
  void finish() {
    lost_answers_ = 0;
    const std::vector<std::uint32_t> open = open_;
    for (const std::uint32_t stream : open) {  // nor does it keep an attacker's window closed
      if (owner(stream) != nullptr) continue;
      receiver_.set_limit(kPlenty, stream);
      look();
    }
    int stalled = 0;
    for (int round = 0; stalled < kRoundsStalled && !all_over(); ++round) {
      const std::uint64_t before = progress();
      grant();
      for (Honest& peer : honest_) {
        for (std::size_t i = 0; i < kInFlightMax; ++i) send(peer);
        while (!peer.in_flight.empty()) deliver(peer, 0, false);
        if (peer.opened && peer.limit < peer.data.size()) consume(peer, peer.data.size());
        peer.delivered_at = receiver_.now;
      }
      pass((round < kRoundsShort ? 10 : 100) * kMs);
      stalled = progress() == before ? stalled + 1 : 0;
    }
    for (const Honest& peer : honest_) {
      if (peer.excused) continue;
      require(peer.finished && peer.sender->acknowledged() == peer.data.size() + 1);
    }
  }

  /// The consumer has taken streams that have ended, which frees their places.
  void grant() {
    if (ended_ == 0) return;
    places_ += std::exchange(ended_, 0);
    receiver_.set_streams_limit(places_);
    look();
  }

  /// Grows with every byte that a peer knows to be acknowledged, and with every peer that finishes.
  [[nodiscard]] std::uint64_t progress() const {
    std::uint64_t sum = 0;
    for (const Honest& peer : honest_) {
      sum += peer.sender->acknowledged() + (peer.opened ? 1 : 0) + (peer.finished ? 1 : 0) + (peer.excused ? 1 : 0);
    }
    return sum;
  }

  [[nodiscard]] bool all_over() const {
    return std::ranges::all_of(honest_, [](const Honest& peer) {
      return peer.excused || (peer.finished && peer.sender->acknowledged() == peer.data.size() + 1);
    });
  }
  [[nodiscard]] headrace::Time time() const { return headrace::Time{static_cast<std::int64_t>(receiver_.now)}; }

  Input& input_;
  TcpConfig config_;
  Receiver receiver_;
  Honest honest_[kHonest];
  Hostile hostile_[kHostile];
  std::vector<std::uint32_t> open_;
  std::uint32_t ended_ = 0;   ///< Ended streams whose places are not free yet.
  std::uint32_t places_ = 0;  ///< Streams that may have been opened.
  std::uint64_t half_open_lost_ = 0;
  std::uint32_t lost_answers_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*count*/, char*** /*arguments*/) {
  GTEST_FLAG_SET(break_on_failure, true);  // failed expectations in the test helpers also stop the target
  return 0;
}

/// Whole conversations. Honest peers use a network that loses, duplicates and delays packets; hostile peers send
/// anything and forge segments of connections that they cannot see. Every byte of an honest peer is given out once and
/// unchanged, nothing is acknowledged before that, and every honest peer finishes once the network is fair.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input{data, std::min<std::size_t>(size, 2048)};
  Conversation(input).run();
  return 0;
}
