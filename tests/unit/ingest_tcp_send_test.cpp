#include "tests/ingest_peer.hpp"

/// Short answers: the segments sent, when they are retransmitted, and when they are not.
namespace headrace::ingest::testing {
namespace {

struct TcpSend : ::testing::Test {
  TcpSend() : TcpSend(test_config(), {}) {}
  TcpSend(const TcpConfig& config, const Opening& opening) : receiver(config), client(receiver, {}, opening) {}
  void SetUp() override { open(); }
  void open() {
    client.open();
    first = client.acknowledgement;
  }

  /// Bytes that the answers of the last call carry; they must be contiguous from `offset` on.
  [[nodiscard]] Bytes said(std::size_t offset) const {
    Bytes bytes;
    for (const Answer& answer : receiver.answers) {
      if (answer.payload.empty()) continue;
      EXPECT_EQ(answer.sequence(), first + offset + bytes.size());
      bytes = bytes + answer.payload;
    }
    return bytes;
  }
  /// The peer acknowledges this many of the sent bytes.
  void hear(std::size_t bytes, std::uint16_t window = 65535) {
    client.acknowledgement = first + static_cast<std::uint32_t>(bytes);
    Segment segment = client.segment(at, {});
    segment.window = window;
    receiver.arrive(tcp_packet(client.peer(), segment));
  }
  [[nodiscard]] std::uint64_t deadline() { return receiver.view().deadlines[receiver.connections[client.stream]]; }
  void wait_for_timer() {
    ASSERT_NE(deadline(), kNever);
    ASSERT_LE(receiver.next_deadline(), deadline());
    receiver.now = deadline();
    receiver.tick();
  }
  [[nodiscard]] std::uint8_t last_flags() const { return receiver.answers.back().headers.flags; }

  Receiver receiver;
  Client client;
  std::uint32_t first = 0;
  std::int64_t at = 0;  ///< Next offset of the peer's stream.
};

TEST_F(TcpSend, BytesGoAtOnceInSegmentsThatAReplyHolds) {
  const Bytes bytes = pattern(3, 300);
  ASSERT_TRUE(receiver.send(bytes));
  EXPECT_EQ(said(0), bytes);
  ASSERT_GT(receiver.answers.size(), 1U);
  EXPECT_EQ(last_flags(), kAck | kPsh);
  EXPECT_EQ(receiver.answers[0].headers.flags, kAck);
  EXPECT_EQ(receiver.counters().sent_bytes, 300U);
  hear(300);
  EXPECT_TRUE(receiver.answers.empty());
  EXPECT_EQ(deadline(), kNever);
  ASSERT_TRUE(receiver.send(pattern(1, 10)));
  EXPECT_EQ(said(300), pattern(1, 10));
}

TEST_F(TcpSend, WhatDoesNotFitIsRefusedAsAWhole) {
  EXPECT_FALSE(receiver.send(pattern(0, TcpOutgoing::kBytesMax + 1)));
  EXPECT_TRUE(receiver.answers.empty());
  ASSERT_TRUE(receiver.send(pattern(0, TcpOutgoing::kBytesMax - 10)));
  EXPECT_FALSE(receiver.send(pattern(0, 11)));
  EXPECT_TRUE(receiver.answers.empty());
  hear(1);
  EXPECT_TRUE(receiver.send(pattern(7, 11)));
  EXPECT_EQ(said(TcpOutgoing::kBytesMax - 10), pattern(7, 11));
  EXPECT_FALSE(receiver.send(pattern(0, 1), 77));  // no such stream
}

TEST_F(TcpSend, AnswersAcknowledgeWhatCame) {
  client.send(0, pattern(0, 10));
  EXPECT_TRUE(receiver.answers.empty());
  ASSERT_TRUE(receiver.send(pattern(0, 5)));
  ASSERT_EQ(receiver.answers.size(), 1U);
  EXPECT_EQ(client.offset(receiver.answers[0].acknowledgement()), 10);
  EXPECT_EQ(receiver.connection().acknowledge_at, kNever);
}

TEST_F(TcpSend, TheTimerSendsAgainEachTimeLater) {
  const Bytes bytes = pattern(0, 200);
  ASSERT_TRUE(receiver.send(bytes));
  std::uint64_t before = receiver.now;
  for (const std::uint64_t seconds : {1U, 2U, 4U, 8U, 16U}) {
    wait_for_timer();
    EXPECT_EQ(receiver.now - before, seconds * kSecond);
    EXPECT_EQ(said(0), bytes);
    before = receiver.now;
  }
  EXPECT_EQ(receiver.counters().retransmits, 5U);
  EXPECT_EQ(receiver.counters().sent_bytes, 200U);
  wait_for_timer();
  ASSERT_EQ(receiver.events.size(), 1U);
  EXPECT_EQ(receiver.events[0].kind, StreamEvent::timed_out);
}

TEST_F(TcpSend, AnAcknowledgementOfSomeSendsOnlyTheRestAgain) {
  const Bytes bytes = pattern(0, 200);
  ASSERT_TRUE(receiver.send(bytes));
  wait_for_timer();
  receiver.now += 100 * kMs;
  hear(60);
  EXPECT_TRUE(receiver.answers.empty());
  const std::uint64_t heard = receiver.now;
  wait_for_timer();
  EXPECT_EQ(receiver.now - heard, kSecond) << "the back-off has ended";
  EXPECT_EQ(said(60), Bytes(bytes.begin() + 60, bytes.end()));
  hear(200);
  EXPECT_EQ(deadline(), kNever);
}

TEST_F(TcpSend, FinFollowsWhatIsToBeSaid) {
  hear(0, 0);
  const Bytes bytes = pattern(0, 100);
  ASSERT_TRUE(receiver.send(bytes));
  receiver.close();
  EXPECT_TRUE(receiver.answers.empty()) << "the window is closed";
  EXPECT_FALSE(receiver.send(pattern(0, 1)));
  hear(0);
  EXPECT_EQ(said(0), bytes);
  ASSERT_EQ(last_flags(), kAck | kFin);
  EXPECT_EQ(receiver.answers.back().sequence(), first + 100);
  wait_for_timer();  // both segments are lost
  EXPECT_EQ(said(0), bytes);
  EXPECT_EQ(last_flags(), kAck | kFin);
  EXPECT_EQ(receiver.answers.back().sequence(), first + 100);
  hear(100);
  wait_for_timer();
  ASSERT_EQ(receiver.answers.size(), 1U);
  EXPECT_EQ(last_flags(), kAck | kFin);
  client.acknowledgement = first + 101;
  client.send(0, pattern(0, 10), kAck | kFin);
  EXPECT_EQ(receiver.view().shared->time_wait.count, 1U);
}

TEST_F(TcpSend, APeerThatHasFinishedStillGetsItsAnswer) {
  hear(0, 0);
  const Bytes bytes = pattern(0, 100);
  ASSERT_TRUE(receiver.send(bytes));
  client.acknowledgement = first;
  Segment fin = client.segment(0, pattern(0, 50), kAck | kFin);
  fin.window = 0;
  receiver.arrive(tcp_packet(client.peer(), fin));
  ASSERT_EQ(receiver.events.size(), 1U);
  EXPECT_EQ(receiver.events[0].kind, StreamEvent::finished);
  ASSERT_EQ(receiver.answers.size(), 1U);
  EXPECT_EQ(last_flags(), kAck);
  at = 51;
  hear(0);
  EXPECT_EQ(said(0), bytes);
  EXPECT_EQ(last_flags(), kAck | kFin);
  hear(101);
  ASSERT_EQ(receiver.events.size(), 1U);
  EXPECT_EQ(receiver.events[0].kind, StreamEvent::closed);
}

TEST_F(TcpSend, AnAnswerMayFollowThePeersFin) {
  TcpConfig config = test_config();
  config.close_when_finished = false;
  Receiver other(config);
  Client peer(other);
  peer.open();
  peer.send(0, pattern(0, 10), kAck | kFin);
  ASSERT_TRUE(other.send(pattern(5, 20)));
  ASSERT_EQ(other.answers.size(), 1U);
  EXPECT_EQ(other.answers[0].payload, pattern(5, 20));
  other.close();
  ASSERT_EQ(other.answers.size(), 1U);
  EXPECT_TRUE(other.answers[0].is(kAck | kFin));
  peer.acknowledgement += 21;
  peer.send(11, {});
  EXPECT_EQ(other.events.at(0).kind, StreamEvent::closed);
}

// RFC 9293 3.8.6.1.
TEST_F(TcpSend, AClosedWindowIsProbedForAsLongAsThePeerAnswers) {
  hear(0, 0);
  ASSERT_TRUE(receiver.send(pattern(0, 100)));
  EXPECT_TRUE(receiver.answers.empty());
  for (int i = 0; i < 20; ++i) {
    wait_for_timer();
    ASSERT_TRUE(receiver.events.empty()) << i;
    ASSERT_EQ(said(0), pattern(0, 1)) << i;
    hear(0, 0);
    EXPECT_TRUE(receiver.answers.empty());
  }
  hear(0);
  EXPECT_EQ(said(0), pattern(0, 100)) << "with the byte of the probe, which had no space";
  const std::uint64_t opened = receiver.now;
  wait_for_timer();
  EXPECT_EQ(receiver.now - opened, kSecond);
}

TEST_F(TcpSend, ASilentPeerWithAClosedWindowIsGivenUp) {
  hear(0, 0);
  ASSERT_TRUE(receiver.send(pattern(0, 100)));
  for (int i = 0; i < 6; ++i) wait_for_timer();
  ASSERT_EQ(receiver.events.size(), 1U);
  EXPECT_EQ(receiver.events[0].kind, StreamEvent::timed_out);
}

// RFC 9293 3.8.6.2.1; the timer overrides it.
TEST_F(TcpSend, SmallWindowsGetNoSmallSegments) {
  Receiver narrow(test_config());
  Client peer(narrow, {}, {.scale = {}});
  peer.open();
  Segment segment = peer.segment(0, {});
  segment.window = 100;
  narrow.arrive(tcp_packet(peer.peer(), segment));
  ASSERT_TRUE(narrow.send(pattern(0, 300)));
  ASSERT_EQ(narrow.answers.size(), 1U);
  const std::size_t whole = narrow.answers[0].payload.size();
  EXPECT_GT(2 * whole, 100U);
  narrow.now = narrow.next_deadline();
  narrow.tick();
  ASSERT_EQ(narrow.answers.size(), 1U) << "only the bytes in the window";
}

// RFC 9293 3.10.7.4: an old segment does not set the window.
TEST_F(TcpSend, AnOldWindowIsNotBelieved) {
  Segment old = client.segment(0, pattern(0, 10));
  old.window = 0;
  client.send(10, pattern(10, 10));
  receiver.arrive(tcp_packet(client.peer(), old));
  ASSERT_TRUE(receiver.send(pattern(0, 20)));
  EXPECT_EQ(said(0), pattern(0, 20));
}

TEST_F(TcpSend, WithoutRoomTheNextTickGoesOn) {
  receiver.replies_max = 2;
  ASSERT_TRUE(receiver.send(pattern(0, 300)));
  Bytes bytes = said(0);
  ASSERT_EQ(receiver.answers.size(), 2U);
  for (int i = 0; i < 10 && bytes.size() < 300; ++i) {
    EXPECT_LE(receiver.next_deadline(), receiver.now);
    receiver.tick();
    bytes = bytes + said(bytes.size());
  }
  EXPECT_EQ(bytes, pattern(0, 300));
  EXPECT_EQ(receiver.counters().retransmits, 0U);
}

TEST_F(TcpSend, AnAcknowledgementOfMoreThanWasSentIsChallenged) {
  ASSERT_TRUE(receiver.send(pattern(0, 100)));
  hear(101);
  EXPECT_EQ(receiver.counters().bad_acknowledgements, 1U);
  EXPECT_EQ(receiver.connection().outgoing.length, 100U);
  hear(100);
  EXPECT_EQ(receiver.connection().outgoing.length, 0U);
}

struct TcpSendSlow : TcpSend {
  TcpSendSlow() : TcpSend(test_config(), {.timestamp = 5000}) {}
  void SetUp() override {
    client.send_syn();
    receiver.now += 2 * kSecond;
    client.elapsed_ms += 2000;
    client.send(0, {});
    ASSERT_EQ(receiver.events.size(), 1U);
    first = client.acknowledgement;
  }
};

// RFC 6298 2.2: three times the first round trip. Segments leave room for the timestamps.
TEST_F(TcpSendSlow, TheTimerKnowsTheRoundTrip) {
  ASSERT_TRUE(receiver.send(pattern(0, 300)));
  EXPECT_EQ(said(0), pattern(0, 300));
  EXPECT_TRUE(receiver.answers[0].headers.options.has_timestamps);
  const std::uint64_t before = receiver.now;
  wait_for_timer();
  EXPECT_GE(receiver.now - before, 5 * kSecond);
  EXPECT_LE(receiver.now - before, 6 * kSecond);
}

// RFC 6298 5.7.
TEST(TcpSendLate, AfterALostSynTheTimerIsPatient) {
  Receiver receiver(test_config());
  Client client(receiver);
  client.send_syn();
  receiver.now = receiver.next_deadline();
  receiver.tick();
  client.send(0, {});
  ASSERT_TRUE(receiver.send(pattern(0, 10)));
  EXPECT_EQ(receiver.view().deadlines[receiver.connections[0]] - receiver.now, 3 * kSecond);
}

// Neither a small MSS of the peer nor long headers lead to an answer that a Reply cannot hold.
TEST(TcpSendSizes, SegmentsFitThePeerAndTheReply) {
  for (const std::uint32_t mss : {0U, 1U, 64U, 100U, 1460U}) {
    for (const std::uint32_t version : {4U, 6U}) {
      SCOPED_TRACE(mss);
      Receiver receiver(test_config());
      const Peer peer{.version = version};
      const Bytes options = syn_options(static_cast<std::uint16_t>(mss), 7, true) + timestamps(1, 0);
      receiver.arrive(tcp_packet(peer, {.sequence = 9, .flags = kSyn, .options = options}));
      const Answer syn = receiver.answers.at(0);
      receiver.arrive(tcp_packet(peer, {.sequence = 10,
                                        .acknowledgement = syn.sequence() + 1,
                                        .flags = kAck,
                                        .options = timestamps(1, syn.headers.options.timestamp)}));
      ASSERT_TRUE(receiver.send(pattern(0, 1024)));
      Bytes all;
      for (const Answer& answer : receiver.answers) {
        EXPECT_LE(answer.payload.size() + 12, std::max<std::size_t>(64, mss == 0 ? 536U : mss));
        all = all + answer.payload;
      }
      EXPECT_EQ(all, pattern(0, 1024));
    }
  }
}

}  // namespace
}  // namespace headrace::ingest::testing
