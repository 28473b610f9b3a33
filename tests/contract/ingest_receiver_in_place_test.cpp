#include "receiver_support.hpp"
#include "tests/ingest_memory_network.hpp"

/// Payloads that the source writes directly to their places, and those that turn out to be different.
namespace headrace::testing {

using ingest::ReceiverOptions;
using ingest::StreamEnd;
using ingest::TcpReception;
using ingest::testing::MemoryNetwork;
using ingest::testing::MemorySender;

class IngestInPlace : public DeviceTest {
 protected:
  static MemorySender::Options sender(std::uint32_t number) {
    return {.peer = {.version = number % 3 == 2 ? 6U : 4U, .port = static_cast<std::uint16_t>(40'000 + number)},
            .segment_bytes = number % 2 == 0 ? 1400U : 700U};
  }

  Ring ring_{device(), MemoryKind::mapped, 2048, 64};
  MemoryNetwork network_{ring_};
  Received received_;
};
HEADRACE_ON_EVERY_DEVICE(IngestInPlace);

TEST_P(IngestInPlace, OneSenderIsNotCopied) {
  network_.write_in_place(0, 1);
  const Bytes data = stream_of(1, 25 * kSmallFrameBytes + 123);
  network_.add(data, sender(0));
  Receiver receiver(network_, ring_, device(), TcpReception{.connections = 1}, kSmall);
  step_until(receiver, received_, [&] { return received_.ends.size() == 1; });
  EXPECT_TRUE(received_.bytes[0] == data);
  EXPECT_EQ(received_.ends[0].stream_bytes, data.size());
  const auto counters = receiver.counters();
  EXPECT_EQ(counters.builder.bytes, data.size());
  EXPECT_EQ(counters.frames.missing_bytes, 0U);
  if (device().kind() == DeviceKind::cpu) {
    EXPECT_GT(network_.placed_bytes(), 0U);
  } else {
    EXPECT_EQ(network_.placed_bytes(), 0U) << "the source cannot write to a GPU";
  }
}

TEST_P(IngestInPlace, ConvertedFramesAreNotWrittenByTheSource) {
  network_.write_in_place(0, 1);
  Bytes data = stream_of(2, 5 * kSmallFrameBytes);
  network_.add(data, sender(0));
  ReceiverOptions options = kSmall;
  options.frames.conversion = ingest::Conversion::swap2;
  Receiver receiver(network_, ring_, device(), TcpReception{.connections = 1}, options);
  step_until(receiver, received_, [&] { return received_.ends.size() == 1; });
  for (std::size_t i = 0; i < data.size(); i += 2) std::swap(data[i], data[i + 1]);
  EXPECT_TRUE(received_.bytes[0] == data);
  EXPECT_EQ(network_.placed_bytes(), 0U);
}

// Anything other than what was expected: other connections, other order, repetitions, beginnings and ends.
TEST_P(IngestInPlace, WhatIsNotExpectedGoesTheUsualWay) {
  std::uint64_t placed = 0;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    MemoryNetwork network(ring_);
    ring_.release(ring_.published());
    network.write_in_place(seed % 4 == 0 ? 0 : 0.02 * (seed % 4), seed);
    const std::uint32_t senders = 1 + seed % 5;
    std::vector<Bytes> sent;
    for (std::uint32_t i = 0; i < senders; ++i) {
      sent.push_back(stream_of(100 * seed + i, 20'000 + 37'000 * i));
      network.add(sent.back(), sender(i));
    }
    Received received;
    ReceiverOptions options = kSmall;
    options.burst_packets = 1 + seed % 11;  // short bursts often have a single sender
    Receiver receiver(network, ring_, device(), TcpReception{.connections = senders}, options);
    step_until(receiver, received, [&] { return received.ends.size() == senders; });
    for (const auto& [stream, flow] : received.opened) {
      EXPECT_TRUE(received.bytes[stream] == sent.at(flow.remote_port - 40'000U));
      EXPECT_EQ(received.ends[stream].end, StreamEnd::finished);
    }
    placed += network.placed_bytes();
    if (HasFailure()) return;
  }
  if (device().kind() == DeviceKind::cpu) {
    EXPECT_GT(placed, 1'000'000U);
  }
}

// A reset, followed by another connection with the same ports and numbers.
TEST_P(IngestInPlace, AResetInTheMiddle) {
  network_.write_in_place(0, 3);
  const Bytes data = stream_of(5, 200'000);
  MemorySender::Options options = sender(0);
  options.reset_at = 100'000;
  network_.add(data, options);
  Receiver receiver(network_, ring_, device(), TcpReception{.connections = 1}, kSmall);
  step_until(receiver, received_, [&] { return received_.ends.size() == 1; });
  EXPECT_EQ(received_.ends[0].end, StreamEnd::reset);
  const std::size_t came = received_.ends[0].stream_bytes;
  EXPECT_GE(came, 100'000U);
  EXPECT_TRUE(received_.bytes[0] == Bytes(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(came)));
}

}  // namespace headrace::testing
