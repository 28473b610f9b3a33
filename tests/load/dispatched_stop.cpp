#include <gtest/gtest.h>

#include <algorithm>

#include "headrace/operators/light.hpp"
#include "headrace/serve/engine.hpp"
#include "tests/contract/devices.hpp"
#include "tests/contract/exchange.hpp"

namespace headrace::serve {
namespace {

using headrace::testing::exchange;
using headrace::testing::query_of;
using std::chrono::milliseconds;

class DispatchedStop : public headrace::testing::DeviceTest {};

TEST_P(DispatchedStop, TakesATenthOfASecondAndLosesNothing) {
  const Operator op = operators::light();
  Plan plan;
  plan.schedule = Schedule::dispatched;
  plan.host_memory = MemoryKind::mapped;
  plan.slots = 1024;
  for (const int mode : {0, 1, 2, 3}) {
    const bool busy = mode % 2 == 1;
    plan.answer_inline = mode >= 2;
    SCOPED_TRACE(::testing::Message() << (busy ? "busy" : "idle") << (plan.answer_inline ? ", inline" : ""));
    Duration best = Duration::max();
    for (int attempt = 0; attempt < 5 && best > milliseconds(100); ++attempt) {  // the machine may be busy
      Engine engine(device(), op, plan);
      Client client = engine.connect();
      ASSERT_NO_FATAL_FAILURE(exchange(client, op, 1, 10));
      std::size_t sent = 0;
      while (busy && client.submit(query_of(op, sent))) ++sent;
      const Time began = SteadyClock::now();
      engine.stop();
      best = std::min(best, SteadyClock::now() - began);
      EXPECT_EQ(client.submit(query_of(op, 1)).error().code, Errc::stopped);
      std::size_t back = 0;
      client.poll(
          [&](const Completion& done) {
            EXPECT_TRUE(done.status.ok() || done.status.error().code == Errc::stopped);
            ++back;
          },
          sent + 1);
      EXPECT_EQ(back, sent);
    }
    EXPECT_LE(best, milliseconds(100));
  }
}

using headrace::testing::device_names;
using headrace::testing::test_name;
HEADRACE_ON_EVERY_DEVICE(DispatchedStop);

}  // namespace
}  // namespace headrace::serve
