#include "headrace/base/error.hpp"
#include "tests/contract/resident_reception.hpp"

namespace headrace::ingest::testing {
namespace {

using headrace::testing::device_names;
using headrace::testing::DeviceTest;
using headrace::testing::failed_with;
using headrace::testing::test_name;

class IngestResident : public DeviceTest {};
HEADRACE_ON_EVERY_DEVICE(IngestResident);

/// A new connection with its own bytes.
Sender sender(std::uint16_t number, std::size_t bytes, bool timestamps = false) {
  const Peer peer{.version = number % 2 == 0 ? 4U : 6U, .port = static_cast<std::uint16_t>(40000 + number)};
  return {peer, pattern(number * 1'000'003ULL, bytes), 0U - 5000U * number - 1, timestamps};
}

TEST_P(IngestResident, StreamsComeInOrder) {
  Reception reception(device(), Reception::options(), {});
  for (std::uint16_t s = 0; s < 3; ++s) reception.senders.push_back(sender(s, 60'000 + 4096 * s + s, s == 1));
  ASSERT_TRUE(reception.turn_until([&] { return reception.all_ended(); }));
  reception.take_frames();
  for (const Sender& one : reception.senders) EXPECT_TRUE(reception.has(one.data)) << one.port();
  for (const auto& [stream, one] : reception.received) {
    EXPECT_EQ(one.end->kind, StreamEvent::finished);
    EXPECT_EQ(one.end->offset, one.bytes.size());
    EXPECT_TRUE(one.frames->drained());
    EXPECT_EQ(one.frames->counters().with_gaps, 0U);
  }
  ASSERT_TRUE(reception.turn_until([&] { return reception.senders[0].finished(); }));
  ASSERT_TRUE(headrace::testing::eventually([&] { return reception.control->settled(); }));
  ASSERT_OK(reception.control->stop());
  const ResidentCounters& counters = reception.control->counters();
  EXPECT_EQ(counters.tcp.packets, counters.packets);
  EXPECT_EQ(counters.tcp.finished, 3U);
  EXPECT_EQ(counters.replies_lost, 0U);
}

TEST_P(IngestResident, StreamsSurviveABadNetwork) {
  const Faults faults{.loss = 0.03, .duplication = 0.05, .corruption = 0.02, .reordering = 0.2, .loss_sent = 0.03};
  Reception reception(device(), Reception::options(), {.frame_bytes = 5000, .frame_count = 8, .faults = faults});
  for (std::uint16_t s = 0; s < 4; ++s) {
    reception.senders.push_back(sender(s, 100'000, s % 2 == 1));
    reception.senders.back().segment = 300 + 350 * s;
  }
  ASSERT_TRUE(reception.turn_until([&] { return reception.all_ended(); }));
  reception.take_frames();
  for (const Sender& one : reception.senders) EXPECT_TRUE(reception.has(one.data)) << one.port();
  EXPECT_GT(reception.faults().reordered, 10U);
  ASSERT_OK(reception.control->stop());
  const TcpCounters& counters = reception.control->counters().tcp;
  EXPECT_GT(counters.gaps, 0U);
  EXPECT_GT(counters.unparsed[static_cast<std::size_t>(ParseResult::tcp_checksum)], 0U);
  EXPECT_EQ(counters.bytes, 400'000U);
}

// Everything is there before anything is read, so that runs of packets are merged.
TEST_P(IngestResident, ABurstIsAcknowledgedTogether) {
  ResidentOptions options = Reception::options();
  options.packets = 1024;
  Reception reception(device(), options, {.slots = 1024, .frame_bytes = 65536, .frame_count = 4});
  reception.patience = std::chrono::seconds(60);  // every segment is counted
  reception.senders.push_back(sender(0, 0));
  reception.senders[0].held_open = true;
  ASSERT_TRUE(reception.turn_until([&] { return reception.received.size() == 1; }));
  ASSERT_TRUE(reception.turn_until([&] { return reception.ring().released() == reception.ring().published(); }));
  const Bytes data = pattern(7, 131'072);
  std::vector<Packet> packets;
  const Sender& of = reception.senders[0];
  for (std::size_t at = 0; at < data.size(); at += 256) {
    const Bytes bytes =
        tcp_packet({.port = of.port()}, of.at(at, kAck,
                                              Bytes(data.begin() + static_cast<std::ptrdiff_t>(at),
                                                    data.begin() + static_cast<std::ptrdiff_t>(at + 256))));
    const auto position = reception.ring().try_reserve();
    ASSERT_TRUE(position.has_value());
    std::memcpy(reception.ring().slot(*position), bytes.data(), bytes.size());
    const auto offset = static_cast<std::uint64_t>(reception.ring().slot(*position) - reception.ring().buffer().data());
    packets.push_back({.ring_offset = offset, .length = static_cast<std::uint32_t>(bytes.size())});
    reception.ring().publish(*position + 1);
  }
  std::size_t taken = 0;
  ASSERT_TRUE(headrace::testing::eventually([&] {  // by then it has been told of the space
    EXPECT_OK(reception.control->poll());
    return reception.wire().answers.empty();
  }));
  while (taken < packets.size()) {
    const auto posted = reception.control->post(std::span(packets).subspan(taken));
    ASSERT_OK(posted);
    taken += *posted;
  }
  ASSERT_TRUE(reception.turn_until([&] { return reception.received.begin()->second.bytes.size() == data.size(); }));
  EXPECT_EQ(reception.received.begin()->second.bytes, data);
  ASSERT_OK(reception.control->stop());
  const TcpCounters& counters = reception.control->counters().tcp;
  EXPECT_EQ(counters.segments, packets.size() + 2);
  EXPECT_LT(counters.acknowledgements, packets.size() / 4);
}

TEST_P(IngestResident, AConsumerThatStopsClosesTheWindow) {
  Reception reception(device(), Reception::options(), {.frame_count = 3});
  reception.senders.push_back(sender(0, 50'000));
  const Sender& one = reception.senders[0];
  ASSERT_TRUE(reception.turn_until([&] { return one.acknowledged == 3 * 4096; }, false));
  for (int i = 0; i < 100; ++i) reception.turn(false);
  EXPECT_EQ(one.acknowledged, 3U * 4096);
  ASSERT_TRUE(reception.turn_until([&] { return reception.all_ended(); }));
  reception.take_frames();
  EXPECT_TRUE(reception.has(one.data));
  ASSERT_OK(reception.control->stop());
  EXPECT_GT(reception.control->counters().tcp.zero_windows, 0U);
  EXPECT_GT(reception.control->counters().tcp.window_updates, 0U);
}

// What arrived before the end is delivered, and missing bytes are counted.
TEST_P(IngestResident, AResetStreamEndsAsItIs) {
  Reception reception(device(), Reception::options(), {.frame_count = 4});
  reception.senders.push_back(sender(0, 5000));
  reception.senders[0].held_open = true;
  const Sender& one = reception.senders[0];
  ASSERT_TRUE(reception.turn_until([&] { return one.acknowledged == 5000; }, false));
  one.put_on(reception.wire(), one.at(9000, kAck, pattern(0, 500)));  // after a gap
  one.put_on(reception.wire(), one.at(5000, kRst, {}));
  ASSERT_TRUE(reception.turn_until([&] { return reception.all_ended(); }, false));
  reception.take_frames();
  const Reception::Received& got = reception.received.begin()->second;
  EXPECT_EQ(got.end->kind, StreamEvent::reset);
  EXPECT_EQ(got.end->offset, 5000U);
  ASSERT_EQ(got.seen.size(), 3U);
  EXPECT_EQ(got.seen[0].missing_bytes, 0U);
  EXPECT_EQ(got.seen[1].missing_bytes, 4096U - (5000 - 4096));
  EXPECT_EQ(got.seen[2].missing_bytes, 4096U - 500);
  EXPECT_TRUE(std::equal(one.data.begin(), one.data.end(), got.bytes.begin()));
  EXPECT_TRUE(got.frames->drained());
}

TEST_P(IngestResident, AResetStreamMayBeCutBehindWhatCameInOrder) {
  ResidentOptions options = Reception::options();
  options.cut_broken = true;
  Reception reception(device(), options, {.frame_count = 4});
  reception.senders.push_back(sender(0, 5000));
  reception.senders[0].held_open = true;
  const Sender& one = reception.senders[0];
  ASSERT_TRUE(reception.turn_until([&] { return one.acknowledged == 5000; }, false));
  one.put_on(reception.wire(), one.at(6000, kAck, pattern(0, 500)));  // after a gap, in the frame that is cut
  one.put_on(reception.wire(), one.at(9000, kAck, pattern(0, 500)));
  one.put_on(reception.wire(), one.at(5000, kRst, {}));
  ASSERT_TRUE(reception.turn_until([&] { return reception.all_ended(); }, false));
  reception.take_frames();
  const Reception::Received& got = reception.received.begin()->second;
  EXPECT_EQ(got.end->offset, 5000U);
  EXPECT_EQ(got.end->flow.remote_port, one.port());
  EXPECT_EQ(got.bytes, one.data);
  ASSERT_EQ(got.seen.size(), 2U);
  EXPECT_EQ(got.seen[1].missing_bytes, 0U);
  EXPECT_TRUE(got.frames->drained());
}

// More frames than commands have room for.
TEST_P(IngestResident, FramesAreAttachedWhereCommandsHaveNoRoom) {
  Reception reception(device(), Reception::options(), {.streams = 8});
  for (std::uint16_t s = 0; s < 8; ++s) reception.senders.push_back(sender(s, 20'000 + s));
  reception.attach = false;
  ASSERT_TRUE(reception.turn_until([&] { return std::ranges::all_of(reception.senders, &Sender::opened); }));
  for (int i = 0; i < 100; ++i) reception.turn();
  EXPECT_TRUE(reception.received.empty()) << "no stream opens without frames";
  EXPECT_TRUE(std::ranges::all_of(reception.senders, [](const Sender& one) { return one.acknowledged == 0; }));
  reception.attach = true;
  ASSERT_TRUE(reception.turn_until([&] { return reception.all_ended(); }));
  reception.take_frames();
  for (const Sender& one : reception.senders) EXPECT_TRUE(reception.has(one.data)) << one.port();
  ASSERT_TRUE(reception.turn_until([&] { return reception.control->settled(); }));
  EXPECT_EQ(reception.control->room(), Reception::options().packets);
}

TEST_P(IngestResident, ClosesAndAbortsWhenTold) {
  ResidentOptions options = Reception::options();
  options.tcp.close_when_finished = false;
  Reception reception(device(), options, {});
  reception.senders.push_back(sender(0, 100));
  reception.senders.push_back(sender(1, 100));
  for (Sender& one : reception.senders) one.held_open = true;
  ASSERT_TRUE(reception.turn_until([&] { return reception.opened.size() == 2; }));
  const std::vector<Event> opened = reception.opened;
  ASSERT_OK(reception.control->abort(opened[0].connection, opened[0].stream));
  ASSERT_OK(reception.control->close(opened[1].connection, opened[1].stream));
  ASSERT_TRUE(reception.turn_until([&] { return reception.received[opened[0].stream].end.has_value(); }));
  EXPECT_EQ(reception.received[opened[0].stream].end->kind, StreamEvent::reset);
  ASSERT_TRUE(reception.turn_until([&] {
    return std::ranges::count(reception.senders, true, &Sender::reset) == 1 &&
           reception.received[opened[1].stream].bytes.size() == 0;
  }));
}

// Connections come and go, more than there are places for at once.
TEST_P(IngestResident, PlacesAreUsedAgain) {
  ResidentOptions options = Reception::options();
  options.connections = 2;
  Reception reception(device(), options, {.streams = 6});
  for (std::uint16_t s = 0; s < 6; ++s) {
    reception.senders.push_back(sender(s, 9000 + 100 * s));
    ASSERT_TRUE(reception.turn_until([&] { return reception.all_ended() && reception.senders.back().finished(); }));
    reception.take_frames();
    EXPECT_TRUE(reception.has(reception.senders.back().data)) << s;
  }
}

// The recorded property is the longest stop: 100 ms are promised on a machine with spare processors.
TEST_P(IngestResident, StopsWithEverythingUnderWay) {
  std::chrono::nanoseconds longest{};
  for (int turns = 1; turns < 400; turns *= 3) {
    Reception reception(device(), Reception::options(), {.frame_count = 8, .faults = {.loss = 0.02}});
    for (std::uint16_t s = 0; s < 3; ++s) reception.senders.push_back(sender(s, 1 << 20));
    for (int i = 0; i < turns; ++i) reception.turn();
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_OK(reception.control->stop());
    longest = std::max(longest, std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin));
    ASSERT_OK(reception.control->stop());
    reception.take_frames();
    for (const auto& received : reception.received) {
      const auto& one = received.second;
      const bool known = std::ranges::any_of(reception.senders, [&](const Sender& of) {
        return one.bytes.size() <= of.data.size() && std::equal(one.bytes.begin(), one.bytes.end(), of.data.begin());
      });
      EXPECT_TRUE(known);
    }
  }
  RecordProperty("longest_stop_us", std::to_string(longest.count() / 1000));
}

// The host takes no replies and events until everything has stopped; then everything resumes.
TEST_P(IngestResident, GoesOnAfterEveryRingWasFull) {
  Reception reception(device(), Reception::options(), {.slots = 1024});
  ResidentControl& control = *reception.control;
  std::uint64_t now = 1'000'000 * kSecond;
  control.set_time(now);
  std::size_t posted = 0;
  std::size_t refused = 0;
  std::size_t made = 0;
  Packet packet;
  // Each belongs to a separate short connection: two replies and, with the RST, two events.
  const auto next = [&] {
    const auto position = reception.ring().try_reserve();
    if (!position) return false;
    const Peer peer{.port = static_cast<std::uint16_t>(1000 + made)};
    const Bytes bytes = tcp_packet(peer, {.sequence = 1, .acknowledgement = 99, .flags = kAck});  // answered by RST
    std::memcpy(reception.ring().slot(*position), bytes.data(), bytes.size());
    packet = {
        .ring_offset = static_cast<std::uint64_t>(reception.ring().slot(*position) - reception.ring().buffer().data()),
        .length = static_cast<std::uint32_t>(bytes.size())};
    reception.ring().publish(*position + 1);
    ++made;
    return true;
  };
  while (refused < 20'000 && next()) {
    while (true) {
      const auto taken = control.post({&packet, 1});
      ASSERT_OK(taken);
      posted += *taken;
      if (*taken == 1 || ++refused >= 20'000) break;
      ASSERT_OK(control.poll());
      std::this_thread::yield();
    }
  }
  EXPECT_GE(posted, 256U);
  std::size_t commands = 0;
  while (commands < 10 && control.close(0, 0).ok()) ++commands;
  EXPECT_LT(commands, 10U);
  EXPECT_TRUE(failed_with(control.close(0, 0), Errc::full));
  std::size_t replies = 0;
  ASSERT_TRUE(headrace::testing::eventually([&] {
    while (control.next_reply()) ++replies;
    EXPECT_OK(control.poll());
    now += kSecond / 100;
    control.set_time(now);
    return control.copied() == posted && control.close(0, 0).ok();
  }));
  ASSERT_OK(control.stop());
  while (control.next_reply()) ++replies;
  EXPECT_EQ(control.counters().tcp.resets_sent, replies);
  EXPECT_EQ(control.counters().tcp.packets, posted);
  EXPECT_GE(replies, 256U);
}

TEST_P(IngestResident, AWaitThatIsTooLongEndsTheKernel) {
  ResidentOptions options = Reception::options();
  options.wait_limit = std::chrono::seconds(1);
  Reception reception(device(), options, {.slots = 1024});
  ResidentControl& control = *reception.control;
  Status polled;
  ASSERT_TRUE(headrace::testing::eventually([&] {
    const auto position = reception.ring().try_reserve();
    if (position && control.room() != 0) {
      const Bytes bytes = tcp_packet({}, {.sequence = 1, .acknowledgement = 99, .flags = kAck});
      std::memcpy(reception.ring().slot(*position), bytes.data(), bytes.size());
      const auto offset =
          static_cast<std::uint64_t>(reception.ring().slot(*position) - reception.ring().buffer().data());
      const Packet packet{.ring_offset = offset, .length = static_cast<std::uint32_t>(bytes.size())};
      EXPECT_OK(control.post({&packet, 1}));
      reception.ring().publish(*position + 1);
      reception.ring().release(control.copied());
    }
    polled = control.poll();
    return !polled;
  }));
  EXPECT_TRUE(failed_with(polled, Errc::hung));
  EXPECT_THAT(control.failure(), ::testing::HasSubstr("the host took no replies"));
}

TEST_P(IngestResident, GarbageIsCountedAndHarmless) {
  Reception reception(device(), Reception::options(), {});
  std::mt19937 random(9);
  reception.senders.push_back(sender(0, 50'000));
  for (std::uint64_t i = 0; i < 1000; ++i) {
    Bytes bytes = i % 2 == 0 ? headrace::testing::random_bytes(random() % 200, i)
                             : tcp_packet({}, {.sequence = static_cast<std::uint32_t>(random()),
                                               .flags = static_cast<std::uint8_t>(random()),
                                               .payload = pattern(0, random() % 100)});
    if (i % 3 == 0 && !bytes.empty()) bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    if (i % 7 == 0) bytes = udp_packet({}, pattern(0, 50));
    reception.wire().coming.push_back(bytes);
    if (i % 10 == 0) reception.turn();
  }
  const Sender& one = reception.senders[0];
  ASSERT_TRUE(reception.turn_until([&] { return one.finished(); }));
  reception.take_frames();
  EXPECT_TRUE(reception.has(one.data));
  ASSERT_OK(reception.control->stop());
  EXPECT_GT(reception.control->counters().tcp.not_tcp, 0U);
  EXPECT_GT(reception.control->counters().tcp.unparsed[static_cast<std::size_t>(ParseResult::truncated)], 0U);
}

TEST_P(IngestResident, RefusesWhatCannotBe) {
  const Ring ring(device(), MemoryKind::mapped, 2048, 16);
  const auto refused = [&](auto change, Layer layer = Layer::ip) {
    ResidentOptions options = Reception::options();
    change(options);
    EXPECT_THROW(ResidentControl(device(), ring.buffer(), layer, options), UsageError);
  };
  refused([](ResidentOptions& options) { options.tcp.initial_limit = 0; });
  refused([](ResidentOptions& options) { options.tcp.initial_streams = 1; });
  refused([](ResidentOptions& options) { options.tcp.mtu = 1; });
  refused([](ResidentOptions& options) { options.connections = 0; });
  refused([](ResidentOptions& options) { options.frames_max = 1; });
  refused([](ResidentOptions& options) { options.packets = 300; });
  refused([](ResidentOptions& options) { options.packets = 128; });
  refused([](ResidentOptions& options) { options.parts = 4096; });
  refused([](ResidentOptions& options) { options.replies = 128; });
  refused([](ResidentOptions& options) { options.events = 128; });
  refused([](ResidentOptions& options) { options.commands = 2; });
  refused([](ResidentOptions& options) { options.build_blocks = 1U << 20; });
  refused([](ResidentOptions& options) { options.wait_limit = Duration::zero(); });
  refused([](ResidentOptions&) {}, Layer::payload);
  const Buffer odd(device(), MemoryKind::mapped, 100);
  EXPECT_THROW(ResidentControl(device(), odd, Layer::ip, Reception::options()), UsageError);

  FrameRing small(device(), {.frame_bytes = 2048});
  FrameRing many(device(), {.frame_bytes = 4096, .frame_count = 64});
  FrameRing converted(device(), {.frame_bytes = 4096, .conversion = Conversion::swap2});
  FrameRing right(device(), {.frame_bytes = 4096});
  FrameRing other(device(), {.frame_bytes = 4096});
  ResidentOptions options = Reception::options();
  options.connections = 2;
  options.tcp.initial_limit = 4 * 4096;
  ResidentControl control(device(), ring.buffer(), Layer::ip, options);
  FrameRing too_few(device(), {.frame_bytes = 4096, .frame_count = 3});
  EXPECT_THROW(control.attach(small), UsageError);
  EXPECT_THROW(control.attach(many), UsageError);
  EXPECT_THROW(control.attach(converted), UsageError);
  EXPECT_THROW(control.attach(too_few), UsageError);
  EXPECT_EQ(control.attach(right), 0U);
  EXPECT_EQ(control.attach(other), 1U);
  FrameRing third(device(), {.frame_bytes = 4096});
  EXPECT_THROW(control.attach(third), UsageError) << "more rings than connections";
  const Packet outside{.ring_offset = ring.buffer().bytes() - 10, .length = 11};
  EXPECT_TRUE(failed_with(control.post({&outside, 1}), Errc::invalid_argument));
  const Packet giant{.length = 70'000};
  EXPECT_TRUE(failed_with(control.post({&giant, 1}), Errc::invalid_argument));
  EXPECT_EQ(control.counters().packets, 0U);
}

}  // namespace
}  // namespace headrace::ingest::testing
