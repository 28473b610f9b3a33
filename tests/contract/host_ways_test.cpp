#include "measure/host_ways.hpp"

#include <set>

#include "devices.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"

namespace headrace::testing {

namespace {

using measure::HostWay;
using measure::HostWayCost;

class HostWays : public DeviceTest {};

TEST_P(HostWays, EachBringsTheBytesAndSaysWhatItCosts) {
  const std::vector<HostWayCost> costs = measure::measure_host_ways(device(), 3 * kMiB - 5, 2);
  std::set<HostWay> seen;
  for (const HostWayCost& cost : costs) {
    SCOPED_TRACE(to_string(cost.way));
    seen.insert(cost.way);
    if (!cost.supported) continue;
    EXPECT_TRUE(cost.verified);
    EXPECT_EQ(cost.bytes, 3 * kMiB);
    EXPECT_EQ(cost.transfer.size(), 2U);
    EXPECT_EQ(cost.fill.size(), cost.way == HostWay::pool ? 2U : 0U);
    for (const Duration time : cost.transfer) EXPECT_GT(time, Duration::zero());
    EXPECT_GE(cost.once, Duration::zero());
    EXPECT_GE(cost.back, Duration::zero());
  }
  EXPECT_EQ(seen.size(), 5U);
}

TEST_P(HostWays, NothingIsNotMeasured) {
  EXPECT_THROW(static_cast<void>(measure::measure_host_ways(device(), 0, 1)), UsageError);
  EXPECT_THROW(static_cast<void>(measure::measure_host_ways(device(), 1, 0)), UsageError);
}

HEADRACE_ON_EVERY_DEVICE(HostWays);

}  // namespace

}  // namespace headrace::testing
