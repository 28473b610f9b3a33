#include <memory>
#include <vector>

#include "failing_new.hpp"
#include "headrace/base/error.hpp"
#include "headrace/ingest/receiver.hpp"
#include "headrace/ingest/synthetic_source.hpp"
#include "ingest/stream_bytes.hpp"
#include "tests/ingest_memory_network.hpp"

namespace headrace::testing {
namespace {

using ingest::Delivery;
using ingest::Receiver;
using ingest::ReceiverOptions;

Device device() { return Device::parse("cpu:46"); }

/// Takes everything until the stream has ended; returns the number of bytes.
std::uint64_t receive_all(Receiver& receiver) {
  std::uint64_t bytes = 0;
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (std::chrono::steady_clock::now() < give_up) {
    const auto delivery = receiver.next(std::chrono::milliseconds(20));
    if (!delivery) {
      if (receiver.ended()) break;
      continue;
    }
    if (delivery->kind == Delivery::Kind::frame) bytes += delivery->frame->frame().bytes;
    if (delivery->kind != Delivery::Kind::ended) continue;
    // A stream that cannot continue reports that by its end.
    if (delivery->end != ingest::StreamEnd::finished) throw Exception(Errc::out_of_memory, "the stream has broken off");
    break;
  }
  receiver.stop();
  return bytes;
}

TEST(AllocationFailuresOfReceivers, OfDatagramsAreExceptions) {
  constexpr std::uint64_t kPackets = 300;
  constexpr std::uint32_t kPayload = 1000;
  fail_each_allocation("a receiver of datagrams", [&] {
    Ring ring(device(), MemoryKind::mapped, 2048, 64);
    const auto source =
        ingest::make_synthetic_source(ring, {.payloads = {{.bytes = 8 + kPayload}}, .packets = kPackets, .seed = 5});
    ingest::DatagramReception datagrams;
    datagrams.config = {.number_width = 8, .header_bytes = 8, .payload_bytes = kPayload, .frame_packets = 50};
    datagrams.wait_for_space = true;
    Receiver receiver(*source, ring, device(), datagrams, {.frames = {.frame_count = 3}, .burst_packets = 32});
    receiver.start();
    EXPECT_EQ(receive_all(receiver), kPackets * kPayload);
  });
}

/// The network of a test, whose own allocations do not fail.
class SparedNetwork final : public ingest::Source {
 public:
  explicit SparedNetwork(Ring& ring) : network_(ring) {}
  void add(std::vector<std::byte> data) { network_.add(std::move(data), {}); }

  [[nodiscard]] ingest::Layer layer() const noexcept override { return network_.layer(); }
  [[nodiscard]] Result<std::size_t> receive(std::span<ingest::Packet> packets, Duration timeout) noexcept override {
    const Spared without_failures;
    return network_.receive(packets, timeout);
  }
  [[nodiscard]] Status send(std::span<const std::byte> packet) noexcept override {
    const Spared without_failures;
    return network_.send(packet);
  }
  [[nodiscard]] bool ended() const noexcept override { return network_.ended(); }
  [[nodiscard]] ingest::SourceCounters counters() const noexcept override { return network_.counters(); }

 private:
  ingest::testing::MemoryNetwork network_;
};

void receive_by_tcp(ingest::Control control) {
  std::vector<std::byte> data(100'000);
  ingest::StreamBytes(3).fill(0, data);
  Ring ring(device(), MemoryKind::mapped, 2048, 64);
  SparedNetwork network(ring);
  network.add(data);
  ReceiverOptions options{.frames = {.frame_bytes = 32 * kKiB, .frame_count = 4}, .burst_packets = 32};
  options.control = control;
  Receiver receiver(network, ring, device(), ingest::TcpReception{.connections = 2}, options);
  receiver.start();
  EXPECT_EQ(receive_all(receiver), data.size());
}

TEST(AllocationFailuresOfReceivers, OfTcpAreExceptions) {
  fail_each_allocation("a receiver of TCP", [] { receive_by_tcp(ingest::Control::host); });
}

TEST(AllocationFailuresOfReceivers, OfTcpByResidentControlAreExceptions) {
  fail_each_allocation("resident control of TCP", [] { receive_by_tcp(ingest::Control::resident); });
}

}  // namespace
}  // namespace headrace::testing
