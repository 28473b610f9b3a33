// Activity of the machine outside this process.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include "headrace/measure/detail/machine_watch.hpp"

namespace headrace::measure {
namespace {

TEST(MachineWatch, SharesAreSharesAndShortLapsSayNothing) {
  MachineWatch watch;
  const MachineActivity at_once = watch.lap();
  EXPECT_EQ(at_once.others, 0);
  EXPECT_EQ(at_once.steal, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const MachineActivity activity = watch.lap();
  for (const double share : {activity.others, activity.steal, activity.waiting}) {
    EXPECT_GE(share, 0);
    EXPECT_LE(share, 1);
  }
  EXPECT_GE(activity.over, std::chrono::milliseconds(300));
}

TEST(MachineWatch, SeesAnotherProcessThatRuns) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    for (std::atomic<unsigned> turns{0};;) turns.fetch_add(1, std::memory_order_relaxed);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  MachineWatch watch;
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const MachineActivity activity = watch.lap();
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  const auto processors = static_cast<double>(std::thread::hardware_concurrency());
  EXPECT_GT(activity.others, 0.2 / processors);
  if (processors <= 4) {
    EXPECT_NE(why_disturbed(activity), "");
  }
}

}  // namespace
}  // namespace headrace::measure
