#include <algorithm>
#include <random>

#include "tests/ingest_peer.hpp"

/// Many connections, and floods of them.
namespace headrace::ingest::testing {
namespace {

Peer mixed_peer(std::uint32_t i) {
  return {.version = i % 2 == 0 ? 4U : 6U,
          .host = static_cast<std::uint8_t>(1 + i % 50),
          .port = static_cast<std::uint16_t>(1024 + i)};
}

TEST(TcpMany, StreamsDoNotMix) {
  constexpr std::uint32_t kConnections = 64;
  Receiver receiver(test_config(), kConnections);
  std::vector<Client> clients;
  for (std::uint32_t i = 0; i < kConnections; ++i) {
    clients.emplace_back(receiver, mixed_peer(i), Opening{.initial = i * 0x04000000U});
    clients.back().open();
  }
  std::mt19937 random(1);
  std::vector<std::int64_t> sent(kConnections);
  for (int i = 0; i < 4000; ++i) {
    const auto c = static_cast<std::size_t>(random() % kConnections);
    const auto count = static_cast<std::int64_t>(1 + random() % 200);
    clients[c].send(sent[c], pattern(c * 1'000'000 + static_cast<std::uint64_t>(sent[c]), count));
    sent[c] += count;
  }
  for (std::size_t c = 0; c < kConnections; ++c) {
    clients[c].send(sent[c], {}, kAck | kFin);
    ASSERT_EQ(receiver.events.size(), 1U);
    EXPECT_EQ(receiver.streams[clients[c].stream], pattern(c * 1'000'000, static_cast<std::size_t>(sent[c])));
    ++clients[c].acknowledgement;
    clients[c].send(sent[c] + 1, {});
  }
  EXPECT_EQ(receiver.view().shared->unused.count, kConnections);
  EXPECT_EQ(receiver.counters().finished, kConnections);
  for (std::uint32_t i = 0; i <= receiver.view().shared->bucket_mask; ++i) {
    EXPECT_EQ(receiver.view().buckets[i], kNoConnection);
  }
}

// A connection's acknowledgement waits for the end of the burst, and another connection's does not replace it.
TEST(TcpMany, ABurstOfSeveralIsAcknowledgedToEach) {
  Receiver receiver(test_config());
  std::vector<Client> clients;
  Bytes ring;
  std::vector<Packet> packets;
  for (std::uint32_t i = 0; i < 3; ++i) {
    clients.emplace_back(receiver, mixed_peer(i));
    clients.back().open();
    for (std::int64_t at = 0; at < 400; at += 100) {
      const Bytes bytes = tcp_packet(clients[i].peer(), clients[i].segment(at, pattern(at, 100)));
      packets.push_back({.ring_offset = ring.size(), .length = static_cast<std::uint32_t>(bytes.size())});
      ring = ring + bytes;
    }
  }
  Piece pieces[16];
  Reply replies[16];
  Event events[16];
  Output output{pieces, replies, events, 16, 16, 16};
  TcpSequencer sequencer(receiver.view(), ring.data(), output, receiver.now);
  for (const Packet& packet : packets) sequencer.receive(packet, Layer::ip);
  sequencer.flush();
  ASSERT_EQ(output.reply_count, 3U);
  for (std::uint32_t i = 0; i < 3; ++i) {
    const Answer answer = read_answer(replies[i]);
    EXPECT_EQ(answer.headers.flow.local_port, clients[i].peer().port);
    EXPECT_EQ(clients[i].offset(answer.acknowledgement()), 400);
  }
}

TEST(TcpMany, AFloodOfSynsHarmsNoEstablishedConnection) {
  TcpConfig config = test_config();
  config.half_open_max = 5;
  Receiver receiver(config, 8);
  std::vector<Client> clients;
  for (std::uint32_t i = 0; i < 4; ++i) {
    clients.emplace_back(receiver, mixed_peer(i));
    clients.back().open();
  }
  for (std::uint32_t i = 100; i < 1100; ++i) {
    Client(receiver, mixed_peer(i)).send_syn();
    ASSERT_LE(receiver.view().shared->requests.half_open_count, 5U);
  }
  EXPECT_EQ(receiver.counters().half_open_lost, 995U);
  Client late(receiver, mixed_peer(1099));  // the last one still exists
  late.send_syn();
  late.send(0, {});
  EXPECT_EQ(receiver.events.size(), 1U);
  for (Client& client : clients) {
    client.send(0, pattern(0, 10));
    client.send(10, pattern(10, 10));
    EXPECT_EQ(client.offset(receiver.answers.at(0).acknowledgement()), 20);
  }
  EXPECT_TRUE(std::none_of(receiver.all_events.begin(), receiver.all_events.end(),
                           [](const Event& event) { return event.kind != StreamEvent::opened; }));
}

TEST(TcpMany, TheOldestHalfOpenGivesWay) {
  TcpConfig config = test_config();
  config.half_open_max = 2;
  Receiver receiver(config, 8);
  std::vector<Client> clients;
  for (std::uint32_t i = 0; i < 3; ++i) {
    clients.emplace_back(receiver, mixed_peer(i));
    clients.back().send_syn();
  }
  clients[0].send(0, {});
  EXPECT_TRUE(receiver.answers.at(0).is(kRst));
  clients[2].send(0, {});
  clients[1].send(0, {});
  EXPECT_EQ(receiver.counters().opened, 2U);
}

TEST(TcpMany, AFullTableLetsOthersWaitUntilOneEnds) {
  Receiver receiver(test_config(), 2);
  Client first(receiver, mixed_peer(1));
  Client second(receiver, mixed_peer(2));
  first.open();
  second.open();
  Client third(receiver, mixed_peer(3));
  third.send_syn();
  ASSERT_EQ(receiver.answers.size(), 1U);
  EXPECT_EQ(receiver.answers[0].headers.window, 0);
  third.send(0, {});
  EXPECT_TRUE(receiver.events.empty());
  first.send(0, {}, kRst);
  ASSERT_EQ(receiver.events.size(), 2U) << "one stream ends and the other begins";
  EXPECT_EQ(receiver.events[1].kind, StreamEvent::opened);
  ASSERT_EQ(receiver.answers.size(), 1U) << "its window opens";
  EXPECT_GT(receiver.answers[0].headers.window, 0);
  // A connection that only waits out TIME-WAIT gives way as well.
  receiver.run({.kind = Step::Kind::close, .connection = receiver.connections[second.stream], .stream = second.stream});
  ++second.acknowledgement;
  second.send(0, {}, kAck | kFin);
  ASSERT_EQ(receiver.view().shared->time_wait.count, 1U);
  Client fourth(receiver, mixed_peer(4));
  fourth.open();
}

TEST(TcpMany, TimersOfAllAreKept) {
  Receiver receiver(test_config(), 16);
  std::vector<Client> clients;
  for (std::uint32_t i = 0; i < 16; ++i) {
    clients.emplace_back(receiver, mixed_peer(i));
    clients.back().open();
  }
  for (std::uint32_t i = 0; i < 16; ++i) {
    clients[i].send(0, pattern(0, 10));
    receiver.now += kMs;
  }
  std::size_t answered = 0;
  while (receiver.next_deadline() != kNever) {
    receiver.now = std::max(receiver.now, receiver.next_deadline());
    receiver.tick();
    answered += receiver.answers.size();
    ASSERT_LE(receiver.answers.size(), 1U);
    if (receiver.answers.empty()) break;
  }
  EXPECT_EQ(answered, 16U);
}

TEST(TcpMany, StateIsBytesThatCanBeMoved) {
  std::vector<std::uint64_t> one(tcp_state_bytes(8, test_config()) / 8 + 8);
  const TcpView view = make_tcp_state(one.data(), 8, test_config());
  const Bytes ring = tcp_packet({}, {.sequence = 1, .flags = kSyn});
  Piece pieces[4];
  Reply replies[4];
  Event events[4];
  Output output{pieces, replies, events, 4, 4, 4};
  TcpSequencer(view, ring.data(), output, 1).receive({.length = static_cast<std::uint32_t>(ring.size())}, Layer::ip);
  ASSERT_EQ(output.reply_count, 1U);
  const Answer syn_ack = read_answer(replies[0]);

  std::vector<std::uint64_t> other(one);
  const TcpView moved = tcp_view(other.data(), 8, test_config());
  const Bytes next = tcp_packet({}, {.sequence = 2, .acknowledgement = syn_ack.sequence() + 1, .flags = kAck});
  output.clear();
  TcpSequencer(moved, next.data(), output, 2).receive({.length = static_cast<std::uint32_t>(next.size())}, Layer::ip);
  EXPECT_EQ(output.event_count, 1U);
  EXPECT_EQ(moved.shared->counters.opened, 1U);
  EXPECT_EQ(view.shared->counters.opened, 0U);
}

}  // namespace
}  // namespace headrace::ingest::testing
