#include "tests/contract/devices.hpp"
#include "tests/contract/ingest_kernels.hpp"
#include "tests/ingest_sender.hpp"

#include "headrace/ingest/detail/framing.hpp"

namespace headrace::ingest::testing {
namespace {

using headrace::testing::device_names;
using headrace::testing::DeviceTest;
using headrace::testing::test_name;

class IngestTest : public DeviceTest {
 protected:
  template <class T>
  [[nodiscard]] static Buffer shared_with_device(const std::vector<T>& values) {
    Buffer buffer(device(), MemoryKind::mapped, std::max<std::size_t>(1, values.size()) * sizeof(T));
    if (!values.empty()) std::memcpy(buffer.data(), values.data(), values.size() * sizeof(T));
    return buffer;
  }
  template <class T>
  [[nodiscard]] static std::vector<T> first(const Buffer& buffer, std::size_t count) {
    std::vector<T> values(count);
    if (count > 0) std::memcpy(static_cast<void*>(values.data()), buffer.data(), count * sizeof(T));
    return values;
  }
  /// State that the device works on is in its own memory.
  [[nodiscard]] static Buffer on_device(const std::vector<std::uint64_t>& memory) {
    Stream stream(device());
    const Buffer host = shared_with_device(memory);
    Buffer buffer(device(), MemoryKind::device, host.bytes());
    EXPECT_TRUE(stream.copy(buffer.data(), host.data(), host.bytes()).ok());
    EXPECT_TRUE(stream.wait().ok());
    return buffer;
  }

  /// Repeats the steps of `receiver` on the device, and compares all results.
  static void repeat(const Receiver& receiver, const TcpConfig& config, std::uint32_t connections) {
    constexpr std::uint32_t kRoom = 512;
    std::vector<std::uint64_t> memory(tcp_state_bytes(connections, config) / 8);
    make_tcp_state(memory.data(), connections, config);
    const Buffer state = on_device(memory);
    const Buffer ring = shared_with_device(receiver.ring());
    const Buffer steps = shared_with_device(receiver.steps);
    Buffer pieces(device(), MemoryKind::mapped, (receiver.all_pieces.size() + kRoom) * sizeof(Piece));
    Buffer replies(device(), MemoryKind::mapped, (receiver.all_replies.size() + kRoom) * sizeof(Reply));
    Buffer events(device(), MemoryKind::mapped, (receiver.all_events.size() + kRoom) * sizeof(Event));
    const Buffer output = shared_with_device(std::vector<Output>{
        {.pieces = pieces.as<Piece>(), .replies = replies.as<Reply>(), .events = events.as<Event>()}});
    Buffer after(device(), MemoryKind::mapped, receiver.steps.size() * sizeof(Filled));
    const auto count = static_cast<std::uint32_t>(receiver.steps.size());
    Stream stream(device());
    ASSERT_OK(launch(stream, tcp_steps_kernel(), {.threads = 32}, tcp_view(state.data(), connections, config),
                     static_cast<const std::byte*>(ring.data()), static_cast<const Step*>(steps.as<Step>()), count,
                     output.as<Output>(), after.as<Filled>()));
    ASSERT_OK(stream.wait());
    const Output& filled = *output.as<Output>();
    ASSERT_EQ(filled.piece_count, receiver.all_pieces.size());
    ASSERT_EQ(filled.reply_count, receiver.all_replies.size());
    ASSERT_EQ(filled.event_count, receiver.all_events.size());
    for (std::size_t i = 0; i < filled.piece_count; ++i) {
      const Piece& here = receiver.all_pieces[i];
      const Piece& there = pieces.as<Piece>()[i];
      ASSERT_TRUE(here.ring_offset == there.ring_offset && here.stream_offset == there.stream_offset &&
                  here.length == there.length && here.stream == there.stream)
          << i;
    }
    for (std::size_t i = 0; i < filled.reply_count; ++i) {
      const Reply& here = receiver.all_replies[i];
      const Reply& there = replies.as<Reply>()[i];
      ASSERT_EQ(here.length, there.length) << i;
      ASSERT_EQ(std::memcmp(here.bytes, there.bytes, here.length), 0) << i;
    }
    for (std::size_t i = 0; i < filled.event_count; ++i) {
      const Event& here = receiver.all_events[i];
      const Event& there = events.as<Event>()[i];
      ASSERT_TRUE(here.kind == there.kind && here.offset == there.offset && here.stream == there.stream) << i;
    }
    TcpShared shared;
    Buffer back(device(), MemoryKind::mapped, sizeof(shared));
    ASSERT_OK(stream.copy(back.data(), state.data(), sizeof(shared)));
    ASSERT_OK(stream.wait());
    std::memcpy(static_cast<void*>(&shared), back.data(), sizeof(shared));
    EXPECT_EQ(std::memcmp(&shared.counters, &receiver.counters(), sizeof(TcpCounters)), 0);
  }
};
HEADRACE_ON_EVERY_DEVICE(IngestTest);

// Arbitrary segments: the device gives the same results as the host, which is compared with a plain map.
TEST_P(IngestTest, TcpAnswersAsOnTheHost) {
  for (std::uint32_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    TcpConfig config = test_config(5000);
    config.challenges_per_second = 1'000'000;
    Receiver receiver(config);
    Opening opening{.initial = 0U - 5000 * seed - 1, .sack = seed % 3 != 1};
    if (seed % 2 == 1) opening.timestamp = 0U - seed * 20;
    const Weather weather{.lost = 5 * seed, .doubled = 10, .overtaken = 50, .corrupted = 5, .stray = 10, .said = seed};
    ArbitrarySender(receiver, seed, weather, 30'000, opening, {.version = seed % 2 == 0 ? 4U : 6U}).run();
    if (HasFatalFailure()) return;
    repeat(receiver, config, 8);
    if (HasFatalFailure()) return;
  }
}

TEST_P(IngestTest, ManyConnectionsOpenAndEndAsOnTheHost) {
  TcpConfig config = test_config();
  config.half_open_max = 20;
  config.idle_max = 20 * kSecond;
  Receiver receiver(config, 32);
  std::mt19937 random(5);
  std::vector<Client> clients;
  for (std::uint32_t i = 0; i < 400; ++i) {
    clients.emplace_back(receiver, Peer{.version = i % 2 == 0 ? 4U : 6U, .port = static_cast<std::uint16_t>(1000 + i)});
    Client& client = clients.back();
    client.send_syn();
    if (i % 3 == 0) continue;  // a flood
    client.send(0, pattern(0, 100));
    Client& other = clients[random() % clients.size()];
    other.send(static_cast<std::int64_t>(random() % 300), pattern(0, 50), i % 5 == 0 ? kAck | kFin : kAck);
    if (i % 7 == 0) receiver.set_limit(2 << 20);
    if (i % 11 == 0) receiver.close();
    if (i % 13 == 0) receiver.abort();
    receiver.now += random() % (2 * kSecond);
    receiver.pieces_max = 1 + static_cast<std::uint32_t>(random() % 4);
    receiver.replies_max = 1 + static_cast<std::uint32_t>(random() % 5);
    receiver.tick();
  }
  EXPECT_GT(receiver.counters().opened, 100U);
  EXPECT_GT(receiver.counters().timed_out, 0U);
  EXPECT_GT(receiver.counters().no_room, 0U);
  repeat(receiver, config, 32);
}

// Bytes that are not packets, or almost.
TEST_P(IngestTest, GarbageIsCountedAsOnTheHost) {
  std::mt19937 random(9);
  Receiver receiver(test_config());
  Client client(receiver);
  client.open();
  for (int i = 0; i < 2000; ++i) {
    Bytes bytes = i % 2 == 0
                      ? headrace::testing::random_bytes(random() % 200, static_cast<std::uint64_t>(i))
                      : tcp_packet({}, client.segment(static_cast<std::int64_t>(random() % 1000),
                                                      pattern(0, random() % 50), static_cast<std::uint8_t>(random())));
    for (std::uint64_t c = random() % 3; c > 0 && !bytes.empty(); --c) {
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    }
    receiver.arrive(bytes, {.checksum_verified = true});
  }
  repeat(receiver, test_config(), 8);
}

TEST_P(IngestTest, DatagramsArePlacedAsOnTheHost) {
  DatagramConfig config;
  config.number_width = 4;
  config.payload_bytes = 16;
  config.frame_packets = 70;
  config.window_frames = 3;
  config.timeout = 100'000;
  std::mt19937 random(3);
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    if (random() % 10 != 0) numbers.push_back(i + 0xFFFFFC00 + (i > 2000 ? 1000 : 0));
    if (random() % 10 == 0) numbers.push_back(i + 0xFFFFFC00);
  }
  for (std::size_t i = 1; i < numbers.size(); ++i)
    std::swap(numbers[i], numbers[i - std::min<std::size_t>(i, random() % 40)]);
  Bytes ring_bytes;
  std::vector<Packet> packets;
  for (const std::uint64_t number : numbers) {
    Bytes payload;
    put(payload, number, 4);
    payload.resize(4 + 16);
    const Bytes bytes = udp_packet({}, payload);
    packets.push_back({.ring_offset = ring_bytes.size(), .length = static_cast<std::uint32_t>(bytes.size())});
    ring_bytes.insert(ring_bytes.end(), bytes.begin(), bytes.end());
  }
  const std::uint32_t held = 200;
  std::vector<std::uint64_t> memory(datagram_state_bytes(config, held) / 8);
  make_datagram_state(memory.data(), config, held).shared->frame_limit = held;
  const Buffer state = on_device(memory);
  const Buffer ring = shared_with_device(ring_bytes);
  const Buffer to_take = shared_with_device(packets);
  const auto count = static_cast<std::uint32_t>(packets.size());
  std::vector<Buffer> made;
  std::vector<DatagramOutput> outputs;
  for (const bool on_host : {true, false}) {
    Buffer& pieces = made.emplace_back(device(), MemoryKind::mapped, packets.size() * sizeof(Piece));
    Piece* const to_pieces = pieces.as<Piece>();
    ClosedFrame* const to_frames =
        made.emplace_back(device(), MemoryKind::mapped, held * sizeof(ClosedFrame)).as<ClosedFrame>();
    const Buffer output = shared_with_device(std::vector<DatagramOutput>{{to_pieces, to_frames, count, held}});
    Stream stream(on_host ? Device::parse("cpu:0") : device());
    const DatagramView view = datagram_view(on_host ? static_cast<void*>(memory.data()) : state.data(), config, held);
    ASSERT_OK(launch(stream, datagrams_kernel(), {.threads = on_host ? 1U : 32U}, view,
                     static_cast<const std::byte*>(ring.data()), static_cast<const Packet*>(to_take.as<Packet>()),
                     count, output.as<DatagramOutput>()));
    ASSERT_OK(stream.wait());
    outputs.push_back(*output.as<DatagramOutput>());
  }
  ASSERT_GT(outputs[0].piece_count, 2000U);
  ASSERT_GT(outputs[0].frame_count, 30U);
  ASSERT_EQ(outputs[0].piece_count, outputs[1].piece_count);
  ASSERT_EQ(outputs[0].frame_count, outputs[1].frame_count);
  for (std::uint32_t i = 0; i < outputs[0].piece_count; ++i) {
    ASSERT_EQ(outputs[0].pieces[i].stream_offset, outputs[1].pieces[i].stream_offset);
    ASSERT_EQ(outputs[0].pieces[i].ring_offset, outputs[1].pieces[i].ring_offset);
  }
  for (std::uint32_t i = 0; i < outputs[0].frame_count; ++i) {
    ASSERT_EQ(outputs[0].frames[i].present, outputs[1].frames[i].present);
    ASSERT_EQ(outputs[0].frames[i].packets, outputs[1].frames[i].packets);
  }
  Stream stream(device());
  Buffer back(device(), MemoryKind::mapped, memory.size() * 8);
  ASSERT_OK(stream.copy(back.data(), state.data(), back.bytes()));
  ASSERT_OK(stream.wait());
  EXPECT_EQ(std::memcmp(back.data(), memory.data(), back.bytes()), 0);
}

TEST_P(IngestTest, MessagesAreCutAsOnTheHost) {
  const LengthPrefix prefix{.offset = 1, .width = 2, .header_bytes = 5, .big_endian = false, .body_max = 300};
  std::mt19937 random(4);
  Bytes bytes;
  std::vector<std::uint64_t> begins;
  for (int i = 0; i < 200; ++i) {
    begins.push_back(bytes.size());
    const auto body = static_cast<std::uint32_t>(random() % 301);
    Bytes header(5);
    header[1] = static_cast<std::byte>(body);
    header[2] = static_cast<std::byte>(body >> 8);
    bytes = bytes + header + Bytes(body, std::byte{0xFF});
  }
  const Buffer stream_bytes = shared_with_device(bytes);
  for (const std::uint32_t part : {1U, 3U, 100U, 100'000U}) {
    Buffer messages(device(), MemoryKind::mapped, 300 * sizeof(Message));
    Buffer count(device(), MemoryKind::mapped, sizeof(std::uint32_t));
    Stream stream(device());
    ASSERT_OK(launch(stream, messages_kernel(), {.threads = 32}, prefix,
                     static_cast<const std::byte*>(stream_bytes.data()), std::uint64_t{bytes.size()}, part,
                     messages.as<Message>(), count.as<std::uint32_t>()));
    ASSERT_OK(stream.wait());
    ASSERT_EQ(*count.as<std::uint32_t>(), begins.size()) << part;
    for (std::size_t i = 0; i < begins.size(); ++i) EXPECT_EQ(messages.as<Message>()[i].begin, begins[i]);
  }
}

}  // namespace
}  // namespace headrace::ingest::testing
