#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "tests/ingest_peer.hpp"

namespace headrace::ingest::testing {

/// Network impairments, in percent.
struct Weather {
  std::uint32_t lost = 0;
  std::uint32_t doubled = 0;
  std::uint32_t overtaken = 0;
  std::uint32_t corrupted = 0;
  std::uint32_t stray = 0;  ///< Segments that no correct sender would send: beyond the window, old, or with odd flags.
  std::uint32_t said = 0;   ///< Steps in which the receiver sends bytes, which may get lost as well.
};

/// A sender that sends arbitrary parts of a stream in arbitrary order until everything is acknowledged. It checks what
/// the receiver sends and does against a plain map of the bytes that its pieces gave out.
class ArbitrarySender {
 public:
  ArbitrarySender(Receiver& receiver, std::uint32_t seed, const Weather& weather, std::size_t bytes,
                  const Opening& opening, const Peer& peer = {})
      : receiver_(receiver),
        client_(receiver, peer, opening),
        opening_(opening),
        random_(seed),
        weather_(weather),
        data_(pattern(seed * 1'000'003ULL, bytes)),
        accepted_(bytes) {}

  /// Sends everything; fails the test on an error or if it takes too long.
  void run() {
    open();
    if (::testing::Test::HasFatalFailure()) return;
    const std::size_t steps_max = 1000 + 40 * data_.size() / 100;
    std::size_t steps = 0;
    while (!finished_ && steps < steps_max) {
      // In the second half the network is fair and missing bytes go first, so the conversation must end.
      fair_ = steps > steps_max / 2;
      step();
      if (::testing::Test::HasFatalFailure()) return;
      ++steps;
    }
    ASSERT_TRUE(finished_) << "of " << data_.size() << " bytes " << prefix_ << " are in order";
    EXPECT_EQ(prefix_, data_.size());
    if (weather_.said > 0) hear_the_rest();
  }

 private:
  void open() {
    client_.send_syn();
    ASSERT_EQ(receiver_.answers.size(), 1U);
    limit_ = receiver_.view().shared->config.initial_limit;
    scale_ = opening_.scale ? receiver_.answers[0].headers.options.window_scale : 0;
    edge_ = receiver_.answers[0].headers.window;
    client_.send(0, {});
    ASSERT_EQ(receiver_.events.size(), 1U);
    stream_ = receiver_.last_stream;
    first_said_ = client_.acknowledgement;
  }

  void step() {
    ++client_.elapsed_ms;
    receiver_.now += below(3) * kMs;
    const std::uint32_t kind = below(100);
    if (below(100) < weather_.said) {
      say();
    } else if (kind < 5) {
      receiver_.tick();
      check();
    } else if (kind < 15) {
      raise_limit();
    } else if (!in_flight_.empty() && (kind < 50 || in_flight_.size() > 20)) {
      deliver();
    } else {
      send();
    }
  }

  void raise_limit() {
    limit_ += below(6000);
    receiver_.set_limit(limit_, stream_);
    check();
  }

  void send() {
    if (!fair_ && below(100) < weather_.stray) {
      in_flight_.push_back(tcp_packet(client_.peer(), stray()));
      return;
    }
    const std::uint64_t size = data_.size();
    std::uint64_t begin = fair_ || below(4) == 0 ? acknowledged_ : below64(size + 1);
    if (!fair_ && below(4) == 0) begin = std::min(size, highest_);  // new bytes, as a sender mostly sends
    const std::uint64_t end = std::min(size, begin + below(1500));
    highest_ = std::max(highest_, end);
    const bool all = end == size;
    const Bytes payload(data_.begin() + static_cast<std::ptrdiff_t>(begin),
                        data_.begin() + static_cast<std::ptrdiff_t>(end));
    in_flight_.push_back(tcp_packet(
        client_.peer(), client_.segment(static_cast<std::int64_t>(begin), payload, all ? kAck | kFin : kAck)));
  }

  /// A segment outside the stream: the receiver may answer it, but must not accept any of it.
  [[nodiscard]] Segment stray() {
    const auto far = static_cast<std::int64_t>(limit_ + (1U << 24) + below(1 << 20));
    const Bytes junk(1 + below(100), std::byte{0xBB});
    switch (below(6)) {
      case 0: return client_.segment(far, junk);
      case 1: return client_.segment(-static_cast<std::int64_t>(200 + below(1 << 30)), junk);
      case 2: return client_.segment(far, {}, kRst);
      case 3: return client_.segment(static_cast<std::int64_t>(below64(data_.size())), {}, kSyn);
      case 4: return client_.segment(static_cast<std::int64_t>(acknowledged_), junk, 0);
      default: {
        Segment made = client_.segment(static_cast<std::int64_t>(acknowledged_), junk);
        made.acknowledgement += 2 + TcpOutgoing::kBytesMax + below(1 << 20);
        return made;
      }
    }
  }

  void deliver() {
    const std::size_t which = below(100) < weather_.overtaken ? below64(in_flight_.size()) : 0;
    Bytes packet = in_flight_[which];
    if (fair_ || below(100) >= weather_.doubled) {
      in_flight_.erase(in_flight_.begin() + static_cast<std::ptrdiff_t>(which));
    }
    if (!fair_ && below(100) < weather_.lost) return;
    if (!fair_ && below(100) < weather_.corrupted) {
      packet[below64(packet.size())] ^= static_cast<std::byte>(1U << below(8));
    }
    receiver_.arrive(packet);
    check();
  }

  void say() {
    const Bytes more = pattern(said_.size(), below(400));
    const bool taken = receiver_.send(more, stream_);
    if (taken) said_ = said_ + more;
    check();
  }

  /// The receiver may send only what it was given; the network loses some of it.
  void hear(const Answer& answer) {
    const auto at = static_cast<std::size_t>(answer.sequence() - first_said_);
    const bool fin = (answer.headers.flags & kFin) != 0;
    ASSERT_TRUE(answer.is(kAck) || (finished_ && answer.is(kAck | kFin)) ||
                (answer.is(kAck | kPsh) && !answer.payload.empty()));
    ASSERT_LE(at + answer.payload.size(), said_.size() + (fin_seen_ ? 1 : 0));
    for (std::size_t i = 0; i < answer.payload.size(); ++i) ASSERT_EQ(answer.payload[i], said_[at + i]);
    ASSERT_TRUE(!fin || at == said_.size());
    fin_seen_ = fin_seen_ || fin;
    if (at > heard_ || (!fair_ && below(100) < weather_.lost)) return;
    heard_ = std::max(heard_, at + answer.payload.size() + (fin ? 1 : 0));
    client_.acknowledgement = first_said_ + static_cast<std::uint32_t>(heard_);
  }
  [[nodiscard]] bool all_heard() const { return fin_seen_ && heard_ == said_.size() + 1; }

  /// The sender acknowledges until the receiver has nothing left to send and the connection is over.
  void hear_the_rest() {
    for (int i = 0; i < 200 && receiver_.view().shared->unused.count < receiver_.view().shared->connection_count; ++i) {
      fair_ = receiver_.connection().retransmits >= 3;  // the receiver rightly gives up if all six are lost
      receiver_.now = std::max(receiver_.now, std::min(receiver_.next_deadline(), receiver_.now + kSecond));
      receiver_.tick();
      check();
      if (::testing::Test::HasFatalFailure()) return;
      receiver_.arrive(tcp_packet(client_.peer(), client_.segment(static_cast<std::int64_t>(data_.size()) + 1, {})));
      check();
      if (::testing::Test::HasFatalFailure()) return;
    }
    ASSERT_TRUE(all_heard()) << heard_ << " of " << said_.size();
  }

  /// Checks pieces, answers and events of the last call against the known state.
  void check() {
    for (const Piece& piece : receiver_.pieces) {
      ASSERT_EQ(piece.stream, stream_);
      ASSERT_GT(piece.length, 0U);
      ASSERT_LE(piece.stream_offset + piece.length, std::min<std::uint64_t>(limit_, data_.size()));
      for (std::uint64_t i = 0; i < piece.length; ++i) {
        ASSERT_FALSE(accepted_[piece.stream_offset + i]) << "given out twice";
        accepted_[piece.stream_offset + i] = true;
        ASSERT_EQ(receiver_.ring()[piece.ring_offset + i], data_[piece.stream_offset + i]);
      }
    }
    while (prefix_ < data_.size() && accepted_[prefix_]) ++prefix_;
    for (const Event& event : receiver_.events) {
      if (event.kind == StreamEvent::closed && all_heard()) continue;
      ASSERT_EQ(event.kind, StreamEvent::finished);
      ASSERT_EQ(event.offset, data_.size());
      ASSERT_EQ(prefix_, data_.size());
      finished_ = true;
    }
    for (const Answer& answer : receiver_.answers) {
      check(answer);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }

  void check(const Answer& answer) {
    if (answer.is(kRst)) return;
    hear(answer);
    if (::testing::Test::HasFatalFailure()) return;
    const auto said = static_cast<std::uint64_t>(client_.offset(answer.acknowledgement()));
    ASSERT_EQ(said, prefix_ + (finished_ ? 1 : 0)) << "acknowledges exactly the bytes that arrived";
    acknowledged_ = prefix_;
    for (const auto& [begin, end] : answer.blocks) {
      const auto from = static_cast<std::uint64_t>(client_.offset(begin));
      const auto to = static_cast<std::uint64_t>(client_.offset(end));
      ASSERT_LT(from, to);
      ASSERT_LE(to, data_.size());
      for (std::uint64_t i = from; i < to; ++i) ASSERT_TRUE(accepted_[i]) << i;
    }
    const std::uint64_t unit = std::uint64_t{1} << scale_;
    const std::uint64_t edge = prefix_ + (std::uint64_t{answer.headers.window} << scale_);
    ASSERT_LT(edge, limit_ + unit) << "offers more than the free space";
    ASSERT_GT(edge + unit, edge_) << "shrinks the offered window";
    edge_ = std::max(edge_, edge);
    client_.echo = answer.headers.options.timestamp;
  }

  [[nodiscard]] std::uint32_t below(std::uint32_t end) { return static_cast<std::uint32_t>(random_() % end); }
  [[nodiscard]] std::uint64_t below64(std::uint64_t end) { return random_() % end; }

  Receiver& receiver_;
  Client client_;
  Opening opening_;
  std::mt19937 random_;
  Weather weather_;
  Bytes data_;
  std::vector<bool> accepted_;
  std::vector<Bytes> in_flight_;
  Bytes said_;
  std::size_t heard_ = 0;  ///< By the sender, in order, including FIN.
  std::uint32_t first_said_ = 0;
  bool fin_seen_ = false;
  std::uint64_t prefix_ = 0;  ///< Bytes accepted without a gap.
  std::uint64_t acknowledged_ = 0;
  std::uint64_t highest_ = 0;
  std::uint64_t limit_ = 0;
  std::uint64_t edge_ = 0;
  std::uint32_t scale_ = 0;
  std::uint32_t stream_ = 0;
  bool fair_ = false;
  bool finished_ = false;
};

}  // namespace headrace::ingest::testing
