#include "ingest/faulty_source.hpp"
#include "receiver_support.hpp"
#include "tests/ingest_memory_network.hpp"

/// Connections over IPv6 and IPv4 at the same time, from senders in memory.
namespace headrace::testing {

using ingest::ReceiverOptions;
using ingest::StreamEnd;
using ingest::TcpReception;
using ingest::testing::MemoryNetwork;
using ingest::testing::MemorySender;

class IngestReceiverIpv6 : public ControlTest {
 protected:
  /// Two senders per version; one of each has the same address bytes and port.
  static std::vector<Bytes> add_senders(MemoryNetwork& network) {
    std::vector<Bytes> sent;
    for (std::uint32_t i = 0; i < 4; ++i) {
      sent.push_back(stream_of(i, 150'000 + i));
      MemorySender::Options options;
      options.peer = {.version = i % 2 == 0 ? 6U : 4U, .port = static_cast<std::uint16_t>(40'000 + i / 2)};
      options.segment_bytes = 1400;
      network.add(sent.back(), options);
    }
    return sent;
  }

  void expect_streams(Receiver& receiver, const std::vector<Bytes>& sent) {
    Received received;
    step_until(receiver, received, [&] { return received.ends.size() == sent.size(); });
    for (const auto& [stream, flow] : received.opened) {
      const std::size_t sender = (flow.remote_port - 40'000U) * 2 + (flow.version == 6 ? 0 : 1);
      EXPECT_TRUE(received.bytes[stream] == sent.at(sender)) << sender;
      EXPECT_EQ(received.ends[stream].end, StreamEnd::finished);
    }
  }
};
HEADRACE_WITH_EVERY_CONTROL(IngestReceiverIpv6);

TEST_P(IngestReceiverIpv6, ComesBesideIpv4) {
  Ring ring(device(), MemoryKind::mapped, 2048, 64);
  MemoryNetwork network(ring);
  const std::vector<Bytes> sent = add_senders(network);
  Receiver receiver(network, ring, device(), TcpReception{.connections = 4}, with_control(kSmall));
  expect_streams(receiver, sent);
}

TEST_P(IngestReceiverIpv6, OverABadNetwork) {
  Ring between(device(), MemoryKind::mapped, 2048, 64);
  Ring ring(device(), MemoryKind::mapped, 2048, 64);
  auto network = std::make_unique<MemoryNetwork>(between);
  const std::vector<Bytes> sent = add_senders(*network);
  const auto faulty = ingest::make_faulty_source(
      ring, std::move(network), between,
      {.loss = 0.02, .duplication = 0.02, .corruption = 0.02, .reordering = 0.05, .loss_sent = 0.02, .seed = 9});
  Receiver receiver(*faulty, ring, device(), TcpReception{.connections = 4}, with_control(kSmall));
  expect_streams(receiver, sent);
  EXPECT_GT(settled_counters(receiver).tcp.unparsed[static_cast<std::size_t>(ingest::ParseResult::tcp_checksum)], 0U);
}

}  // namespace headrace::testing
