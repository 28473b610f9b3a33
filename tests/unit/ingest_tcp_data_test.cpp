#include "tests/ingest_peer.hpp"

/// How bytes are accepted and acknowledged.
namespace headrace::ingest::testing {
namespace {

struct TcpData : ::testing::Test {
  TcpData() : receiver(test_config()), client(receiver, {}, {.initial = 0xFFFFFFF0}) {}
  void SetUp() override { client.open(); }

  void send(std::int64_t offset, std::size_t count) { client.send(offset, pattern(offset, count)); }
  void expect_answer(std::int64_t acknowledged, const std::vector<std::pair<std::int64_t, std::int64_t>>& blocks = {}) {
    ASSERT_EQ(receiver.answers.size(), 1U);
    const Answer& answer = receiver.answers[0];
    EXPECT_TRUE(answer.is(kAck));
    EXPECT_EQ(client.offset(answer.acknowledgement()), acknowledged);
    ASSERT_EQ(answer.blocks.size(), blocks.size());
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      EXPECT_EQ(client.offset(answer.blocks[i].first), blocks[i].first) << i;
      EXPECT_EQ(client.offset(answer.blocks[i].second), blocks[i].second) << i;
    }
  }
  void expect_silence() { EXPECT_TRUE(receiver.answers.empty()); }

  Receiver receiver;
  Client client;
};

TEST_F(TcpData, EverySecondSegmentIsAcknowledged) {
  send(0, 100);
  expect_silence();
  send(100, 100);
  expect_answer(200);
  send(200, 100);
  expect_silence();
  EXPECT_EQ(receiver.streams[0], pattern(0, 300));
}

TEST_F(TcpData, OneSegmentIsAcknowledgedByTheTimer) {
  send(0, 100);
  EXPECT_EQ(receiver.next_deadline(), receiver.now + 40 * kMs);
  receiver.now += 40 * kMs - 1;
  receiver.tick();
  expect_silence();
  receiver.now += 1;
  receiver.tick();
  expect_answer(100);
  receiver.now += kSecond;
  receiver.tick();
  expect_silence();
}

TEST_F(TcpData, MergedSegmentsCountAsSoMany) {
  client.send(0, pattern(0, 1000), kAck, {.segment_bytes = 1000});
  expect_silence();
  client.send(1000, pattern(1000, 1001), kAck, {.segment_bytes = 1000});
  expect_answer(2001);
  client.send(2001, pattern(2001, 60'000), kAck, {.segment_bytes = 1448});
  expect_answer(62'001);
}

TEST_F(TcpData, AcknowledgementsCarryNothingThatIsNotNeeded) {
  send(0, 10);
  send(10, 10);
  EXPECT_FALSE(receiver.answers[0].headers.options.has_timestamps);
  EXPECT_EQ(receiver.all_replies.back().length, 40U);
  EXPECT_EQ(receiver.answers[0].sequence(), client.acknowledgement);
}

TEST_F(TcpData, EveryGapIsAnsweredAtOnce) {
  send(100, 100);
  expect_answer(0, {{100, 200}});
  send(300, 100);
  expect_answer(0, {{300, 400}, {100, 200}});  // the most recent first
  send(200, 50);
  expect_answer(0, {{100, 250}, {300, 400}});
  send(500, 10);
  expect_answer(0, {{500, 510}, {100, 250}, {300, 400}});
  send(600, 10);
  expect_answer(0, {{600, 610}, {500, 510}, {100, 250}, {300, 400}});
  send(700, 10);
  expect_answer(0, {{700, 710}, {600, 610}, {500, 510}, {100, 250}});  // no room for more
  send(250, 50);
  expect_answer(0, {{100, 400}, {700, 710}, {600, 610}, {500, 510}});
  EXPECT_EQ(receiver.counters().out_of_order, 7U);
  EXPECT_EQ(receiver.counters().gaps, 5U);
  send(0, 100);
  expect_answer(400, {{700, 710}, {600, 610}, {500, 510}});
  send(400, 300);
  expect_answer(710, {{500, 510}});
  EXPECT_EQ(receiver.streams[0], pattern(0, 710));
  EXPECT_EQ(receiver.counters().bytes, 710U);
  EXPECT_EQ(receiver.counters().duplicate_bytes, 20U);
}

TEST_F(TcpData, OverlapsAreTrimmed) {
  send(100, 100);
  send(50, 100);
  ASSERT_EQ(receiver.pieces.size(), 1U);
  EXPECT_EQ(receiver.pieces[0].stream_offset, 50U);
  EXPECT_EQ(receiver.pieces[0].length, 50U);
  send(150, 100);
  ASSERT_EQ(receiver.pieces.size(), 1U);
  EXPECT_EQ(receiver.pieces[0].stream_offset, 200U);
  EXPECT_EQ(receiver.pieces[0].length, 50U);
  send(300, 10);
  send(0, 400);
  ASSERT_EQ(receiver.pieces.size(), 3U);
  EXPECT_EQ(receiver.pieces[0].length, 50U);
  EXPECT_EQ(receiver.pieces[1].stream_offset, 250U);
  EXPECT_EQ(receiver.pieces[1].length, 50U);
  EXPECT_EQ(receiver.pieces[2].stream_offset, 310U);
  EXPECT_EQ(receiver.pieces[2].length, 90U);
  expect_answer(400, {{50, 250}});
  EXPECT_EQ(receiver.streams[0], pattern(0, 400));
}

// RFC 2883: duplicates are reported first.
TEST_F(TcpData, DuplicatesAreAnsweredAtOnce) {
  send(0, 100);
  send(0, 100);
  expect_answer(100, {{0, 100}});
  send(200, 100);
  send(220, 50);
  expect_answer(100, {{220, 270}, {200, 300}});
  send(50, 100);
  expect_answer(150, {{50, 100}, {200, 300}});
  EXPECT_EQ(receiver.counters().duplicates, 2U);
  EXPECT_EQ(receiver.counters().duplicate_bytes, 200U);
  EXPECT_TRUE(receiver.streams[0].size() == 300);
}

// RFC 2883 4.2.1: so is a duplicate part of a segment, wherever it lies; of several parts the first.
TEST_F(TcpData, PartsOfASegmentThatCameBeforeAreReported) {
  send(1000, 1000);
  send(2000, 1000);
  send(0, 6000);
  expect_answer(6000, {{1000, 3000}});
  send(7000, 1000);
  send(6000, 2000);
  expect_answer(8000, {{7000, 8000}});
  send(9000, 500);
  send(10'000, 500);
  send(8900, 2000);  // covers both
  expect_answer(8000, {{9000, 9500}, {8900, 10'900}});
  send(8000, 900);
  expect_answer(10'900);
  send(11'000, 100);
  send(10'800, 400);  // overlaps the beginning: the part below the next byte is first
  expect_answer(11'200, {{10'800, 10'900}});
  send(11'250, 50);
  send(11'150, 200);
  expect_answer(11'350, {{11'150, 11'200}});
  EXPECT_EQ(receiver.streams[0], pattern(0, 11'350));
}

TEST_F(TcpData, SequenceNumbersWrap) {
  EXPECT_GT(client.sequence(0), client.sequence(100));
  send(10, 10);
  send(0, 10);
  expect_answer(20);
  for (std::int64_t at = 20; at < 200'000; at += 1000) send(at, 1000);
  EXPECT_EQ(receiver.streams[0], pattern(0, 200'020));
}

TEST_F(TcpData, NothingBeyondTheLimitIsAccepted) {
  const std::int64_t limit = 1 << 20;
  for (std::int64_t at = 0; at + 60'000 < limit; at += 60'000) send(at, 60'000);
  const std::int64_t at = limit / 60'000 * 60'000;
  send(at, 60'000);
  expect_answer(limit);
  EXPECT_EQ(receiver.answers[0].headers.window, 0);
  EXPECT_EQ(receiver.streams[0].size(), static_cast<std::size_t>(limit));
  EXPECT_EQ(receiver.counters().unaccepted_bytes, 60'000U - static_cast<std::uint64_t>(limit - at));
  send(limit, 1);  // a probe with a byte
  expect_answer(limit);
  EXPECT_EQ(receiver.answers[0].headers.window, 0);
  client.send(limit - 1, {});  // a probe without a byte
  expect_answer(limit);
  EXPECT_EQ(receiver.counters().probes, 2U);
  EXPECT_TRUE(receiver.pieces.empty());

  receiver.set_limit(2 * limit);
  expect_answer(limit);
  EXPECT_EQ(receiver.answers[0].headers.window, (1 << 20) >> 9);  // by the scale for 16 MiB
  send(limit, 1000);
  send(limit + 1000, 1000);
  expect_answer(limit + 2000);
}

TEST_F(TcpData, FarBeyondTheWindowIsOnlyAnswered) {
  send(1 << 21, 100);
  expect_answer(0);
  EXPECT_TRUE(receiver.pieces.empty());
  EXPECT_EQ(receiver.counters().out_of_window, 1U);
}

TEST_F(TcpData, IntervalsTooManyAreNotAcknowledged) {
  for (std::uint32_t i = 0; i < Intervals::kMax; ++i) send(100 + 20 * i, 10);
  const std::uint64_t bytes = receiver.counters().bytes;
  send(10'000, 10);
  ASSERT_EQ(receiver.answers.size(), 1U);
  for (const auto& block : receiver.answers[0].blocks) EXPECT_LT(client.offset(block.first), 10'000);
  EXPECT_EQ(receiver.counters().bytes, bytes);
  EXPECT_EQ(receiver.counters().unaccepted_bytes, 10U);
  send(0, 11'000);
  expect_answer(11'000, {{100, 110}});
  EXPECT_EQ(receiver.streams[0], pattern(0, 11'000));
}

TEST_F(TcpData, WithoutRoomForPiecesTheRestIsNotAccepted) {
  send(10, 10);
  send(30, 10);
  receiver.pieces_max = 2;
  send(0, 100);
  expect_answer(40, {{10, 20}});
  receiver.pieces_max = 512;
  send(0, 100);
  expect_answer(100, {{0, 40}});
  EXPECT_EQ(receiver.streams[0], pattern(0, 100));
}

TEST_F(TcpData, WithoutRoomForAnswersThePacketIsDropped) {
  receiver.replies_max = 1;
  send(0, 100);
  EXPECT_EQ(receiver.counters().no_room, 1U);
  EXPECT_TRUE(receiver.pieces.empty());
  receiver.replies_max = 64;
  send(0, 100);
  receiver.now += kSecond;
  receiver.replies_max = 0;
  receiver.tick();
  expect_silence();
  EXPECT_LE(receiver.next_deadline(), receiver.now);
  receiver.replies_max = 64;
  receiver.tick();
  expect_answer(100);
}

TEST_F(TcpData, KeepAliveIsAnsweredButNotForEver) {
  send(0, 100);
  send(100, 100);
  int answered = 0;
  for (int i = 0; i < 30; ++i) {
    client.send(199, {});
    answered += static_cast<int>(receiver.answers.size());
  }
  EXPECT_EQ(answered, 10);
  receiver.now += kSecond;
  client.send(199, {std::byte{0}});  // with a garbage byte, as some stacks send
  expect_answer(200, {{199, 200}});
  EXPECT_EQ(receiver.streams[0], pattern(0, 200));
}

TEST_F(TcpData, AcknowledgementsAloneAreNotAnswered) {
  client.send(0, {});
  expect_silence();
  send(0, 10);
  client.send(10, {});
  expect_silence();
}

TEST_F(TcpData, BurstsAreAcknowledgedOnce) {
  Bytes ring;
  std::vector<Packet> packets;
  for (int i = 0; i < 20; ++i) {
    const Bytes bytes = tcp_packet(client.peer(), client.segment(100 * i, pattern(100 * i, 100)));
    packets.push_back({.ring_offset = ring.size(), .length = static_cast<std::uint32_t>(bytes.size())});
    ring = ring + bytes;
  }
  std::vector<Piece> pieces(64);
  std::vector<Reply> replies(64);
  std::vector<Event> events(64);
  for (const bool once : {true, false}) {
    receiver.view().shared->config.acknowledge_per_burst = once;
    Output output{pieces.data(), replies.data(), events.data(), 64, 64, 64};
    TcpSequencer sequencer(receiver.view(), ring.data(), output, receiver.now);
    for (std::size_t i = once ? 0 : 10; i < (once ? 10U : 20U); ++i) sequencer.receive(packets[i], Layer::ip);
    sequencer.flush();
    ASSERT_EQ(output.reply_count, once ? 1U : 5U);
    EXPECT_EQ(client.offset(read_answer(replies[output.reply_count - 1]).acknowledgement()), once ? 1000 : 2000);
  }
}

TEST(TcpWindow, FewerUnitsThanOneAreSaidAsOne) {
  Receiver receiver(test_config(100));
  Client client(receiver);
  client.open();
  client.send(0, pattern(0, 50));
  client.send(50, pattern(50, 20));
  ASSERT_EQ(receiver.answers.size(), 1U);
  EXPECT_EQ(receiver.answers[0].headers.window, 1);  // 512 bytes, though only 30 are free
  client.send(70, pattern(70, 500));
  EXPECT_EQ(client.offset(receiver.answers.at(0).acknowledgement()), 100);
  EXPECT_EQ(receiver.streams[0], pattern(0, 100));
}

TEST(TcpWindow, ClosedFromTheStartUntilThereIsSpace) {
  Receiver receiver(test_config(0));
  Client client(receiver);
  client.send_syn();
  EXPECT_EQ(receiver.answers.at(0).headers.window, 0);
  client.send(0, pattern(0, 10));
  EXPECT_EQ(receiver.answers.at(0).headers.window, 0);
  EXPECT_TRUE(receiver.streams[0].empty());
  receiver.set_limit(1 << 16);
  ASSERT_EQ(receiver.answers.size(), 1U);
  EXPECT_EQ(receiver.answers[0].headers.window, (1 << 16) >> 9);
  EXPECT_EQ(client.offset(receiver.answers[0].acknowledgement()), 0);
  receiver.set_limit(1 << 16);
  EXPECT_TRUE(receiver.answers.empty());
  receiver.set_limit(100);  // a limit never shrinks
  client.send(0, pattern(0, 200));
  EXPECT_EQ(receiver.streams[0].size(), 200U);
}

// RFC 9293 3.8.6.2.2: no update for a small step, and the end of the window never moves back.
TEST(TcpWindow, OpensInStepsThatAreWorthIt) {
  Receiver receiver(test_config(1 << 16));
  Client client(receiver);
  client.open();
  std::int64_t edge = 1 << 16;
  std::int64_t told = edge;
  for (std::int64_t at = 0; at < 500'000; at += 1000) {
    client.send(at, pattern(at, 1000));
    for (const Answer& answer : receiver.answers) {
      const std::int64_t end = client.offset(answer.acknowledgement()) + (std::int64_t{answer.headers.window} << 9);
      EXPECT_GE(end + 511, told);
      EXPECT_LE(end, edge);
      told = std::max(told, end);
    }
    edge += 1000;
    receiver.set_limit(static_cast<std::uint64_t>(edge));
    EXPECT_TRUE(receiver.answers.empty());  // the window is wide open
  }
  EXPECT_EQ(receiver.counters().window_updates, 0U);
}

TEST(TcpWindow, WithoutScalesItIsSixteenBits) {
  Receiver receiver(test_config(1 << 20));
  Client client(receiver, {}, {.scale = {}});
  client.open();
  client.send(0, pattern(0, 1000));
  client.send(1000, pattern(1000, 1000));
  EXPECT_EQ(receiver.answers.at(0).headers.window, 65535);
  client.send(2000 + 65535, pattern(0, 1000));
  EXPECT_TRUE(receiver.pieces.empty());
}

TEST(TcpTimestamps, AreEchoedAndProtectAgainstOldSegments) {
  Receiver receiver(test_config());
  Client client(receiver, {}, {.timestamp = 0xFFFFFFF0});
  client.open();
  client.elapsed_ms = 100;  // wraps
  client.send(0, pattern(0, 10));
  client.send(10, pattern(10, 10));
  ASSERT_EQ(receiver.answers.size(), 1U);
  EXPECT_EQ(receiver.answers[0].headers.options.timestamp_echo, 0xFFFFFFF0 + 100);
  EXPECT_TRUE(receiver.answers[0].headers.options.has_timestamps);
  client.elapsed_ms = 98;
  client.send(20, pattern(20, 10));
  ASSERT_EQ(receiver.answers.size(), 1U);
  EXPECT_EQ(client.offset(receiver.answers[0].acknowledgement()), 20);
  EXPECT_EQ(receiver.counters().old_timestamps, 1U);
  EXPECT_TRUE(receiver.pieces.empty());
  receiver.now += 25 * 24 * 3600 * kSecond;  // the last timestamp is too old
  client.send(20, pattern(20, 10));
  EXPECT_EQ(receiver.pieces.size(), 1U);
}

// RFC 7323 4.3: the timestamps of segments beyond a gap are not taken.
TEST(TcpTimestamps, ThatOfTheOldestUnacknowledgedIsEchoed) {
  Receiver receiver(test_config());
  Client client(receiver, {}, {.timestamp = 1000});
  client.open();
  client.elapsed_ms = 5;
  client.send(0, pattern(0, 10));  // not acknowledged yet
  client.elapsed_ms = 6;
  client.send(10, pattern(10, 10));
  EXPECT_EQ(receiver.answers.at(0).headers.options.timestamp_echo, 1005U);
  client.elapsed_ms = 7;
  client.send(100, pattern(100, 10));
  EXPECT_EQ(receiver.answers.at(0).headers.options.timestamp_echo, 1005U);
}

// As in Linux: a middlebox may strip the option after the handshake, or from the acknowledgement that ends it.
TEST(TcpTimestamps, SegmentsWithoutAreTaken) {
  Receiver receiver(test_config());
  Client client(receiver, {}, {.timestamp = 1000});
  client.send_syn();
  const auto arrive = [&](std::int64_t offset, std::size_t count) {
    Segment bare = client.segment(offset, pattern(static_cast<std::uint64_t>(offset), count));
    bare.options.clear();
    receiver.arrive(tcp_packet(client.peer(), bare));
  };
  arrive(0, 0);
  ASSERT_EQ(receiver.events.size(), 1U);
  EXPECT_EQ(receiver.events[0].kind, StreamEvent::opened);
  arrive(0, 10);
  arrive(10, 10);
  client.elapsed_ms = 7;
  client.send(20, pattern(20, 10));
  arrive(30, 10);
  EXPECT_EQ(receiver.counters().missing_timestamps, 4U);
  EXPECT_EQ(receiver.streams[receiver.last_stream], pattern(0, 40));
  ASSERT_EQ(receiver.answers.size(), 1U);
  EXPECT_EQ(receiver.answers[0].headers.options.timestamp_echo, 1007U) << "of those that have one";
}

// Linux's TCP_PAWS_WINDOW. The echoed timestamp does not go back.
TEST(TcpTimestamps, OneTickBackIsTaken) {
  Receiver receiver(test_config());
  Client client(receiver, {}, {.timestamp = 1000});
  client.open();
  client.elapsed_ms = 50;
  client.send(0, pattern(0, 10));
  client.elapsed_ms = 49;
  client.send(10, pattern(10, 10));
  ASSERT_EQ(receiver.answers.size(), 1U);
  EXPECT_EQ(receiver.answers[0].headers.options.timestamp_echo, 1050U);
  client.elapsed_ms = 48;
  client.send(20, pattern(20, 10));
  EXPECT_EQ(receiver.counters().old_timestamps, 1U);
  EXPECT_EQ(receiver.streams[receiver.last_stream], pattern(0, 20));
}

TEST(TcpTimestamps, AfterZeroAnyIsTaken) {
  Receiver receiver(test_config());
  Client client(receiver, {}, {.timestamp = 0});
  client.open();
  client.elapsed_ms = 0x90000000;  // before 0 in serial arithmetic
  client.send(0, pattern(0, 10));
  client.send(10, pattern(10, 10));
  EXPECT_EQ(receiver.counters().old_timestamps, 0U);
  ASSERT_EQ(receiver.answers.size(), 1U);
  EXPECT_EQ(receiver.answers[0].headers.options.timestamp_echo, 0x90000000U);
}

TEST(TcpTimestamps, AnOvertakenAcknowledgementIsNotAnswered) {
  Receiver receiver(test_config());
  Client client(receiver, {}, {.timestamp = 1000});
  client.open();
  client.elapsed_ms = 2000;
  client.send(0, pattern(0, 10));
  client.send(10, pattern(10, 10));
  client.elapsed_ms = 1990;
  client.send(20, {});
  EXPECT_TRUE(receiver.answers.empty());
  EXPECT_EQ(receiver.counters().old_timestamps, 0U);
  client.elapsed_ms = 10;  // older than any segment under way
  client.send(20, {});
  EXPECT_EQ(receiver.answers.size(), 1U);
  EXPECT_EQ(receiver.counters().old_timestamps, 1U);
}

TEST(TcpTimestamps, TellTheRoundTrip) {
  Receiver receiver(test_config());
  Client client(receiver, {}, {.timestamp = 1000});
  client.send_syn();
  receiver.now += 16 * kMs;
  client.send(0, {});
  EXPECT_EQ(receiver.counters().round_trip_ns, 16 * kMs);
  client.send(0, pattern(0, 10));
  client.send(10, pattern(10, 10));
  client.take(receiver.answers.at(0));
  receiver.now += 32 * kMs;
  client.send(20, pattern(20, 10));
  EXPECT_EQ(receiver.counters().round_trip_ns, 18 * kMs);  // 7/8 and 1/8
  EXPECT_EQ(receiver.counters().round_trip_least_ns, 16 * kMs);
}

}  // namespace
}  // namespace headrace::ingest::testing
