#include <algorithm>
#include <chrono>
#include <vector>

#include "receiver_support.hpp"
#include "tests/ingest_memory_network.hpp"

/// Peers that connect and close without sending a byte.
namespace headrace::testing {

using ingest::ReceiverOptions;
using ingest::StreamEnd;
using ingest::TcpReception;
using ingest::testing::MemoryNetwork;
using ingest::testing::MemorySender;
using ingest::testing::Peer;

namespace {

constexpr Duration kStep = std::chrono::milliseconds(1);
constexpr Duration kLate = std::chrono::hours(1);

Peer peer_number(std::uint32_t number) { return {.port = static_cast<std::uint16_t>(40000 + number)}; }

}  // namespace

class IngestReceiverClose : public ControlTest {
 protected:
  /// This many peers send FIN once; the consumer takes nothing until all of them have connected.
  void connect(Receiver& receiver, std::uint32_t count) {
    const auto give_up = std::chrono::steady_clock::now() + ingest::testing::kGuard;
    for (std::uint32_t i = 0; i < count; ++i) {
      senders_.push_back(&network_.add({}, {.peer = peer_number(i), .retransmit_after = kLate}));
    }
    while (settled_counters(receiver).tcp.connections < count) {
      ASSERT_LT(std::chrono::steady_clock::now(), give_up);
      receiver.step(kStep);
    }
  }

  Ring ring_{device(), MemoryKind::mapped, 2048, 64};
  MemoryNetwork network_{ring_};
  Received received_;
  std::vector<const MemorySender*> senders_;
};
HEADRACE_WITH_EVERY_CONTROL(IngestReceiverClose);

TEST_P(IngestReceiverClose, EveryOneIsAnEmptyStreamThoughItSendsFinOnce) {
  constexpr std::uint32_t kEmpty = 200;
  Receiver receiver(network_, ring_, device(), TcpReception{.connections = 4}, with_control(kSmall));
  connect(receiver, kEmpty);
  EXPECT_GT(settled_counters(receiver).tcp.connections_waiting, 0U);
  const Bytes data = stream_of(1, 100'000);
  network_.add(data, {.peer = peer_number(kEmpty)});
  step_until(receiver, received_, [&] {
    const bool over = std::ranges::all_of(senders_, [](const MemorySender* one) { return one->over(); });
    return over && received_.ends.size() == kEmpty + 1;
  });
  for (const MemorySender* sender : senders_) EXPECT_FALSE(sender->was_reset());
  for (const auto& [stream, flow] : received_.opened) {
    EXPECT_TRUE(received_.bytes[stream] == (flow.remote_port == 40000 + kEmpty ? data : Bytes{}));
    EXPECT_EQ(received_.ends[stream].end, StreamEnd::finished);
  }
  EXPECT_EQ(settled_counters(receiver).tcp.connections_waiting, 0U);
}

}  // namespace headrace::testing
