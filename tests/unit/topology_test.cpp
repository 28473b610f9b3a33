#include "headrace/device/topology.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <set>
#include <thread>

#include "headrace/device/detail/host_thread.hpp"

namespace headrace {
namespace {

std::set<int> numbers(const std::vector<Processor>& processors) {
  std::set<int> set;
  for (const Processor& processor : processors) set.insert(processor.os_index);
  return set;
}

std::set<int> allowed_to_this_thread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  std::set<int> allowed;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) allowed.insert(i);
  }
  return allowed;
}

TEST(HostThreadTest, OfACpuDeviceRunsWhereThereIsRoom) {
  EXPECT_FALSE(processor_near(Device::parse("cpu"), 3));
  std::set<int> allowed;
  std::thread thread = start_thread_near(Device::parse("cpu"), 3, [&] { allowed = allowed_to_this_thread(); });
  thread.join();
  EXPECT_EQ(allowed, allowed_to_this_thread());
}

TEST(TopologyTest, HasTheProcessorsOfThisProcess) {
  const Topology& machine = Topology::machine();
  EXPECT_EQ(&machine, &Topology::machine());
  EXPECT_EQ(numbers(machine.processors()), allowed_to_this_thread());
  EXPECT_GE(machine.core_count(), 1U);
  EXPECT_LE(machine.core_count(), machine.processors().size());
  EXPECT_GE(machine.last_level_cache_count(), 1U);
  EXPECT_LE(machine.last_level_cache_count(), machine.core_count());
}

TEST(TopologyTest, CacheDistanceOrderHasEveryProcessorOnce) {
  const Topology& machine = Topology::machine();
  const auto order = machine.by_cache_distance();
  EXPECT_EQ(order.size(), machine.processors().size());
  EXPECT_EQ(numbers(order), numbers(machine.processors()));
}

TEST(TopologyTest, CacheDistanceGrows) {
  const auto order = Topology::machine().by_cache_distance();
  const Processor& start = order.front();
  const auto distance = [&](const Processor& p) {
    if (p.numa_node != start.numa_node) return 2;
    return p.last_level_cache == start.last_level_cache ? 0 : 1;
  };
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end(),
                             [&](const Processor& a, const Processor& b) { return distance(a) < distance(b); }));
  // No core's second hardware thread comes before the first one of another core at the same distance.
  std::set<int> cores;
  bool second_seen = false;
  for (const Processor& processor : order) {
    if (distance(processor) != 0) break;
    const bool first = cores.insert(processor.core).second;
    EXPECT_FALSE(first && second_seen);
    second_seen |= !first;
  }
}

TEST(TopologyTest, StartsOnTheNodeAskedFor) {
  const Topology& machine = Topology::machine();
  const int node = machine.processors().back().numa_node;
  EXPECT_EQ(machine.by_cache_distance(node).front().numa_node, node);
  EXPECT_EQ(machine.by_cache_distance(12345).front().os_index, machine.by_cache_distance().front().os_index);
}

TEST(TopologyTest, DescribesEveryCacheGroup) {
  const std::string text = Topology::machine().describe();
  EXPECT_EQ(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1,
            Topology::machine().last_level_cache_count());
  EXPECT_THAT(text, ::testing::ContainsRegex("core(s share| has) .*: [0-9]"));
}

TEST(TopologyTest, BindsAndUnbindsThisThreadOnly) {
  const Topology& machine = Topology::machine();
  const auto before = allowed_to_this_thread();
  std::thread([&] {
    for (const Processor& processor : machine.processors()) {
      ASSERT_TRUE(bind_this_thread(processor).ok());
      EXPECT_EQ(allowed_to_this_thread(), std::set<int>{processor.os_index});
    }
    ASSERT_TRUE(unbind_this_thread().ok());
    EXPECT_EQ(allowed_to_this_thread(), before);
  }).join();
  EXPECT_EQ(allowed_to_this_thread(), before);
}

TEST(TopologyTest, BindingToAProcessorThatIsNotThereFails) {
  EXPECT_EQ(bind_this_thread({.os_index = -1}).error().code, Errc::invalid_argument);
  const Status missing = bind_this_thread({.os_index = 100000});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error(), (Error{Errc::system, EINVAL}));
}

}  // namespace
}  // namespace headrace
