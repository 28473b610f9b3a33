#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "headrace/base/error.hpp"
#include "headrace/ingest/faulty_source.hpp"
#include "headrace/ingest/receiver.hpp"
#include "headrace/ingest/stream_bytes.hpp"
#include "tests/ingest_memory_network.hpp"
#include "tests/ingest_support.hpp"

namespace headrace::ingest {
namespace {

using testing::Bytes;
using testing::cpu_ring;
using ::testing::HasSubstr;
using testing::kGuard;
using testing::MemoryNetwork;
using testing::MemorySender;

constexpr Duration kStep = std::chrono::milliseconds(1);
constexpr std::size_t kFrameBytes = 40'000;
constexpr ReceiverOptions kSmallFrames{.frames = {.frame_bytes = kFrameBytes, .frame_count = 3}};

Bytes stream_of(std::uint64_t seed, std::size_t count) {
  Bytes bytes(count);
  StreamBytes(seed).fill(0, bytes);
  return bytes;
}

/// What has come of each stream, in order.
struct Taken {
  std::map<std::uint32_t, Bytes> bytes;
  std::map<std::uint32_t, Delivery> ends;
  std::uint32_t opened = 0;

  void take(const Delivery& delivery) {
    if (delivery.kind == Delivery::Kind::opened) ++opened;
    if (delivery.kind == Delivery::Kind::ended) ends[delivery.stream] = delivery;
    if (delivery.kind != Delivery::Kind::frame) return;
    const Frame& frame = delivery.frame->frame();
    Bytes& to = bytes[delivery.stream];
    EXPECT_EQ(frame.stream_offset, to.size());
    EXPECT_EQ(frame.missing_bytes, 0U);
    to.insert(to.end(), frame.data, frame.data + frame.bytes);
  }
};

/// Steps until `enough`, taking everything that comes.
template <class Enough>
void run(Receiver& receiver, Taken& taken, const Enough& enough) {
  const auto give_up = std::chrono::steady_clock::now() + kGuard;
  while (!enough()) {
    ASSERT_LT(std::chrono::steady_clock::now(), give_up);
    receiver.step(kStep);
    while (const auto delivery = receiver.next({})) taken.take(*delivery);
  }
}

TEST(Receiver, AConnectionBecomesFrames) {
  Ring ring = cpu_ring();
  MemoryNetwork network(ring);
  const Bytes data = stream_of(1, 1'000'000);
  network.add(data, {});
  Receiver receiver(network, ring, Device::parse("cpu"), TcpReception{.connections = 2}, kSmallFrames);
  Taken taken;
  run(receiver, taken, [&] { return taken.ends.size() == 1; });
  EXPECT_EQ(taken.bytes[0], data);
  EXPECT_EQ(taken.ends[0].end, StreamEnd::finished);
  EXPECT_EQ(taken.ends[0].stream_bytes, data.size());
  EXPECT_EQ(taken.ends[0].flow.remote_port, 40000);
  const ReceiverCounters counters = receiver.counters();
  EXPECT_EQ(counters.frames.frames, 25U);
  EXPECT_EQ(counters.frames.bytes, data.size());
  EXPECT_EQ(counters.tcp.finished, 1U);
  EXPECT_EQ(counters.open_streams, 0U);
}

}  // namespace
}  // namespace headrace::ingest
