#include <algorithm>
#include <vector>

#include "tests/ingest_peer.hpp"

/// Connections without a stream: what the receiver acknowledges, which connections get a place, and how long they may
/// be silent.
namespace headrace::ingest::testing {
namespace {

Peer peer_of(std::uint32_t i) { return {.port = static_cast<std::uint16_t>(1024 + i)}; }

/// Streams open with their first byte.
TcpConfig config_of(std::uint32_t streams) {
  TcpConfig config = test_config();
  config.open_at_first_byte = true;
  config.initial_streams = streams;
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

TEST(TcpWait, AStreamOpensWithItsFirstByteOrFin) {
  Receiver receiver(config_of(8));
  Client speaks(receiver, peer_of(1));
  Client ends(receiver, peer_of(2));
  connect(receiver, speaks);
  connect(receiver, ends);
  EXPECT_EQ(receiver.counters().connections, 2U);
  EXPECT_EQ(receiver.counters().opened, 0U);
  EXPECT_EQ(receiver.counters().connections_silent, 2U);
  ends.send(0, {}, kAck | kFin);
  ASSERT_EQ(receiver.events.size(), 2U);
  EXPECT_EQ(receiver.events[0].kind, StreamEvent::opened);
  EXPECT_EQ(receiver.events[1].kind, StreamEvent::finished);
  speaks.send(0, pattern(0, 10));
  ASSERT_EQ(receiver.events.size(), 1U);
  EXPECT_EQ(receiver.events[0].stream, 1U);
  EXPECT_EQ(receiver.streams[1], pattern(0, 10));
  EXPECT_EQ(receiver.counters().connections_silent, 0U);
}

TEST(TcpWait, NothingIsAcknowledgedWithoutAPlace) {
  Receiver receiver(config_of(1));
  Client first(receiver, peer_of(1));
  Client second(receiver, peer_of(2));
  connect(receiver, first);
  second.send_syn();
  EXPECT_EQ(receiver.answers.at(0).headers.window, 0) << "the place is kept for the first";
  second.send(0, {});
  first.send(0, pattern(0, 10));
  ASSERT_EQ(receiver.events.size(), 1U);
  for (const std::uint8_t flags : {std::uint8_t{kAck}, std::uint8_t{kAck | kFin}}) {
    second.send(0, pattern(0, 5), flags);
    EXPECT_TRUE(receiver.events.empty());
    EXPECT_TRUE(receiver.pieces.empty());
    ASSERT_EQ(receiver.answers.size(), 1U);
    EXPECT_EQ(second.offset(receiver.answers[0].acknowledgement()), 0);
    EXPECT_EQ(receiver.answers[0].headers.window, 0);
  }
  EXPECT_EQ(receiver.counters().connections_waiting, 1U);
  EXPECT_EQ(receiver.counters().waited, 1U);
  receiver.set_streams_limit(2);
  ASSERT_EQ(receiver.answers.size(), 1U) << "it may send now";
  EXPECT_GT(receiver.answers[0].headers.window, 0);
  second.send(0, pattern(0, 5), kAck | kFin);
  EXPECT_EQ(receiver.events.size(), 2U);
  EXPECT_EQ(receiver.streams[1], pattern(0, 5));
}

// Places that can be made on demand do not count as free, but they open windows for connections.
TEST(TcpWait, PlacesThatCanBeMadeOpenWindowsOnly) {
  Receiver receiver(config_of(0));
  Client client(receiver, peer_of(1));
  receiver.set_streams_limit(0, 1);
  client.send_syn();
  EXPECT_GT(receiver.answers.at(0).headers.window, 0);
  client.send(0, {});
  client.send(0, pattern(0, 5));
  EXPECT_TRUE(receiver.events.empty());
  EXPECT_EQ(client.offset(receiver.answers.at(0).acknowledgement()), 0);
  receiver.set_streams_limit(1);
  client.send(0, pattern(0, 5));
  EXPECT_EQ(receiver.streams[0], pattern(0, 5));
}

TEST(TcpWait, WhoeverCameFirstIsInvitedFirst) {
  constexpr std::uint32_t kWaiting = 5;
  Receiver receiver(config_of(0));
  std::vector<Client> clients;
  for (std::uint32_t i = 0; i < kWaiting; ++i) {
    clients.emplace_back(receiver, peer_of(i));
    connect(receiver, clients.back());
  }
  for (std::uint32_t i = 0; i < kWaiting; ++i) {
    receiver.set_streams_limit(i + 1);
    ASSERT_EQ(receiver.answers.size(), 1U);
    EXPECT_EQ(receiver.answers[0].headers.flow.local_port, clients[i].peer().port);
    clients[i].send(0, pattern(i, 5));
    EXPECT_EQ(receiver.events.size(), 1U);
  }
}

// A place is kept for the invited connection, but not for long.
TEST(TcpWait, AnInvitationEnds) {
  Receiver receiver(config_of(1));
  Client silent(receiver, peer_of(1));
  Client waits(receiver, peer_of(2));
  connect(receiver, silent);
  connect(receiver, waits);
  waits.send(0, pattern(0, 5));
  EXPECT_TRUE(receiver.events.empty());
  receiver.now += 250 * kMs;
  EXPECT_LE(receiver.next_deadline(), receiver.now);
  receiver.tick();
  ASSERT_EQ(receiver.answers.size(), 1U);
  EXPECT_EQ(receiver.answers[0].headers.flow.local_port, waits.peer().port);
  waits.send(0, pattern(0, 5));
  EXPECT_EQ(receiver.events.size(), 1U);
  silent.send(0, pattern(0, 5));
  EXPECT_TRUE(receiver.events.empty()) << "it arrived too late, and waits";
  receiver.set_streams_limit(2);
  silent.send(0, pattern(0, 5));
  EXPECT_EQ(receiver.events.size(), 1U);
}

// A nearby peer with something to say says it soon: its place is not kept for a round trip around the Earth.
TEST(TcpWait, AnInvitationIsAsLongAsTheRoundTripNeeds) {
  for (const std::uint64_t round_trip : {1 * kMs, 40 * kMs}) {
    Receiver receiver(config_of(1));
    Client silent(receiver, peer_of(1));
    Client waits(receiver, peer_of(2));
    silent.send_syn();
    receiver.now += round_trip;
    silent.send(0, {});
    connect(receiver, waits);
    receiver.now += 4 * round_trip + 49 * kMs;
    receiver.tick();
    EXPECT_TRUE(receiver.answers.empty()) << "its place is still kept";
    receiver.now += 2 * kMs;
    receiver.tick();
    ASSERT_EQ(receiver.answers.size(), 1U);
    EXPECT_EQ(receiver.answers[0].headers.flow.local_port, waits.peer().port);
  }
}

// A window opened in the handshake stays open, although silent connections have been invited meanwhile.
TEST(TcpWait, OneThatWasLetSendGoesBeforeThoseThatAreSilent) {
  constexpr std::uint32_t kPlaces = 2;
  Receiver receiver(config_of(kPlaces));
  Client far(receiver, peer_of(1));
  far.send_syn();
  EXPECT_GT(receiver.answers.at(0).headers.window, 0);
  for (std::uint32_t i = 0; i < kPlaces; ++i) {
    Client silent(receiver, peer_of(2 + i));
    connect(receiver, silent);
  }
  receiver.now += 40 * kMs;
  far.send(0, {});
  far.send(0, pattern(0, 5));
  EXPECT_EQ(receiver.streams[0], pattern(0, 5));
}

// If invited connections take no place, the receiver expects more of that kind, so that a peer that speaks finds a
// place however many are silent.
TEST(TcpWait, WhereMostAreSilentOneThatSpeaksDoesNotWait) {
  constexpr std::uint32_t kPlaces = 8;
  TcpConfig config = config_of(kPlaces);
  config.backlog = 1024;
  Receiver receiver(config);
  std::uint32_t port = 0;
  const auto stay_silent = [&](std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      Client silent(receiver, peer_of(port++));
      connect(receiver, silent);
    }
  };
  for (int i = 0; i < 10; ++i) {
    stay_silent(2 * kPlaces);
    receiver.now += 250 * kMs;
    receiver.tick();
    receiver.tick();
  }
  const std::uint64_t waited = receiver.counters().waited;
  for (std::uint32_t i = 0; i < kPlaces; ++i) {
    stay_silent(2 * kPlaces);
    Client speaks(receiver, peer_of(port++));
    speaks.send_syn();
    EXPECT_GT(receiver.answers.at(0).headers.window, 0) << i;
    speaks.send(0, pattern(i, 5), kAck | kFin);
    EXPECT_EQ(receiver.streams[i], pattern(i, 5));
  }
  EXPECT_EQ(receiver.counters().waited, waited);
}

// Silent connections that were reset come again. Clients that speak in between do not make the receiver forget them.
TEST(TcpWait, ASecondBurstOfSilentConnectionsKeepsNobodyOut) {
  constexpr std::uint32_t kPlaces = 8;
  Receiver receiver(config_of(kPlaces));
  std::uint32_t port = 0;
  const auto stay_silent = [&] {
    for (std::uint32_t i = 0; i < kPlaces; ++i) {
      Client silent(receiver, peer_of(port++));
      connect(receiver, silent);
    }
  };
  stay_silent();
  receiver.now += 250 * kMs;
  receiver.tick();
  for (std::uint32_t i = 0; i < kPlaces; ++i) {
    Client speaks(receiver, peer_of(port++));
    connect(receiver, speaks);
    speaks.send(0, pattern(i, 5), kAck | kFin);
  }
  receiver.set_streams_limit(2 * kPlaces);
  stay_silent();
  Client speaks(receiver, peer_of(port++));
  speaks.send_syn();
  EXPECT_GT(receiver.answers.at(0).headers.window, 0);
  speaks.send(0, pattern(9, 5), kAck | kFin);
  EXPECT_EQ(receiver.streams[kPlaces], pattern(9, 5));
}

// The receiver notices at once that it has opened windows for too many; soon it drops no peer's bytes any more.
TEST(TcpWait, OnceTheSilentHaveGonePlacesAreKeptAgain) {
  constexpr std::uint32_t kPlaces = 4;
  constexpr std::uint32_t kSilent = 64;
  TcpConfig config = config_of(kPlaces);
  config.backlog = 1024;
  Receiver receiver(config);
  std::uint32_t port = 0;
  for (std::uint32_t i = 0; i < kSilent; ++i) {
    Client silent(receiver, peer_of(port++));
    connect(receiver, silent);
    receiver.now += 250 * kMs;
    receiver.tick();
  }
  std::vector<Client> clients;
  for (std::uint32_t i = 0; i < kSilent; ++i) connect(receiver, clients.emplace_back(receiver, peer_of(port++)));
  for (Client& client : clients) client.send(0, pattern(0, 5), kAck | kFin);
  EXPECT_EQ(receiver.counters().opened, kPlaces);
  const std::uint64_t waited = receiver.counters().waited;
  for (std::uint32_t i = 0; i < kSilent; ++i) {
    Client later(receiver, peer_of(port++));
    later.send_syn();
    EXPECT_EQ(receiver.answers.at(0).headers.window, 0) << "its window tells it to wait, and no byte is dropped";
    later.send(0, {});
  }
  EXPECT_EQ(receiver.counters().waited, waited + kSilent);
  receiver.set_streams_limit(kPlaces + 1);
  EXPECT_EQ(receiver.counters().window_updates, 1U) << "one place is for a waiting connection";
}

TEST(TcpWait, SilentConnectionsAreResetInTime) {
  TcpConfig config = config_of(4);
  config.first_byte_max = 3 * kSecond;
  Receiver receiver(config);
  Client client(receiver, peer_of(1));
  connect(receiver, client);
  const std::uint64_t latest = receiver.now + 250 * kMs + config.first_byte_max;
  while (receiver.next_deadline() <= latest) {
    receiver.now = receiver.next_deadline();
    receiver.tick();
    if (!receiver.answers.empty()) break;
  }
  ASSERT_EQ(receiver.answers.size(), 1U);
  EXPECT_TRUE(receiver.answers[0].is(kRst | kAck));
  EXPECT_EQ(receiver.answers[0].sequence(), client.acknowledgement);
  EXPECT_EQ(receiver.counters().silent_timed_out, 1U);
  EXPECT_EQ(receiver.next_deadline(), kNever);
  EXPECT_TRUE(receiver.all_events.empty());
}

// The receiver never resets a sender for waiting for a place.
TEST(TcpWait, ThoseThatWaitDoNotTimeOut) {
  TcpConfig config = config_of(0);
  config.first_byte_max = kSecond;
  Receiver receiver(config);
  Client client(receiver, peer_of(1));
  connect(receiver, client);
  for (int i = 0; i < 100; ++i) {
    receiver.now += 10 * kSecond;
    receiver.tick();
    EXPECT_TRUE(receiver.answers.empty());
    client.send(-1, {});  // a probe of the closed window
    ASSERT_EQ(receiver.answers.size(), 1U);
    EXPECT_EQ(receiver.answers[0].headers.window, 0);
  }
  receiver.set_streams_limit(1);
  client.send(0, pattern(0, 5));
  EXPECT_EQ(receiver.streams[0], pattern(0, 5));
}

TEST(TcpWait, AFullBacklogLeavesSynsUnanswered) {
  TcpConfig config = config_of(0);
  config.backlog = 3;
  Receiver receiver(config);
  std::vector<Client> clients;
  for (std::uint32_t i = 0; i < 4; ++i) clients.emplace_back(receiver, peer_of(i));
  for (std::uint32_t i = 0; i < 3; ++i) connect(receiver, clients[i]);
  clients[3].send_syn();
  EXPECT_TRUE(receiver.answers.empty());
  EXPECT_EQ(receiver.counters().syns_unanswered, 1U);
  receiver.set_streams_limit(1);
  clients[0].send(0, pattern(0, 5), kAck | kFin);
  connect(receiver, clients[3]);  // a new attempt
  EXPECT_EQ(receiver.counters().resets_sent, 0U);
}

// The backlog may be full of connections with nothing to say: they give way to newer ones after a while.
TEST(TcpWait, SilentConnectionsGiveWayWhereTheBacklogIsFull) {
  TcpConfig config = config_of(1);
  config.backlog = 3;
  Receiver receiver(config);
  std::vector<Client> clients;
  for (std::uint32_t i = 0; i < 4; ++i) clients.emplace_back(receiver, peer_of(i));
  for (std::uint32_t i = 0; i < 3; ++i) {
    connect(receiver, clients[i]);
    receiver.now += kSecond;
    receiver.tick();
  }
  receiver.now += 5 * kSecond;
  clients[3].send_syn();
  ASSERT_EQ(receiver.answers.size(), 2U);
  EXPECT_TRUE(receiver.answers[0].is(kRst | kAck));
  EXPECT_EQ(receiver.answers[0].headers.flow.local_port, clients[0].peer().port);
  EXPECT_TRUE(receiver.answers[1].is(kSyn | kAck));
}

// A host that cannot see the answers cannot keep a connection from timing out.
TEST(TcpWait, OnlyAcceptableSegmentsAreHeard) {
  TcpConfig config = test_config();
  config.idle_max = 10 * kSecond;
  Receiver receiver(config);
  Client client(receiver);
  client.open();
  const std::uint32_t acknowledgement = client.acknowledgement;
  for (int i = 0; i < 9; ++i) {
    receiver.now += kSecond;
    client.acknowledgement = acknowledgement + 1'000'000;
    client.send(0, {});
    client.send(-100'000, {});
    client.acknowledgement = acknowledgement - 1'000'000;
    client.send(1 << 28, pattern(0, 5));
    client.acknowledgement = acknowledgement;
    client.send(1 << 28, {}, kRst);
    receiver.tick();
  }
  EXPECT_EQ(receiver.all_events.size(), 1U);
  receiver.now += kSecond;
  receiver.tick();
  ASSERT_EQ(receiver.events.size(), 1U);
  EXPECT_EQ(receiver.events[0].kind, StreamEvent::timed_out);
}

// If streams open with the handshake, one that had to wait for its place opens by itself, and may be silent from then
// on.
TEST(TcpWait, AStreamThatOpensWhenAPlaceIsFreeTimesOutAsWell) {
  TcpConfig config = config_of(0);
  config.open_at_first_byte = false;
  config.idle_max = 10 * kSecond;
  Receiver receiver(config);
  Client client(receiver);
  client.send_syn();
  client.send(0, {});
  EXPECT_TRUE(receiver.events.empty());
  receiver.set_streams_limit(1);
  ASSERT_EQ(receiver.events.size(), 1U);
  EXPECT_EQ(receiver.next_deadline(), receiver.now + config.idle_max);
  receiver.now += config.idle_max;
  receiver.tick();
  ASSERT_EQ(receiver.events.size(), 1U);
  EXPECT_EQ(receiver.events[0].kind, StreamEvent::timed_out);
}

TEST(TcpWait, ProbesAreHeardAndAClosedWindowIsNoSilence) {
  TcpConfig config = test_config(100);
  config.idle_max = 10 * kSecond;
  Receiver receiver(config);
  Client client(receiver);
  client.open();
  for (int i = 0; i < 5; ++i) {
    receiver.now += 9 * kSecond;
    client.send(-1, {});
    receiver.tick();
  }
  client.send(0, pattern(0, 100));
  receiver.now += 1000 * kSecond;
  receiver.tick();
  EXPECT_EQ(receiver.all_events.size(), 1U) << "this side keeps the window closed";
  receiver.set_limit(200);
  receiver.now += 10 * kSecond;
  receiver.tick();
  ASSERT_EQ(receiver.events.size(), 1U);
  EXPECT_EQ(receiver.events[0].kind, StreamEvent::timed_out);
}

// CVE-2016-5696: an attacker who provokes resets of another connection cannot detect it from his own.
TEST(TcpWait, ResetsToOnePeerTellNothingOfThoseToAnother) {
  TcpConfig config = test_config();
  config.resets_per_second = 40;
  Receiver receiver(config);
  const auto resets = [&](std::uint8_t host, int segments) {
    std::size_t got = 0;
    for (int i = 0; i < segments; ++i) {
      receiver.arrive(tcp_packet({.host = host}, {.acknowledgement = 99, .flags = kAck}));
      got += receiver.answers.size();
    }
    return got;
  };
  std::vector<std::size_t> limits;
  for (int second = 0; second < 20; ++second, receiver.now += kSecond) {
    const std::size_t victim = resets(1, 1000);
    EXPECT_GE(victim, 20U);
    EXPECT_LE(victim, 40U);
    EXPECT_EQ(resets(2, 10), 10U);
    limits.push_back(victim);
  }
  EXPECT_NE(std::ranges::min(limits), std::ranges::max(limits)) << "the limit differs from second to second";
}

// 3,000 SYNs a second with a round trip of 50 ms are 150 at a time; this test has 1,000.
TEST(TcpWait, AFloodLeavesTimeForARoundTrip) {
  TcpConfig config = config_of(2);
  config.half_open_max = 1024;
  Receiver receiver(config, 2);
  Client honest(receiver, peer_of(1));
  honest.send_syn();
  for (std::uint32_t i = 0; i < 1000; ++i) Client(receiver, peer_of(100 + i)).send_syn();
  honest.send(0, {});
  honest.send(0, pattern(0, 10));
  EXPECT_EQ(receiver.counters().opened, 1U);
  EXPECT_EQ(receiver.counters().resets_sent, 0U);
  EXPECT_EQ(receiver.streams[0], pattern(0, 10));
}

}  // namespace
}  // namespace headrace::ingest::testing
