#include "measure/memory_rates.hpp"

#include <cmath>

#include "headrace/device/advice.hpp"
#include "tests/contract/devices.hpp"

namespace headrace::testing {
namespace {

class MemoryRatesTest : public DeviceTest {};
HEADRACE_ON_EVERY_DEVICE(MemoryRatesTest);

void expect_rates(const OperationRates& rates) {
  for (const double rate : {rates.read, rates.write, rates.read_modify_write}) {
    EXPECT_TRUE(std::isfinite(rate));
    EXPECT_GT(rate, 1e6);
  }
}

TEST_P(MemoryRatesTest, AreMeasuredAndGoodForAdvice) {
  const MemoryRates rates = measure::measure_memory_rates(device());
  EXPECT_EQ(rates.name, device().properties().name);
  for (const OperationRates& one : {rates.device, rates.device_random, rates.link, rates.link_random}) {
    expect_rates(one);
  }
  EXPECT_GT(rates.prefetch, 1e6);
  EXPECT_GT(rates.host_copy, 1e6);
  for (const double seconds : {rates.device_page, rates.host_page, rates.page_move}) {
    EXPECT_GT(seconds, 0);
    EXPECT_LT(seconds, 1);
  }
  EXPECT_EQ(rates.one_memory, on_cpu());
  if (!on_cpu()) {
    EXPECT_GT(rates.device.read, rates.link.read);
  }

  AccessProfile profile;
  profile.bytes = 64 * kPageBytes;
  profile.budget_bytes = 32 * kPageBytes;
  EXPECT_TRUE(advise(device(), profile, rates).forecasts.front().refused.empty());
}

}  // namespace
}  // namespace headrace::testing
