#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/detail/health.hpp"
#include "headrace/device/detail/peer.hpp"
#include "measure/link_costs.hpp"
#include "tests/contract/devices.hpp"
#include "tests/contract/faulty_device.hpp"

namespace headrace::testing {
namespace {

class PeersTest : public DeviceTest {
 public:
  [[nodiscard]] static std::optional<Device> peer() {
    if (on_cpu()) return Device::parse("cpu:7");
    for (const Device one : Device::list()) {
      if (one.kind() == device().kind() && !(one == device()) && peer_connection(device(), one).access) return one;
    }
    return {};
  }
};
HEADRACE_ON_EVERY_DEVICE(PeersTest);

TEST_P(PeersTest, ADeviceReachesItself) {
  const auto self = peer_connection(device(), device());
  EXPECT_EQ(self.way, PeerWay::same_device);
  EXPECT_TRUE(self.access);
  EXPECT_TRUE(self.native_atomics);
  const PeerAccess nothing(device(), device());
}

TEST_P(PeersTest, AccessNests) {
  if (!peer()) GTEST_SKIP() << "needs two devices";
  PeerAccess first(device(), *peer());
  {
    const PeerAccess second(device(), *peer());
  }
  PeerAccess moved = std::move(first);
  first = PeerAccess(device(), *peer());
  const auto bytes = random_bytes(1000, 3);
  const Buffer source = pinned(device(), bytes);
  const Buffer there(*peer(), MemoryKind::device, 1000);
  const Buffer back(device(), MemoryKind::pinned, 1000);
  const Stream stream(device());
  ASSERT_OK(stream.copy(there.data(), source.data(), 1000));
  ASSERT_OK(stream.copy(back.data(), there.data(), 1000));
  ASSERT_OK(stream.wait());
  EXPECT_TRUE(content(back) == bytes);
}

TEST_P(PeersTest, RegisteredMemoryIsCopiedToAndFrom) {
  constexpr std::size_t kBytes = 4 * RegisteredMemory::kAlignment;
  std::vector<std::byte> memory(kBytes + RegisteredMemory::kAlignment);
  auto* const start = reinterpret_cast<std::byte*>(
      align_up(reinterpret_cast<std::uintptr_t>(memory.data()), RegisteredMemory::kAlignment));
  const auto bytes = random_bytes(kBytes, 4);
  std::memcpy(start, bytes.data(), kBytes);
  RegisteredMemory registered(device(), start, kBytes);
  EXPECT_EQ(registered.data(), start);
  EXPECT_EQ(registered.bytes(), kBytes);
  const Buffer there(device(), MemoryKind::device, kBytes);
  const Stream stream(device());
  ASSERT_OK(stream.copy(there.data(), start, kBytes));
  ASSERT_OK(stream.wait());
  std::memset(start, 0, kBytes);
  ASSERT_OK(stream.copy(start, there.data(), kBytes));
  ASSERT_OK(stream.wait());
  EXPECT_EQ(std::memcmp(start, bytes.data(), kBytes), 0);
  RegisteredMemory moved = std::move(registered);
  EXPECT_EQ(moved.data(), start);
}

TEST_P(PeersTest, WhatCannotBeRegisteredIsRefused) {
  alignas(4096) static std::byte page[8192];
  EXPECT_THROW(RegisteredMemory(device(), nullptr, 4096), UsageError);
  EXPECT_THROW(RegisteredMemory(device(), page, 0), UsageError);
  EXPECT_THROW(RegisteredMemory(device(), page, 100), UsageError);
  EXPECT_THROW(RegisteredMemory(device(), page + 8, 4096), UsageError);
}

TEST_P(PeersTest, HealthSaysWhatItKnowsOrWhyNot) {
  const auto health = read_health(device());
  // NVML also gives the driver's version: a container may have a GPU without NVML.
  EXPECT_EQ(health.absence.empty(), !device().properties().driver.empty());
  EXPECT_TRUE(!on_cpu() || !health.absence.empty());
  const auto counters = read_link_counters(device());
  EXPECT_TRUE(!on_cpu() || !counters.absence.empty());
  EXPECT_TRUE(!on_cpu() || !health.near_processors.empty());
}

TEST_P(PeersTest, SmallPiecesArriveEachWay) {
  const auto send = measure::measure_batched_send(device(), 64, 1024, 3);
  EXPECT_TRUE(send.verified);
  EXPECT_GT(send.each.count(), 0);
  EXPECT_GT(send.whole.count(), 0);
  EXPECT_GT(send.batch.count(), 0);
  EXPECT_THROW(static_cast<void>(measure::measure_batched_send(device(), 0)), UsageError);
  EXPECT_THROW(static_cast<void>(measure::measure_batched_send(device(), 1, 0)), UsageError);
  EXPECT_THROW(static_cast<void>(measure::measure_batched_send(device(), 1, 1000)), UsageError);
  EXPECT_THROW(static_cast<void>(measure::measure_batched_send(device(), 1, 1024, 0)), UsageError);
}

TEST_P(PeersTest, CostsOfAPeer) {
  EXPECT_THROW(static_cast<void>(measure::measure_peer_costs(device(), device())), UsageError);
  if (!peer()) GTEST_SKIP() << "needs two devices";
  const auto costs = measure::measure_peer_costs(device(), *peer(), 1);
  EXPECT_EQ(costs.note, "");
  EXPECT_GT(costs.copy_with, 0);
  EXPECT_GT(costs.allocations, 0U);
  EXPECT_GT(costs.allocate_with.count(), 0);
  EXPECT_GT(costs.allocate_without.count(), 0);
  EXPECT_EQ(costs.span_note.empty(), costs.span_pages > 0);
}

TEST_P(PeersTest, CountersAreCheckedOrSayWhyNot) {
  if (!peer()) GTEST_SKIP() << "needs two devices";
  const auto check = measure::measure_counters(device(), *peer(), std::uint64_t{1} << 30U);
  if (on_cpu()) {
    EXPECT_NE(check.note, "");
    EXPECT_EQ(check.moved_bytes, 0U);
  }
  EXPECT_THROW(static_cast<void>(measure::measure_counters(device(), *peer(), 0)), UsageError);
}

TEST(Peers, AFaultIsToldAndNothingIsLeft) {
  FaultyDevice faulty;
  alignas(4096) static std::byte page[4096];
  faulty.fail();
  EXPECT_THROW(RegisteredMemory(faulty.device(), page, 4096), DeviceError);
  EXPECT_THROW(PeerAccess(faulty.device(), Device::parse("cpu:1")), DeviceError);
}

TEST(Peers, WaysHaveNames) {
  EXPECT_EQ(to_string(PeerWay::same_device), "same device");
  EXPECT_EQ(to_string(PeerWay::nvlink), "NVLink");
  EXPECT_EQ(to_string(PeerWay::none), "none");
}

}  // namespace
}  // namespace headrace::testing
