#include "device/cpu/testing.hpp"
#include "headrace/base/error.hpp"
#include "headrace/ingest/synthetic_source.hpp"
#include "receiver_support.hpp"
#include "tests/ingest_memory_network.hpp"

/// Properties that only receivers with resident control have.
namespace headrace::testing {

using ingest::DatagramReception;
using ingest::ReceiverOptions;
using ingest::TcpReception;
using ingest::testing::kSyn;
using ingest::testing::MemoryNetwork;
using ingest::testing::tcp_packet;

namespace {

constexpr std::size_t kFrameBytes = 8192;
constexpr ReceiverOptions kResident{.frames = {.frame_bytes = kFrameBytes, .frame_count = 3},
                                    .control = Control::resident};

}  // namespace

class IngestReceiverResident : public DeviceTest {};
HEADRACE_ON_EVERY_DEVICE(IngestReceiverResident);

// Frames held by a consumer are not refilled, whatever arrives.
TEST_P(IngestReceiverResident, AFrameStaysAsItIsUntilItIsReleased) {
  Ring ring(device(), MemoryKind::mapped, 2048, 64);
  MemoryNetwork network(ring);
  const Bytes data = stream_of(1, 10 * kFrameBytes);
  network.add(data, {});
  Receiver receiver(network, ring, device(), TcpReception{.connections = 1}, kResident);
  const auto give_up = std::chrono::steady_clock::now() + ingest::testing::kGuard;
  std::optional<Delivery> held;
  std::size_t bytes = 0;
  Bytes before;
  while (bytes < data.size()) {
    ASSERT_LT(std::chrono::steady_clock::now(), give_up);
    receiver.step(std::chrono::milliseconds(1));
    while (auto delivery = receiver.next({})) {
      if (delivery->kind != Delivery::Kind::frame) continue;
      const ingest::Frame& frame = delivery->frame->frame();
      const Bytes came = content(device(), frame);
      EXPECT_TRUE(std::equal(came.begin(), came.end(), data.begin() + static_cast<std::ptrdiff_t>(bytes)));
      bytes += came.size();
      EXPECT_TRUE(!held || content(device(), held->frame->frame()) == before) << "frame " << frame.number;
      held = std::move(delivery);
      before = came;
    }
  }
}

namespace {

/// Many SYNs at once, from as many peers.
class Flood final : public ingest::SlotSource<ingest::Source> {
 public:
  explicit Flood(Ring& ring) : SlotSource(ring, "a flood") {}
  [[nodiscard]] ingest::Layer layer() const noexcept override { return ingest::Layer::ip; }
  [[nodiscard]] Result<std::size_t> receive(std::span<ingest::Packet> packets, Duration) noexcept override {
    const std::size_t most = slots_.begin(packets.size());
    for (std::size_t i = 0; i < most; ++i) {
      const Bytes bytes = tcp_packet({.port = static_cast<std::uint16_t>(1024 + made_++ % 60'000)}, {.flags = kSyn});
      std::memcpy(slots_.slot(i).data(), bytes.data(), bytes.size());
      packets[i] = {.ring_offset = slots_.ring_offset(i), .length = static_cast<std::uint32_t>(bytes.size())};
      count(packets[i]);
    }
    slots_.publish(most);
    return most;
  }
  [[nodiscard]] Status send(std::span<const std::byte>) noexcept override { return {}; }

 private:
  std::size_t made_ = 0;
};

}  // namespace

// The stepping thread goes away while the kernel has more replies than their ring holds.
TEST_P(IngestReceiverResident, AKernelThatLeavesEndsTheReceiverWithAClearError) {
  Ring ring(device(), MemoryKind::mapped, 128, 16'384);
  Flood flood(ring);
  ReceiverOptions options = kResident;
  options.burst_packets = 16'384;
  options.wait_limit = std::chrono::seconds(1);
  Receiver receiver(flood, ring, device(), TcpReception{.connections = 1}, options);
  const auto give_up = std::chrono::steady_clock::now() + ingest::testing::kGuard;
  std::string why;
  while (why.empty()) {
    ASSERT_LT(std::chrono::steady_clock::now(), give_up);
    try {
      receiver.step({});
      std::this_thread::sleep_for(2 * options.wait_limit);
    } catch (const DeviceError& error) {
      EXPECT_EQ(error.code(), Errc::hung);
      why = error.what();
    }
  }
  EXPECT_THAT(why, ::testing::HasSubstr("the host took no replies"));
  EXPECT_THROW((void)receiver.next({}), DeviceError);
  EXPECT_TRUE(receiver.ended());
}

TEST_P(IngestReceiverResident, AStartThatFailsSaysWhatItLacked) {
  if (!on_cpu()) GTEST_SKIP() << "allocations fail on purpose on CPU devices alone";
  Ring ring(device(), MemoryKind::mapped, 2048, 64);
  MemoryNetwork network(ring);
  bool more = true;
  std::size_t of_frames = 0;
  for (std::int64_t after = 0; more; ++after) {
    const detail::AllocationFailure failure(after);
    try {
      const Receiver receiver(network, ring, device(), TcpReception{.connections = 3}, kResident);
      more = failure.happened();
    } catch (const DeviceError& error) {
      EXPECT_EQ(error.code(), Errc::out_of_memory);
      const std::string why = error.what();
      if (why.find("3 connections with 3 frames of 8 KiB each need 72 KiB") != std::string::npos) ++of_frames;
    }
    EXPECT_FALSE(more && !failure.happened());
  }
  EXPECT_GE(of_frames, 2U) << "the frames of the second and the third";
}

TEST_P(IngestReceiverResident, RefusesWhatCannotBe) {
  Ring ring(device(), MemoryKind::mapped, 2048, 64);
  MemoryNetwork network(ring);
  const auto refused = [&](auto change) {
    ReceiverOptions options = kResident;
    change(options);
    EXPECT_THROW(Receiver(network, ring, device(), TcpReception{.connections = 2}, options), UsageError);
  };
  refused([](ReceiverOptions& options) { options.frames.frame_bytes = 1000; });
  refused([](ReceiverOptions& options) { options.frames.conversion = ingest::Conversion::swap2; });
  refused([](ReceiverOptions& options) { options.builder.way = ingest::CopyWay::gather; });
  refused([](ReceiverOptions& options) { options.builder.ring_access = ingest::RingAccess::direct; });
  refused([](ReceiverOptions& options) { options.wait_limit = {}; });
  EXPECT_THROW(Receiver(network, ring, device(), DatagramReception{}, kResident), UsageError);
  EXPECT_EQ(ingest::parse_control("resident"), Control::resident);
  EXPECT_EQ(to_string(Control::host), "host");
  EXPECT_THROW((void)ingest::parse_control("gpu"), UsageError);
}

}  // namespace headrace::testing
