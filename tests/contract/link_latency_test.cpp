#include "measure/link_latency.hpp"

#include "headrace/base/error.hpp"
#include "headrace/device/detail/peer.hpp"
#include "tests/contract/devices.hpp"

namespace headrace::testing {
namespace {

using measure::FarMemory;
using measure::HiddenWork;

class LinkLatencyTest : public DeviceTest {
 public:
  [[nodiscard]] static std::optional<Device> peer() {
    if (on_cpu()) return Device::parse("cpu:7");
    for (const Device one : Device::list()) {
      if (one.kind() == device().kind() && !(one == device()) && peer_connection(device(), one).access) return one;
    }
    return {};
  }
};
HEADRACE_ON_EVERY_DEVICE(LinkLatencyTest);

TEST_P(LinkLatencyTest, AChaseEndsWhereItShould) {
  for (const FarMemory memory : {FarMemory::local, FarMemory::peer, FarMemory::host}) {
    if (memory == FarMemory::peer && !peer()) continue;
    for (const bool first_cache : {true, false}) {
      const auto result = measure::measure_chase(device(), {.memory = memory,
                                                            .peer = peer(),
                                                            .bytes = 64 * 1024,
                                                            .first_cache = first_cache,
                                                            .steps = 3001,  // not a whole number of rounds
                                                            .samples = 3});
      EXPECT_TRUE(result.verified) << to_string(memory);
      EXPECT_GT(result.nanoseconds, 0);
      EXPECT_LE(result.least, result.nanoseconds);
      EXPECT_LE(result.nanoseconds, result.most);
      EXPECT_EQ(result.cycles.has_value(), !on_cpu());
    }
  }
}

TEST_P(LinkLatencyTest, AChaseThatCannotBeIsRefused) {
  EXPECT_THROW(static_cast<void>(measure::measure_chase(device(), {.peer = {}, .stride_bytes = 0})), UsageError);
  EXPECT_THROW(static_cast<void>(measure::measure_chase(device(), {.peer = {}, .stride_bytes = 12})), UsageError);
  EXPECT_THROW(static_cast<void>(measure::measure_chase(device(), {.peer = {}, .bytes = 128})), UsageError);
  EXPECT_THROW(static_cast<void>(measure::measure_chase(device(), {.memory = FarMemory::peer, .peer = {}})),
               UsageError);
  EXPECT_THROW(static_cast<void>(measure::measure_chase(device(), {.peer = {}, .samples = 0})), UsageError);
}

TEST_P(LinkLatencyTest, OwnersAndReadersFollowOneChain) {
  if (!peer()) GTEST_SKIP() << "needs two devices";
  const auto result = measure::measure_owner_cache(device(), *peer(), 1);
  EXPECT_TRUE(result.verified);
  EXPECT_GT(result.swept, 0);
  EXPECT_GT(result.after_owner, 0);
  EXPECT_GT(result.after_reader, 0);
}

TEST_P(LinkLatencyTest, TwoDevicesLoseNoAddition) {
  if (!peer()) GTEST_SKIP() << "needs two devices";
  const auto result = measure::measure_peer_atomics(device(), *peer(), 3);
  if (!result.note.empty()) {
    EXPECT_FALSE(on_cpu()) << result.note;
    return;
  }
  EXPECT_TRUE(result.verified);
  EXPECT_GT(result.local_per_second, 0);
  EXPECT_GT(result.remote_per_second, 0);
  EXPECT_GT(result.together_per_second, 0);
}

TEST_P(LinkLatencyTest, HostAndDeviceLoseNoAddition) {
  const auto result = measure::measure_host_atomics(device(), 3);
  EXPECT_EQ(result.verified, device().properties().host_native_atomics) << result.note;
  EXPECT_EQ(result.note.empty(), device().properties().host_native_atomics);
}

TEST_P(LinkLatencyTest, WorkBetweenALoadAndItsUseIsDone) {
  for (const HiddenWork work : {HiddenWork::loads, HiddenWork::arithmetic}) {
    const auto curve = measure::measure_hiding(device(), FarMemory::host, {}, work, 1);
    EXPECT_TRUE(curve.verified);
    ASSERT_GT(curve.points.size(), 5U);
    EXPECT_EQ(curve.points.front().count, 0U);
    for (const auto& point : curve.points) {
      EXPECT_GT(point.both, 0);
      EXPECT_GT(point.far_only, 0);
      EXPECT_GE(point.hidden, 0);
      EXPECT_LE(point.hidden, 1);
    }
    EXPECT_GT(curve.points.back().work_only, curve.points[1].work_only) << "more work takes longer";
  }
}

}  // namespace
}  // namespace headrace::testing
