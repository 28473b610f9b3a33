#include <cstdint>
#include <string>
#include <vector>

#include "tests/ingest_peer.hpp"

/// Cheap attacks by a peer, and the peers that must not wait because of them. The clock is the test's: where it does
/// not advance, no peer has waited.
namespace headrace::ingest::testing {
namespace {

constexpr std::uint32_t kSilent = 500;

Peer peer_of(std::uint32_t i) { return {.port = static_cast<std::uint16_t>(1024 + i)}; }

/// Streams open with their first byte.
TcpConfig config_of(std::uint32_t streams) {
  TcpConfig config = test_config();
  config.open_at_first_byte = true;
  config.initial_streams = streams;
  config.backlog = 2 * kSilent;
  return config;
}

/// Sends SYN, and the acknowledgement of SYN+ACK, which opens no stream.
void connect(Receiver& receiver, Client& client) {
  client.send_syn();
  ASSERT_EQ(receiver.answers.size(), 1U);
  ASSERT_TRUE(receiver.answers[0].is(kSyn | kAck));
  client.send(0, {});
  ASSERT_TRUE(receiver.events.empty());
}

/// Connections that are made while places are free and end without a byte once none are.
std::vector<Client> finish_without_a_place(Receiver& receiver) {
  std::vector<Client> clients;
  receiver.set_streams_limit(0, kSilent);
  for (std::uint32_t i = 0; i < kSilent; ++i) connect(receiver, clients.emplace_back(receiver, peer_of(i)));
  receiver.set_streams_limit(0);
  for (Client& client : clients) {
    client.send(0, {}, kAck | kFin);
    EXPECT_TRUE(receiver.events.empty());
    EXPECT_EQ(receiver.answers.size(), 1U);
    EXPECT_EQ(client.offset(receiver.answers.at(0).acknowledgement()), 0) << "it has no place yet";
  }
  EXPECT_EQ(receiver.counters().connections_waiting, kSilent);
  return clients;
}

TEST(TcpAttack, AFinWithoutAByteKeepsNobodyWaiting) {
  Receiver receiver(config_of(0));
  const std::vector<Client> silent = finish_without_a_place(receiver);
  Client honest(receiver, peer_of(kSilent));
  connect(receiver, honest);
  receiver.set_streams_limit(1);
  ASSERT_EQ(receiver.answers.size(), 1U) << "the only place is for the connection with data";
  EXPECT_EQ(receiver.answers[0].headers.flow.local_port, honest.peer().port);
  EXPECT_GT(receiver.answers[0].headers.window, 0);
  honest.send(0, pattern(0, 5), kAck | kFin);
  EXPECT_EQ(receiver.streams[0], pattern(0, 5));
}

// As in the kernel: the end of each connection is acknowledged, whether its peer repeats it or not.
TEST(TcpAttack, EveryFinWithoutAByteIsAnEmptyStreamInTheEnd) {
  Receiver receiver(config_of(0), kSilent);
  const std::vector<Client> silent = finish_without_a_place(receiver);
  for (std::uint32_t i = 0; i < kSilent; ++i) {
    receiver.set_streams_limit(i + 1);
    ASSERT_EQ(receiver.events.size(), 2U) << i;
    EXPECT_EQ(receiver.events[0].kind, StreamEvent::opened);
    EXPECT_EQ(receiver.events[0].flow.remote_port, silent[i].peer().port) << "in the order in which they finished";
    EXPECT_EQ(receiver.events[1].kind, StreamEvent::finished);
    EXPECT_EQ(receiver.events[1].offset, 0U);
    ASSERT_EQ(receiver.answers.size(), 1U);
    EXPECT_TRUE(receiver.answers[0].is(kFin | kAck));
    EXPECT_EQ(silent[i].offset(receiver.answers[0].acknowledgement()), 1);
  }
  EXPECT_EQ(receiver.counters().connections_waiting, 0U);
  EXPECT_EQ(receiver.counters().resets_sent, 0U);
}

TEST(TcpAttack, ThoseThatFinishedLeaveAsManyPlacesAsTheyTake) {
  constexpr std::uint32_t kPlaces = 64;
  Receiver receiver(config_of(0), 2 * kPlaces);
  const std::vector<Client> silent = finish_without_a_place(receiver);
  for (int i = 0; i < 10; ++i) receiver.set_streams_limit(kPlaces);  // as the output has room
  EXPECT_EQ(receiver.counters().opened, kPlaces / 2);
  Client honest(receiver, peer_of(kSilent));
  honest.send_syn();
  EXPECT_GT(receiver.answers.at(0).headers.window, 0) << "its window is open from the start";
  honest.send(0, pattern(0, 5), kAck | kFin);
  EXPECT_EQ(receiver.streams[kPlaces / 2], pattern(0, 5));
  const std::uint32_t back = kPlaces / 2;
  for (int i = 0; i < 10; ++i) receiver.set_streams_limit(kPlaces + back);
  EXPECT_EQ(receiver.counters().opened, kPlaces / 2 + 1 + back) << "half of the freed places";
}

// The FIN is answered although it came once: no peer has to repeat it for its deadline.
TEST(TcpAttack, AnEmptyStreamsEndIsSentAgain) {
  Receiver receiver(config_of(0));
  receiver.set_streams_limit(0, 1);
  Client client(receiver, peer_of(1));
  connect(receiver, client);
  receiver.set_streams_limit(0);
  client.send(0, {}, kAck | kFin);
  receiver.set_streams_limit(1);
  ASSERT_TRUE(receiver.answers.at(0).is(kFin | kAck));
  EXPECT_EQ(receiver.next_deadline(), receiver.now + kSecond);
  receiver.now += kSecond;
  receiver.tick();
  ASSERT_EQ(receiver.answers.size(), 1U);
  EXPECT_TRUE(receiver.answers[0].is(kFin | kAck));
  client.acknowledgement = receiver.answers[0].sequence() + 1;
  client.send(1, {});
  ASSERT_EQ(receiver.events.size(), 1U);
  EXPECT_EQ(receiver.events[0].kind, StreamEvent::closed);
}

// A FIN does not take a place kept for a peer that may still speak; it gets the place afterwards.
TEST(TcpAttack, AFinTakesNoPlaceThatIsKept) {
  Receiver receiver(config_of(1));
  Client invited(receiver, peer_of(1));
  Client ends(receiver, peer_of(2));
  connect(receiver, invited);
  connect(receiver, ends);
  ends.send(0, {}, kAck | kFin);
  EXPECT_TRUE(receiver.events.empty());
  receiver.now += 250 * kMs;
  receiver.tick();
  ASSERT_EQ(receiver.events.size(), 2U);
  EXPECT_EQ(receiver.events[1].kind, StreamEvent::finished);
}

// They also say nothing about silent connections: as many windows stay open as before.
TEST(TcpAttack, AFinWithoutAByteIsNoReasonToExpectMoreThatSpeak) {
  Receiver receiver(config_of(8));
  std::vector<Client> clients;
  for (std::uint32_t i = 0; i < 8; ++i) connect(receiver, clients.emplace_back(receiver, peer_of(i)));
  receiver.now += 250 * kMs;
  receiver.tick();
  ASSERT_EQ(receiver.view().shared->requests.no_shows, 8U);
  for (Client& client : clients) client.send(0, {}, kAck | kFin);
  EXPECT_EQ(receiver.view().shared->requests.no_shows, 8U);
}

TEST(TcpAttack, ThoseThatFinishedGiveWayWhereTheBacklogIsFull) {
  TcpConfig config = config_of(0);
  config.backlog = 2;
  Receiver receiver(config);
  receiver.set_streams_limit(0, 2);
  std::vector<Client> clients;
  for (std::uint32_t i = 0; i < 2; ++i) connect(receiver, clients.emplace_back(receiver, peer_of(i)));
  receiver.set_streams_limit(0);
  clients[1].send(0, {}, kAck | kFin);
  Client honest(receiver, peer_of(2));
  honest.send_syn();
  ASSERT_EQ(receiver.answers.size(), 2U);
  EXPECT_TRUE(receiver.answers[0].is(kRst | kAck));
  EXPECT_EQ(receiver.answers[0].headers.flow.local_port, clients[1].peer().port);
  EXPECT_TRUE(receiver.answers[1].is(kSyn | kAck));
}

// The receiver ignores what follows a FIN until the stream is open, and no connection moves back in the queue.
TEST(TcpAttack, WhatComesBehindAFinWithoutAByteChangesNothing) {
  Receiver receiver(config_of(0));
  receiver.set_streams_limit(0, 2);
  Client first(receiver, peer_of(1));
  Client second(receiver, peer_of(2));
  connect(receiver, first);
  connect(receiver, second);
  receiver.set_streams_limit(0);
  first.send(0, {}, kAck | kFin);
  second.send(0, {}, kAck | kFin);
  first.send(0, {}, kAck | kFin);
  first.send(0, pattern(0, 5));
  first.send(1, pattern(0, 5));
  first.send(-1, {});
  first.send(1, {});
  first.send(1, {}, kRst);
  EXPECT_EQ(receiver.counters().connections_waiting, 2U);
  EXPECT_EQ(receiver.counters().waited, 2U);
  receiver.set_streams_limit(1);
  ASSERT_EQ(receiver.events.size(), 2U);
  EXPECT_EQ(receiver.events[0].flow.remote_port, first.peer().port);
  second.send(0, {}, kRst | kAck);
  EXPECT_EQ(receiver.counters().connections_waiting, 0U);
}

// The peer's last acknowledgement may never arrive. Connections that lack nothing else block no place.
TEST(TcpAttack, AnEndThatNobodyAcknowledgesGivesWay) {
  constexpr std::uint32_t kConnections = 4;
  Receiver receiver(config_of(1U << 30), kConnections);
  std::vector<Client> gone;
  for (std::uint32_t i = 0; i < kConnections; ++i) {
    gone.emplace_back(receiver, peer_of(i)).send_syn();
    gone.back().send(0, i % 2 == 0 ? Bytes{} : pattern(0, 5), kAck | kFin);
    ASSERT_EQ(receiver.events.size(), 2U);
  }
  for (std::uint32_t i = 0; i < 2 * kConnections; ++i) {
    Client honest(receiver, peer_of(100 + i));
    honest.send_syn();
    EXPECT_GT(receiver.answers.at(0).headers.window, 0) << i;
    honest.send(0, pattern(i, 5), kAck | kFin);
    EXPECT_EQ(receiver.streams[kConnections + i], pattern(i, 5));
    ASSERT_EQ(receiver.answers.size(), 2U);
    EXPECT_TRUE(receiver.answers[0].is(kRst | kAck)) << "the oldest is told, since its FIN may have been lost";
    if (i >= kConnections) continue;
    EXPECT_EQ(receiver.answers[0].headers.flow.local_port, gone[i].peer().port);
  }
  EXPECT_EQ(receiver.counters().closes_cut, 2 * kConnections);
  EXPECT_EQ(receiver.counters().waited, 0U);
}

// A peer that keeps its window closed, and so never gets the answer, is one of them.
TEST(TcpAttack, AnAnswerThatNobodyLetsInGivesWay) {
  TcpConfig config = config_of(1U << 30);
  config.close_when_finished = false;
  Receiver receiver(config, 1);
  Client deaf(receiver, peer_of(1));
  deaf.send_syn();
  Segment segment = deaf.segment(0, pattern(0, 5), kAck | kFin);
  segment.window = 0;
  receiver.arrive(tcp_packet(deaf.peer(), segment));
  ASSERT_EQ(receiver.events.size(), 2U);
  ASSERT_TRUE(receiver.send(pattern(0, 9)));
  Client honest(receiver, peer_of(2));
  honest.send_syn();
  honest.send(0, pattern(1, 5));
  EXPECT_TRUE(receiver.events.empty()) << "the other connection may still have data to send";
  receiver.close();
  honest.send(0, pattern(1, 5));
  EXPECT_EQ(receiver.streams[1], pattern(1, 5));
}

TEST(TcpAttack, AConnectionThatHasNotFinishedNeverGivesWay) {
  Receiver receiver(config_of(1U << 30), 1);
  Client speaks(receiver, peer_of(1));
  speaks.send_syn();
  speaks.send(0, pattern(0, 5));
  receiver.close();
  Client other(receiver, peer_of(2));
  other.send_syn();
  EXPECT_EQ(receiver.answers.at(0).headers.window, 0);
  other.send(0, pattern(0, 5));
  EXPECT_TRUE(receiver.events.empty());
  speaks.send(5, pattern(5, 5));
  EXPECT_EQ(receiver.streams[0], pattern(0, 10));
}

// A peer that sends into a closed window may send when its turn comes, for as long as all others.
TEST(TcpAttack, BytesBeyondAClosedWindowKeepNoPlace) {
  Receiver receiver(config_of(0));
  Client pushes(receiver, peer_of(1));
  Client waits(receiver, peer_of(2));
  connect(receiver, pushes);
  connect(receiver, waits);
  for (int i = 0; i < 3; ++i) {
    pushes.send(0, pattern(0, 5));
    receiver.now += 5 * kSecond;
  }
  receiver.set_streams_limit(1);
  ASSERT_EQ(receiver.answers.at(0).headers.flow.local_port, pushes.peer().port);
  receiver.now += 250 * kMs;
  receiver.tick();
  ASSERT_EQ(receiver.answers.size(), 1U);
  EXPECT_EQ(receiver.answers[0].headers.flow.local_port, waits.peer().port);
}

// The silence of a peer before its first byte is not taken as its timer.
TEST(TcpAttack, ALongSilenceKeepsNoPlaceForLonger) {
  Receiver receiver(config_of(1));
  Client late(receiver, peer_of(1));
  late.send_syn();
  receiver.now += 10 * kMs;
  late.send(0, {});
  receiver.now += 250 * kMs;
  receiver.tick();
  Client speaks(receiver, peer_of(2));
  speaks.send_syn();
  speaks.send(0, pattern(0, 5));
  receiver.now += 20 * kSecond;
  receiver.tick();  // the bytes are acknowledged
  late.send(0, pattern(0, 5));
  ASSERT_EQ(receiver.answers.at(0).headers.window, 0) << "its byte is dropped";
  Client waits(receiver, peer_of(3));
  connect(receiver, waits);
  receiver.set_streams_limit(2);
  ASSERT_EQ(receiver.answers.at(0).headers.flow.local_port, late.peer().port);
  receiver.now += 279 * kMs;
  receiver.tick();
  EXPECT_TRUE(receiver.answers.empty()) << "Linux retransmits after 200 ms and a round trip";
  receiver.now += 1 * kMs;
  receiver.tick();
  ASSERT_EQ(receiver.answers.size(), 1U);
  EXPECT_EQ(receiver.answers[0].headers.flow.local_port, waits.peer().port);
}

// Peers whose bytes were dropped, and which may never retransmit them, leave half of the places to new ones.
TEST(TcpAttack, BytesThatWereDroppedKeepNobodyWaiting) {
  constexpr std::uint32_t kPlaces = 4;
  constexpr std::uint32_t kLate = 2 * kPlaces;
  Receiver receiver(config_of(0), kLate);
  std::vector<Client> late;
  receiver.set_streams_limit(0, kLate);
  for (std::uint32_t i = 0; i < kLate; ++i) connect(receiver, late.emplace_back(receiver, peer_of(i)));
  receiver.set_streams_limit(0);
  for (Client& client : late) client.send(0, pattern(0, 5), kAck | kFin);
  EXPECT_EQ(receiver.counters().connections_waiting, kLate);
  receiver.set_streams_limit(kPlaces);
  EXPECT_EQ(receiver.counters().window_updates, kPlaces / 2) << "places are kept for the first of them";
  std::uint32_t streams = 0;
  for (; streams < kPlaces / 2; ++streams) {
    Client honest(receiver, peer_of(kLate + streams));
    honest.send_syn();
    EXPECT_GT(receiver.answers.at(0).headers.window, 0) << streams;
    honest.send(0, pattern(streams, 5), kAck | kFin);
    EXPECT_EQ(receiver.streams[streams], pattern(streams, 5));
  }
  receiver.set_streams_limit(kPlaces + 1);
  late.back().send(0, pattern(0, 5), kAck | kFin);
  EXPECT_EQ(receiver.streams[streams++], pattern(0, 5)) << "the last connection, which was the first to retransmit";
  late.front().send(0, pattern(0, 5), kAck | kFin);
  EXPECT_EQ(receiver.streams[streams++], pattern(0, 5)) << "its place was kept";
}

// The first SYN sets the options, whatever later SYNs with its number carry.
TEST(TcpAttack, ASynWithOtherOptionsChangesNothing) {
  Receiver receiver(config_of(8));
  Client client(receiver, peer_of(1));
  client.send_syn();
  const Answer first = receiver.answers.at(0);
  for (const Bytes& options : {Bytes{}, syn_options(100, 14, false)}) {
    receiver.arrive(tcp_packet(client.peer(), {.sequence = 1000, .flags = kSyn, .window = 0, .options = options}));
    ASSERT_EQ(receiver.answers.size(), 1U);
    EXPECT_TRUE(receiver.answers[0].is(kSyn | kAck));
    EXPECT_EQ(receiver.answers[0].sequence(), first.sequence());
    EXPECT_EQ(receiver.answers[0].headers.options.window_scale, first.headers.options.window_scale);
    EXPECT_EQ(receiver.answers[0].headers.options.sack_permitted, first.headers.options.sack_permitted);
  }
  receiver.arrive(tcp_packet(client.peer(), {.sequence = 77'000, .flags = kSyn}));
  EXPECT_EQ(receiver.answers.at(0).acknowledgement(), 1001U) << "another number is challenged";
  client.send(0, pattern(0, 5));
  EXPECT_EQ(receiver.streams[0], pattern(0, 5));
  EXPECT_EQ(receiver.view().shared->requests.half_open_count, 0U);
}

// Handshakes that are reset at once leave no state.
TEST(TcpAttack, ResetsFreeTheirPlacesAtOnce) {
  Receiver receiver(config_of(1));
  for (std::uint32_t i = 0; i < 100; ++i) {
    Client churns(receiver, peer_of(i));
    connect(receiver, churns);
    churns.send(0, {}, kRst | kAck);
  }
  EXPECT_EQ(receiver.counters().waited, 0U);
  EXPECT_EQ(receiver.counters().connections_silent, 0U);
  Client honest(receiver, peer_of(200));
  honest.send_syn();
  EXPECT_GT(receiver.answers.at(0).headers.window, 0);
  honest.send(0, pattern(0, 5));
  EXPECT_EQ(receiver.streams[0], pattern(0, 5));
}

}  // namespace
}  // namespace headrace::ingest::testing
