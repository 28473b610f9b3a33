#include "headrace/base/error.hpp"
#include "tests/ingest_peer.hpp"

/// How connections begin, and how the receiver treats segments that belong to none.
namespace headrace::ingest::testing {
namespace {

TEST(IngestTcpOpen, SynAckCarriesWhatWasOffered) {
  for (int offered = 0; offered < 8; ++offered) {
    Receiver receiver(test_config());
    Opening opening{.scale = {}, .sack = (offered & 1) != 0};
    if ((offered & 2) != 0) opening.scale = 4;
    if ((offered & 4) != 0) opening.timestamp = 12345;
    Client client(receiver, {}, opening);
    client.send_syn();
    ASSERT_EQ(receiver.answers.size(), 1U);
    const Answer& answer = receiver.answers[0];
    EXPECT_TRUE(answer.is(kSyn | kAck));
    EXPECT_EQ(answer.acknowledgement(), 1001U);
    EXPECT_EQ(answer.headers.options.mss, 1460);
    EXPECT_EQ(answer.headers.options.sack_permitted, opening.sack);
    EXPECT_EQ(answer.headers.options.has_window_scale, opening.scale.has_value());
    EXPECT_EQ(answer.headers.options.has_timestamps, opening.timestamp.has_value());
    if (opening.timestamp) {
      EXPECT_EQ(answer.headers.options.timestamp_echo, 12345U);
    }
    EXPECT_EQ(answer.headers.window, 65535);  // never scaled
    client.send(0, pattern(0, 10));
    EXPECT_EQ(receiver.events.size(), 1U);
  }
}

TEST(IngestTcpOpen, OptionsCanBeTurnedOff) {
  TcpConfig config = test_config();
  config.sack = config.timestamps = false;
  config.mtu = 576;
  Receiver receiver(config);
  Client client(receiver, {.version = 6}, {.timestamp = 7});
  client.send_syn();
  EXPECT_FALSE(receiver.answers[0].headers.options.sack_permitted);
  EXPECT_FALSE(receiver.answers[0].headers.options.has_timestamps);
  EXPECT_EQ(receiver.answers[0].headers.options.mss, 516);
}

// RFC 6528: the numbers of one pair of ends rise with the clock; those of another pair, or with another key, reveal
// nothing.
TEST(IngestTcpOpen, InitialNumbersAreKeyed) {
  const auto number = [](std::uint64_t key, std::uint16_t port, std::uint64_t later) {
    TcpConfig config = test_config();
    config.key.words[0] = key;
    Receiver receiver(config);
    receiver.now += later;
    Client(receiver, {.port = port}).send_syn();
    return receiver.answers.at(0).sequence();
  };
  EXPECT_EQ(number(1, 1, 0), number(1, 1, 0));
  EXPECT_EQ(number(1, 1, 4'000'000), number(1, 1, 0) + 1000);
  EXPECT_GT(std::abs(serial_distance(number(1, 2, 0), number(1, 1, 0))), 1000);
  EXPECT_GT(std::abs(serial_distance(number(2, 1, 0), number(1, 1, 0))), 1000);
}

TEST(IngestTcpOpen, RepeatedSynGetsTheSameAnswer) {
  Receiver receiver(test_config());
  Client client(receiver);
  client.send_syn();
  const std::uint32_t number = receiver.answers.at(0).sequence();
  receiver.now += 3 * kMs;
  client.send_syn();
  ASSERT_EQ(receiver.answers.size(), 1U);
  EXPECT_TRUE(receiver.answers[0].is(kSyn | kAck));
  EXPECT_EQ(receiver.answers[0].sequence(), number);
  client.send(0, {});
  EXPECT_EQ(receiver.counters().opened, 1U);
}

TEST(IngestTcpOpen, SynAckIsSentAgainAndGivenUp) {
  TcpConfig config = test_config();
  config.retransmits_max = 3;
  Receiver receiver(config);
  Client client(receiver);
  client.send_syn();
  std::uint64_t wait = config.retransmit_first;
  for (int i = 0; i < 3; ++i, wait *= 2) {
    receiver.now += wait - 1;
    receiver.tick();
    EXPECT_TRUE(receiver.answers.empty());
    receiver.now += 1;
    EXPECT_EQ(receiver.next_deadline(), receiver.now);
    receiver.tick();
    ASSERT_EQ(receiver.answers.size(), 1U);
    EXPECT_TRUE(receiver.answers[0].is(kSyn | kAck));
  }
  receiver.now += wait;
  receiver.tick();
  EXPECT_TRUE(receiver.answers.empty());
  EXPECT_EQ(receiver.counters().half_open_lost, 1U);
  EXPECT_EQ(receiver.next_deadline(), kNever);
  client.send(0, {});  // too late
  EXPECT_TRUE(receiver.answers.at(0).is(kRst));
  EXPECT_TRUE(receiver.all_events.empty());
}

TEST(IngestTcpOpen, WrongAcknowledgementOfSynAckIsReset) {
  Receiver receiver(test_config());
  Client client(receiver);
  client.send_syn();
  const std::uint32_t right = client.acknowledgement;
  for (const std::uint32_t wrong : {right - 1, right + 1}) {
    client.acknowledgement = wrong;
    client.send(0, {});
    ASSERT_EQ(receiver.answers.size(), 1U);
    EXPECT_TRUE(receiver.answers[0].is(kRst));
    EXPECT_EQ(receiver.answers[0].sequence(), wrong);
  }
  client.acknowledgement = right;
  client.send(0, {});
  EXPECT_EQ(receiver.counters().opened, 1U);
}

TEST(IngestTcpOpen, ResetOfAHalfOpenConnectionForgetsIt) {
  Receiver receiver(test_config());
  Client client(receiver);
  client.send_syn();
  client.send(5, {}, kRst);  // not the exact number
  EXPECT_EQ(receiver.view().shared->requests.half_open_count, 1U);
  client.send(0, {}, kRst);
  EXPECT_EQ(receiver.view().shared->requests.half_open_count, 0U);
  EXPECT_TRUE(receiver.all_events.empty());
}

TEST(IngestTcpOpen, BytesMayComeWithTheLastStep) {
  Receiver receiver(test_config());
  Client client(receiver);
  client.send_syn();
  client.send(0, pattern(0, 100), kAck | kFin);
  ASSERT_EQ(receiver.events.size(), 2U);
  EXPECT_EQ(receiver.events[0].kind, StreamEvent::opened);
  EXPECT_EQ(receiver.events[1].kind, StreamEvent::finished);
  EXPECT_EQ(receiver.events[1].offset, 100U);
  EXPECT_EQ(receiver.streams[0], pattern(0, 100));
}

// RFC 9293 3.10.7.1: segments that belong to no connection.
TEST(IngestTcpOpen, StraySegmentsAreReset) {
  Receiver receiver(test_config());
  const Peer peer;
  receiver.arrive(tcp_packet(peer, {.sequence = 5, .acknowledgement = 99, .flags = kAck, .payload = pattern(0, 4)}));
  ASSERT_EQ(receiver.answers.size(), 1U);
  EXPECT_TRUE(receiver.answers[0].is(kRst));
  EXPECT_EQ(receiver.answers[0].sequence(), 99U);
  receiver.arrive(tcp_packet(peer, {.sequence = 5, .flags = kRst}));
  EXPECT_TRUE(receiver.answers.empty());
  receiver.arrive(tcp_packet(peer, {.sequence = 5, .flags = kFin}));
  EXPECT_TRUE(receiver.answers.empty());
  EXPECT_EQ(receiver.counters().unknown, 3U);

  TcpConfig config = test_config();
  config.port = 9001;
  Receiver other(config);
  other.arrive(tcp_packet(peer, {.sequence = 5, .flags = kSyn}));
  ASSERT_EQ(other.answers.size(), 1U);
  EXPECT_TRUE(other.answers[0].is(kRst | kAck));
  EXPECT_EQ(other.answers[0].sequence(), 0U);
  EXPECT_EQ(other.answers[0].acknowledgement(), 6U);
  EXPECT_EQ(other.counters().refused, 1U);

  config.reset_unknown = false;
  Receiver silent(config);
  silent.arrive(tcp_packet(peer, {.sequence = 5, .flags = kSyn}));
  silent.arrive(tcp_packet(peer, {.sequence = 5, .acknowledgement = 99, .flags = kAck}));
  EXPECT_TRUE(silent.all_replies.empty());
}

TEST(IngestTcpOpen, ResetsAreLimited) {
  TcpConfig config = test_config();
  config.resets_per_second = 5;
  Receiver receiver(config);
  for (int i = 0; i < 20; ++i) receiver.arrive(tcp_packet({}, {.acknowledgement = 99, .flags = kAck}));
  const std::size_t first = receiver.all_replies.size();
  EXPECT_GE(first, 3U) << "half of it at least";
  EXPECT_LE(first, 5U);
  EXPECT_EQ(receiver.counters().limited, 20U - first);
  receiver.now += kSecond;
  receiver.arrive(tcp_packet({}, {.acknowledgement = 99, .flags = kAck}));
  EXPECT_EQ(receiver.all_replies.size(), first + 1);
}

TEST(IngestTcpOpen, GroupsAndOneselfAreNoPeers) {
  Receiver receiver(test_config());
  const Bytes good = tcp_packet({}, {.flags = kSyn});
  const auto from = [&](std::uint32_t address, std::size_t at) {
    Bytes packet = good;
    store_be32(packet.data() + at, address);
    receiver.arrive(packet, {.checksum_verified = true});
  };
  from(0xE0000001, 12);
  from(0xFFFFFFFF, 12);
  from(0, 12);
  from(0xE0000001, 16);
  EXPECT_TRUE(receiver.all_replies.empty());
  EXPECT_EQ(receiver.counters().refused, 4U);
  Bytes self = tcp_packet({.port = 9000}, {.flags = kSyn});
  std::memcpy(self.data() + 12, self.data() + 16, 4);
  receiver.arrive(self, {.checksum_verified = true});
  EXPECT_TRUE(receiver.all_replies.empty());
}

TEST(IngestTcpOpen, PacketsThatAreNotUnderstoodAreCounted) {
  Receiver receiver(test_config());
  receiver.arrive(Bytes(3));
  receiver.arrive(udp_packet({}, pattern(0, 9)));
  Bytes broken = tcp_packet({}, {.flags = kSyn});
  broken.back() ^= std::byte{1};
  receiver.arrive(broken);
  const TcpCounters& counters = receiver.counters();
  EXPECT_EQ(counters.packets, 3U);
  EXPECT_EQ(counters.segments, 0U);
  EXPECT_EQ(counters.not_tcp, 1U);
  EXPECT_EQ(counters.unparsed[static_cast<std::uint32_t>(ParseResult::tcp_checksum)], 1U);
  EXPECT_EQ(counters.unparsed[static_cast<std::uint32_t>(ParseResult::not_ip)], 1U);  // version 0
  EXPECT_TRUE(receiver.all_replies.empty());
}

// Answers go back over the link on which the packet arrived, including those of the timer and those to strangers.
TEST(IngestTcpOpen, AnswersOverEthernet) {
  std::vector<std::uint64_t> memory(tcp_state_bytes(2, test_config()) / 8 + 8);
  TcpConfig config = test_config();
  const TcpView view = make_tcp_state(memory.data(), 2, config);
  std::uint64_t now = kSecond;
  Reply replies[4];
  Event events[4];
  Piece pieces[4];
  const auto arrive = [&](std::uint64_t from, const Segment& segment) {
    Bytes frame;
    put(frame, 0x0200000000AA, 6);
    put(frame, from, 6);
    put(frame, 0x8100002A, 4);
    put(frame, 0x0800, 2);
    frame = frame + tcp_packet({}, segment);
    Output output{pieces, replies, events, 4, 4, 4};
    TcpSequencer sequencer(view, frame.data(), output, now);
    sequencer.receive({.length = static_cast<std::uint32_t>(frame.size())}, Layer::ethernet);
    sequencer.tick();
    sequencer.flush();
    return output.reply_count;
  };
  const auto expect_to = [&](std::uint64_t to, std::uint8_t flags) {
    EXPECT_EQ(load_number(replies[0].bytes, 6, true), to);
    EXPECT_EQ(load_number(replies[0].bytes + 6, 6, true), 0x0200000000AAU);
    EXPECT_EQ(load_be32(replies[0].bytes + 12), 0x8100002AU);
    EXPECT_EQ(read_answer(replies[0], Layer::ethernet).headers.flags, flags);
  };
  ASSERT_EQ(arrive(1, {.acknowledgement = 5, .flags = kAck}), 1U);
  expect_to(1, kRst);
  ASSERT_EQ(arrive(2, {.sequence = 10, .flags = kSyn}), 1U);
  expect_to(2, kSyn | kAck);
  const std::uint32_t ack = read_answer(replies[0], Layer::ethernet).sequence() + 1;
  ASSERT_EQ(arrive(2, {.sequence = 11, .acknowledgement = ack, .flags = kAck}), 0U);
  ASSERT_EQ(arrive(3, {.sequence = 11, .acknowledgement = ack, .flags = kAck, .payload = pattern(0, 10)}), 0U);
  now += config.acknowledgement_delay;
  ASSERT_EQ(arrive(4, {.flags = kRst}), 1U);  // carries no data; the timer answers to the peer's last address
  expect_to(3, kAck);
}

TEST(IngestTcpOpen, RoundTripOfTheHandshake) {
  Receiver receiver(test_config());
  Client client(receiver);
  client.send_syn();
  receiver.now += 345'678;
  client.send(0, {});
  EXPECT_EQ(receiver.counters().round_trip_ns, 345'678U);
}

TEST(IngestTcpOpen, ConfigurationsOutOfRangeAreRefused) {
  const auto refused = [](auto change) {
    TcpConfig config = test_config();
    change(config);
    EXPECT_THROW(check(config), UsageError);
  };
  EXPECT_NO_THROW(check(test_config()));
  refused([](TcpConfig& c) { c.mtu = 575; });
  refused([](TcpConfig& c) { c.window_bytes_max = 0; });
  refused([](TcpConfig& c) { c.window_bytes_max = 1 << 30; });
  refused([](TcpConfig& c) { c.segments_per_acknowledgement = 0; });
  refused([](TcpConfig& c) { c.acknowledgement_delay = 501 * kMs; });
  refused([](TcpConfig& c) { c.retransmit_first = 0; });
  refused([](TcpConfig& c) { c.retransmits_max = 17; });
  refused([](TcpConfig& c) { c.timestamp_tick = 0; });
  refused([](TcpConfig& c) { c.half_open_max = 0; });
  std::vector<std::uint64_t> memory(tcp_state_bytes(1, test_config()) / 8 + 8);
  EXPECT_THROW(make_tcp_state(memory.data(), 0, test_config()), UsageError);
  EXPECT_THROW(make_tcp_state(memory.data(), 131'073, test_config()), UsageError);
}

}  // namespace
}  // namespace headrace::ingest::testing
