#include "tests/ingest_peer.hpp"

/// How connections end, and events that must not end them.
namespace headrace::ingest::testing {
namespace {

struct TcpClose : ::testing::Test {
  TcpClose() : TcpClose(test_config()) {}
  explicit TcpClose(const TcpConfig& config) : receiver(config), client(receiver) {}
  void SetUp() override { client.open(); }

  void expect_answer(std::uint8_t flags, std::int64_t acknowledged) {
    ASSERT_EQ(receiver.answers.size(), 1U);
    EXPECT_EQ(receiver.answers[0].headers.flags, flags);
    EXPECT_EQ(client.offset(receiver.answers[0].acknowledgement()), acknowledged);
    EXPECT_EQ(receiver.answers[0].sequence(), client.acknowledgement);
  }
  void expect_event(StreamEvent kind, std::uint64_t offset) {
    ASSERT_EQ(receiver.events.size(), 1U);
    EXPECT_EQ(receiver.events[0].kind, kind);
    EXPECT_EQ(receiver.events[0].offset, offset);
    EXPECT_EQ(receiver.events[0].stream, client.stream);
  }
  [[nodiscard]] std::uint32_t unused() const { return receiver.view().shared->unused.count; }

  Receiver receiver;
  Client client;
};

struct TcpCloseByCall : TcpClose {
  static TcpConfig config() {
    TcpConfig made = test_config();
    made.close_when_finished = false;
    return made;
  }
  TcpCloseByCall() : TcpClose(config()) {}
};

TEST_F(TcpClose, FinIsAnsweredWithFin) {
  client.send(0, pattern(0, 100), kAck | kFin);
  expect_event(StreamEvent::finished, 100);
  expect_answer(kAck | kFin, 101);
  ++client.acknowledgement;
  client.send(101, {});
  EXPECT_TRUE(receiver.answers.empty());
  expect_event(StreamEvent::closed, 100);
  EXPECT_EQ(unused(), 8U);
  EXPECT_EQ(receiver.next_deadline() == kNever || receiver.next_deadline() > receiver.now, true);
}

TEST_F(TcpClose, FinBeyondAGapWaitsForTheBytes) {
  client.send(100, pattern(100, 100), kAck | kFin);
  EXPECT_TRUE(receiver.events.empty());
  expect_answer(kAck, 0);
  client.send(200, {}, kAck | kFin);  // repeated, alone
  EXPECT_TRUE(receiver.events.empty());
  client.send(0, pattern(0, 300));  // bytes after the end do not count
  expect_event(StreamEvent::finished, 200);
  expect_answer(kAck | kFin, 201);
  EXPECT_EQ(receiver.streams[0], pattern(0, 200));
}

TEST_F(TcpClose, FinNeedsNoSpaceButItsBytesDo) {
  const std::int64_t limit = 1 << 20;
  for (std::int64_t at = 0; at < limit; at += 32'768) client.send(at, pattern(at, 32'768));
  client.send(limit, pattern(limit, 10), kAck | kFin);
  EXPECT_TRUE(receiver.events.empty());
  expect_answer(kAck, limit);
  client.send(limit, {}, kAck | kFin);
  expect_event(StreamEvent::finished, 1 << 20);
}

TEST_F(TcpClose, OnlyTheFirstFinCounts) {
  client.send(200, {}, kAck | kFin);
  client.send(100, {}, kAck | kFin);
  client.send(0, pattern(0, 100));
  EXPECT_TRUE(receiver.events.empty());
  client.send(100, pattern(100, 100));
  expect_event(StreamEvent::finished, 200);
}

TEST_F(TcpClose, FinBelowAcceptedBytesIsNone) {
  client.send(200, pattern(200, 100));
  client.send(100, {}, kAck | kFin);
  client.send(0, pattern(0, 200));
  EXPECT_TRUE(receiver.events.empty());
  EXPECT_EQ(receiver.streams[0], pattern(0, 300));
}

TEST_F(TcpClose, RepeatedFinIsAcknowledged) {
  client.send(0, {}, kAck | kFin);
  client.send(0, {}, kAck | kFin);
  ASSERT_EQ(receiver.answers.size(), 1U);
  EXPECT_EQ(client.offset(receiver.answers[0].acknowledgement()), 1);
  EXPECT_TRUE(receiver.events.empty());
}

TEST_F(TcpClose, OurFinIsSentAgainAndGivenUp) {
  client.send(0, {}, kAck | kFin);
  for (int i = 0; i < 5; ++i) {
    receiver.now = receiver.next_deadline();
    receiver.tick();
    expect_answer(kAck | kFin, 1);
  }
  receiver.now = receiver.next_deadline();
  receiver.tick();
  EXPECT_TRUE(receiver.answers.empty());
  expect_event(StreamEvent::closed, 0);
  EXPECT_EQ(unused(), 8U);
}

TEST_F(TcpCloseByCall, FinIsSentWhenToldTo) {
  client.send(0, pattern(0, 10), kAck | kFin);
  expect_answer(kAck, 11);
  expect_event(StreamEvent::finished, 10);
  receiver.close();
  expect_answer(kAck | kFin, 11);
  ++client.acknowledgement;
  client.send(11, {});
  expect_event(StreamEvent::closed, 10);
}

TEST_F(TcpClose, OurFinFirstThenStillBytes) {
  receiver.close();
  expect_answer(kAck | kFin, 0);
  receiver.close();  // the second call sends nothing
  EXPECT_TRUE(receiver.answers.empty());
  ++client.acknowledgement;
  client.send(0, pattern(0, 100));
  client.send(100, pattern(100, 100));
  expect_answer(kAck, 200);
  client.send(200, {}, kAck | kFin);
  expect_event(StreamEvent::finished, 200);
  expect_answer(kAck, 201);
  receiver.now += 30 * kSecond;
  client.send(200, {}, kAck | kFin);  // our acknowledgement was lost: the timer restarts
  expect_answer(kAck, 201);
  receiver.now += 60 * kSecond - 1;
  receiver.tick();
  EXPECT_TRUE(receiver.events.empty());
  receiver.now += 1;
  receiver.tick();
  expect_event(StreamEvent::closed, 200);
  EXPECT_EQ(receiver.streams[0], pattern(0, 200));
}

TEST_F(TcpClose, BothFinsCross) {
  receiver.close();
  client.send(0, {}, kAck | kFin);  // does not acknowledge ours
  expect_event(StreamEvent::finished, 0);
  ++client.acknowledgement;
  expect_answer(kAck, 1);
  client.send(1, {});
  EXPECT_EQ(receiver.view().shared->time_wait.count, 1U);
  receiver.now += 60 * kSecond;
  receiver.tick();
  expect_event(StreamEvent::closed, 0);
}

TEST_F(TcpClose, APeerThatNeverFinishesIsForgotten) {
  receiver.close();
  ++client.acknowledgement;
  client.send(0, {});
  receiver.now += 60 * kSecond;
  receiver.tick();
  expect_event(StreamEvent::timed_out, 0);
}

// RFC 6191, RFC 9293 3.10.7.4: only for a SYN that is clearly newer.
TEST_F(TcpClose, ANewConnectionMayFollowAtOnce) {
  receiver.close();
  ++client.acknowledgement;
  client.send(0, pattern(0, 10), kAck | kFin);
  ASSERT_EQ(receiver.view().shared->time_wait.count, 1U);
  Client older(receiver, {}, {.initial = 900});
  older.send_syn();
  EXPECT_TRUE(receiver.answers.at(0).is(kAck));
  Client newer(receiver, {}, {.initial = 5000});
  newer.open();
  EXPECT_EQ(newer.stream, 1U);
  EXPECT_EQ(receiver.view().shared->time_wait.count, 0U);
}

// RFC 5961 3.2.
TEST_F(TcpClose, OnlyTheVeryNextNumberResets) {
  client.send(0, pattern(0, 100));
  for (const std::int64_t at : {101, 5000, 1 << 20}) {
    client.send(at, {}, kRst);
    expect_answer(kAck, 100);
  }
  client.send(99, {}, kRst);
  EXPECT_TRUE(receiver.answers.empty());
  client.send(1 << 22, {}, kRst);
  EXPECT_TRUE(receiver.answers.empty());
  EXPECT_TRUE(receiver.events.empty());
  client.send(100, {}, kRst);
  expect_event(StreamEvent::reset, 100);
  EXPECT_TRUE(receiver.answers.empty());
  EXPECT_EQ(unused(), 8U);
}

// RFC 5961 4.2.
TEST_F(TcpClose, ASynInAConnectionIsChallenged) {
  for (const std::int64_t at : {-1, 0, 500, 1 << 22}) {
    client.send(at, {}, kSyn);
    expect_answer(kAck, 0);
  }
  EXPECT_TRUE(receiver.events.empty());
  client.send(0, {}, kRst);  // answer of a peer that has forgotten
  expect_event(StreamEvent::reset, 0);
}

TEST(TcpTimestamps, APeerThatHasForgottenThemIsChallenged) {
  Receiver receiver(test_config());
  Client client(receiver, {}, {.timestamp = 5000});
  client.open();
  receiver.arrive(tcp_packet(client.peer(), {.sequence = 77, .flags = kSyn}));
  ASSERT_EQ(receiver.answers.size(), 1U);
  EXPECT_TRUE(receiver.answers[0].is(kAck));
}

// RFC 5961 5.2.
TEST_F(TcpClose, AcknowledgementsOfWhatWasNeverSentAreChallenged) {
  const std::uint32_t right = client.acknowledgement;
  for (const std::uint32_t wrong : {right + 1, right + 1000, right + 0x7FFFFFFF, right - (65535U << 7) - 1}) {
    client.acknowledgement = wrong;
    client.send(0, pattern(0, 10));
    ASSERT_EQ(receiver.answers.size(), 1U);
    EXPECT_TRUE(receiver.pieces.empty());
  }
  EXPECT_EQ(receiver.counters().bad_acknowledgements, 4U);
  client.acknowledgement = right - 100;  // old, but acceptable
  client.send(0, pattern(0, 10));
  EXPECT_EQ(receiver.pieces.size(), 1U);
  client.send(10, pattern(10, 10), 0);  // no acknowledgement
  EXPECT_TRUE(receiver.pieces.empty());
}

TEST_F(TcpClose, ChallengesAreLimited) {
  for (int i = 0; i < 50; ++i) client.send(5, {}, kRst);
  EXPECT_EQ(receiver.counters().challenges, 10U);
  EXPECT_EQ(receiver.counters().limited, 40U);
  receiver.now += kSecond;
  client.send(5, {}, kRst);
  expect_answer(kAck, 0);
}

TEST_F(TcpClose, AbortResetsThePeer) {
  client.send(0, pattern(0, 10));
  receiver.abort();
  expect_event(StreamEvent::reset, 10);
  expect_answer(kAck | kRst, 10);
  client.send(10, pattern(10, 10));
  EXPECT_TRUE(receiver.answers.at(0).is(kRst));
  receiver.abort();  // of a connection that is gone
  EXPECT_TRUE(receiver.answers.empty());
}

TEST(TcpCalls, ForAStreamThatIsGoneDoNothing) {
  Receiver receiver(test_config(), 1);
  Client client(receiver);
  client.open();
  client.send(0, {}, kRst);
  Client next(receiver, {.port = 50000});
  next.open();
  ASSERT_EQ(receiver.connections[0], receiver.connections[1]);  // they use the same place
  receiver.set_limit(1 << 22, 0);
  EXPECT_EQ(receiver.connection().limit, 1U << 20);
  receiver.run({.kind = Step::Kind::close, .connection = receiver.connections[0], .stream = 0});
  receiver.run({.kind = Step::Kind::abort, .connection = 12345, .stream = 1});
  EXPECT_TRUE(receiver.answers.empty());
  next.send(0, pattern(0, 10));
  EXPECT_EQ(receiver.streams[1], pattern(0, 10));
}

TEST(TcpIdle, ASilentPeerIsGivenUp) {
  TcpConfig config = test_config();
  config.idle_max = 10 * kSecond;
  Receiver receiver(config);
  Client client(receiver);
  client.open();
  receiver.now += 9 * kSecond;
  client.send(0, pattern(0, 10));
  receiver.now += 9 * kSecond;
  receiver.tick();
  EXPECT_TRUE(receiver.events.empty());
  receiver.now = receiver.next_deadline();
  receiver.tick();
  ASSERT_EQ(receiver.events.size(), 1U);
  EXPECT_EQ(receiver.events[0].kind, StreamEvent::timed_out);
  EXPECT_EQ(receiver.events[0].offset, 10U);
  EXPECT_TRUE(receiver.answers.at(0).is(kRst | kAck));
}

// RFC 2385 2.0 and Linux: without a key, signed segments are dropped without an answer, whatever they contain.
TEST(TcpSignatures, SegmentsThatCarryOneAreDropped) {
  const auto option = [](std::uint8_t kind, std::uint8_t size) {
    Bytes bytes(size);
    bytes[0] = std::byte{kind};
    bytes[1] = std::byte{size};
    return bytes;
  };
  Receiver receiver(test_config());
  Client client(receiver);
  const auto arrive = [&](std::int64_t offset, const Bytes& payload, std::uint8_t flags, const Bytes& options) {
    Segment segment = client.segment(offset, payload, flags);
    segment.options = options;
    receiver.arrive(tcp_packet(client.peer(), segment));
  };
  arrive(-1, {}, kSyn, option(19, 18));
  EXPECT_TRUE(receiver.answers.empty());
  client.open();
  client.send(0, pattern(0, 10));
  for (const Bytes& signature : {option(19, 18), option(29, 16)}) {
    arrive(10, {}, kRst, signature);
    EXPECT_TRUE(receiver.events.empty());
    EXPECT_TRUE(receiver.answers.empty());
    arrive(10, pattern(10, 10), kAck, signature);
    EXPECT_TRUE(receiver.pieces.empty());
  }
  EXPECT_EQ(receiver.counters().signatures, 5U);
  arrive(10, {}, kRst, option(19, 10));  // no signature: too short
  ASSERT_EQ(receiver.events.size(), 1U);
  EXPECT_EQ(receiver.events[0].kind, StreamEvent::reset);
}

}  // namespace
}  // namespace headrace::ingest::testing
