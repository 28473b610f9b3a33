#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <span>
#include <stop_token>
#include <thread>

#include "devices.hpp"
#include "headrace/base/error.hpp"
#include "ingest/bench/build_bench.hpp"
#include "ingest/bench/latency_bench.hpp"
#include "ingest/bench/ring.hpp"
#include "ingest/bench/socket_bench.hpp"
#include "ingest/stream_bytes.hpp"

/// The benchmarks of ingest count and compare correctly, whatever their speed.
namespace headrace::testing {
namespace {

using ingest::BenchRing;
using ingest::BuildRuns;
using ingest::Control;
using ingest::LatencyCase;
using ingest::LatencyRuns;
using ingest::Piece;
using ingest::RingAccess;
using ingest::RingCase;
using ingest::SocketCase;
using ingest::SocketReception;
using ingest::SocketRun;

class IngestBench : public DeviceTest {
 protected:
  static LatencyCase small_case(RingAccess ring_access, std::uint32_t prompt_count) {
    LatencyCase of;
    of.ring = {.packets = {.payload_bytes = 1460},
               .ring_access = ring_access,
               .ring_bytes = 100 * 1520,
               .frame_bytes = 10'000,
               .frame_count = 4,
               .flush_bytes = 256 * kKiB,
               .burst = 16};
    of.prompt_count = prompt_count;
    of.bytes_per_second = 1e8;
    of.frames = 60;
    return of;
  }
};
HEADRACE_ON_EVERY_DEVICE(IngestBench);

TEST_P(IngestBench, LatencyIsOfEveryFrameOfEverySample) {
  for (const RingAccess ring_access : {RingAccess::direct, RingAccess::slots, RingAccess::payloads}) {
    for (const std::uint32_t prompt_count : {0U, 2U}) {
      SCOPED_TRACE(::testing::Message() << to_string(ring_access) << " " << prompt_count);
      const LatencyRuns found = measure_frame_latency(device(), small_case(ring_access, prompt_count), 2);
      ASSERT_EQ(found.samples.size(), 2U);
      for (const auto& sample : found.samples) {
        EXPECT_EQ(sample.latency.count, 60U);
        EXPECT_LE(sample.latency.p50, sample.latency.p99);
        EXPECT_GT(sample.latency.p50, Duration{});
        EXPECT_GT(sample.waited.count, 0U);
        EXPECT_GT(sample.bytes_per_second, 0);
      }
      EXPECT_GT(found.alone, Duration{});
      EXPECT_GT(found.reached_per_second, 0);
      EXPECT_EQ(found.bytes_per_second, 1e8);
      EXPECT_GT(found.burst_bytes, 0);
      EXPECT_TRUE(found.verified);
    }
  }
}

TEST_P(IngestBench, LatencyAtAShareOfWhatIsReached) {
  LatencyCase of = small_case(RingAccess::automatic, 1);
  of.bytes_per_second = 0;
  of.load = 0.25;
  of.frames = 3;  // fewer than there are
  of.ring.frame_bytes = 1460;
  const LatencyRuns found = measure_frame_latency(device(), of, 3);
  ASSERT_EQ(found.samples.size(), 3U);
  EXPECT_EQ(found.bytes_per_second, 0.25 * found.reached_per_second);
  EXPECT_EQ(found.samples[2].latency.count, 3U);
  EXPECT_TRUE(found.verified);
}

TEST_P(IngestBench, LatencyWithControlByTheDevice) {
  LatencyCase of = small_case(RingAccess::automatic, 2);
  of.control = Control::resident;
  of.bytes_per_second = 1e7;
  of.frames = 10;
  const LatencyRuns found = measure_frame_latency(device(), of, 2);
  ASSERT_EQ(found.samples.size(), 2U);
  for (const auto& sample : found.samples) {
    EXPECT_EQ(sample.latency.count, 10U);
    EXPECT_GT(sample.latency.p50, Duration{});
    EXPECT_GT(sample.waited.count, 0U);
  }
  EXPECT_GT(found.alone, Duration{});
  EXPECT_GT(found.reached_per_second, 0);
  EXPECT_GE(found.burst_bytes, 1460);
  EXPECT_TRUE(found.verified);
}

// Windows are offered in units of 16 KiB: a sender that filled one would send bytes that are not accepted.
TEST_P(IngestBench, FramesOfLessThanAUnitOfTheWindow) {
  LatencyCase of = small_case(RingAccess::automatic, 2);
  of.control = Control::resident;
  of.ring.frame_bytes = 5000;
  of.ring.frame_count = 2;
  of.frames = 20;
  EXPECT_TRUE(measure_frame_latency(device(), of, 1).verified);
  of.ring.packets.total_bytes = 200 * 1520;
  const BuildRuns found = measure_resident_build(device(), of.ring, 2);
  EXPECT_EQ(found.times.size(), 2U);
  EXPECT_TRUE(found.verified);
}

TEST_P(IngestBench, LatencyMeasuredUntilItIsStopped) {
  for (const Control control : {Control::host, Control::resident}) {
    LatencyCase of = small_case(RingAccess::automatic, 2);
    of.control = control;
    std::stop_source stop;
    stop.request_stop();
    const LatencyRuns found = measure_frame_latency(device(), of, 2, stop.get_token());
    EXPECT_TRUE(found.supported);
    EXPECT_TRUE(found.samples.empty());
    EXPECT_FALSE(found.verified);
  }
}

TEST_P(IngestBench, LatencyOfCasesThatCannotBe) {
  const auto refused = [](auto change) {
    LatencyCase of = small_case(RingAccess::automatic, 2);
    change(of);
    EXPECT_THROW(static_cast<void>(measure_frame_latency(device(), of, 1)), UsageError);
  };
  refused([](LatencyCase& of) { of.frames = 0; });
  refused([](LatencyCase& of) { of.ring.burst = 0; });
  refused([](LatencyCase& of) { of.ring.frame_bytes = 1459; });
  refused([](LatencyCase& of) { of.bytes_per_second = -1; });
  refused([](LatencyCase& of) { of.bytes_per_second = of.load = 0; });
  refused([](LatencyCase& of) { of.prompt_count = of.list_count; });
  refused([](LatencyCase& of) {
    of.control = Control::resident;
    of.ring.frame_bytes = 4095;
  });
  if (on_cpu()) {
    LatencyCase of = small_case(RingAccess::automatic, 2);
    of.ring.packets.way = ingest::CopyWay::cub;
    EXPECT_FALSE(measure_frame_latency(device(), of, 1).supported);
  }
}

TEST_P(IngestBench, TheRingKnowsItsStream) {
  const RingCase of{.packets = {.payload_bytes = 10, .payload_max = 90}, .ring_bytes = 20 * 144};
  BenchRing ring(device(), of);
  std::vector<Piece> pieces;
  std::vector<std::byte> stream;
  for (std::uint64_t copied = 0; copied < 50; copied = ring.position()) {
    ring.gather({.packets = 7, .copied = copied, .stream_end = stream.size() + 300}, pieces);
    ASSERT_FALSE(pieces.empty());
    EXPECT_LE(pieces.size(), 7U);
    for (const Piece& piece : pieces) {
      EXPECT_EQ(piece.stream_offset, stream.size());
      const std::byte* const from = ring.memory().data() + piece.ring_offset;
      stream.insert(stream.end(), from, from + piece.length);
    }
    EXPECT_EQ(ring.stream_offset(), stream.size());
  }
  ring.gather({.packets = 1000, .copied = ring.position(), .stream_end = ring.stream_offset() + 5}, pieces);
  EXPECT_TRUE(pieces.empty());
  ring.gather({.packets = 1000, .copied = ring.position(), .stream_end = ~std::uint64_t{0}}, pieces);
  EXPECT_EQ(pieces.size(), 20U);  // no slot twice
  EXPECT_TRUE(ring.holds(stream.data(), 0, stream.size()));
  EXPECT_TRUE(ring.holds(stream.data() + 77, 77, 1));
  for (const std::size_t at : {std::size_t{0}, stream.size() / 2, stream.size() - 1}) {
    stream[at] ^= std::byte{1};
    EXPECT_FALSE(ring.holds(stream.data(), 0, stream.size())) << at;
    stream[at] ^= std::byte{1};
  }
}

/// Two ends of a connection.
struct Connection {
  Connection() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  std::array<int, 2> ends{-1, -1};
};

SocketRun transfer(SocketReception& reception, std::size_t bytes, std::uint64_t seed, bool whole) {
  Connection connection;
  std::vector<std::byte> sent(bytes);
  ingest::StreamBytes(seed).fill(0, sent);
  const std::jthread sender([&] {
    for (std::span<const std::byte> left = sent; !left.empty();) {
      const ssize_t count = ::send(connection.ends[0], left.data(), std::min<std::size_t>(left.size(), 4567), 0);
      if (count <= 0) break;
      left = left.subspan(static_cast<std::size_t>(count));
    }
    ::shutdown(connection.ends[0], SHUT_WR);
  });
  return reception.receive(connection.ends[1], whole);
}

TEST_P(IngestBench, TheKernelsReceiverBringsEveryByte) {
  SocketReception reception(device(), {.frame_bytes = 100'000, .frame_count = 3, .chunk_bytes = 33'000, .seed = 5});
  for (const std::size_t bytes : {0, 1, 99'999, 100'000, 1'234'567}) {
    SCOPED_TRACE(bytes);
    const SocketRun run = transfer(reception, bytes, 5, true);
    EXPECT_EQ(run.bytes, bytes);
    EXPECT_EQ(run.frames, (bytes + 99'999) / 100'000);
    EXPECT_TRUE(run.right);
    EXPECT_GT(run.took, Duration{});
  }
  EXPECT_FALSE(transfer(reception, 1'000'000, 6, true).right);
  SocketReception large(device(), {.frame_bytes = kMiB, .frame_count = 2, .chunk_bytes = 64 * kKiB, .seed = 5});
  EXPECT_TRUE(transfer(large, 3 * kMiB, 5, false).right);
  EXPECT_FALSE(transfer(large, 3 * kMiB, 6, false).right);
}

TEST_P(IngestBench, TheKernelsReceiverStopsAndFails) {
  SocketReception reception(device(), {.frame_bytes = 1000, .chunk_bytes = 1000});
  const Connection connection;
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  EXPECT_EQ(reception.receive(connection.ends[1], true, stop.get_token()).bytes, 0U);
  EXPECT_THROW(static_cast<void>(reception.receive(-1, true)), SystemError);
  EXPECT_THROW(SocketReception(device(), {.frame_count = 1}), UsageError);
  EXPECT_THROW(SocketReception(device(), {.chunk_count = 1}), UsageError);
  EXPECT_THROW(SocketReception(device(), {.chunk_bytes = 0}), UsageError);
  EXPECT_THROW(SocketReception(device(), {.frame_bytes = 1000, .chunk_bytes = 1001}), UsageError);
}

}  // namespace
}  // namespace headrace::testing
