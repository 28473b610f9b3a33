#include "measure/core_round_trips.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/base/error.hpp"

namespace headrace::measure {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int> order_of(const Topology& machine, std::optional<int> numa_node = {}) {
  std::vector<int> order;
  for (const Processor& processor : machine.by_cache_distance(numa_node)) order.push_back(processor.os_index);
  return order;
}

// Two nodes of two caches of two cores of two hardware threads, laid out like EPYC's core complexes.
TEST(SyntheticTopology, OrdersCachesThenNodes) {
  const Topology machine = Topology::synthetic("numa:2 l3:2 core:2 pu:2");
  EXPECT_EQ(machine.processors().size(), 16U);
  EXPECT_EQ(machine.core_count(), 8U);
  EXPECT_EQ(machine.last_level_cache_count(), 4U);
  EXPECT_THAT(order_of(machine), ElementsAre(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15));
  EXPECT_THAT(order_of(machine, 1), ElementsAre(8, 10, 9, 11, 12, 14, 13, 15, 0, 2, 4, 6, 1, 3, 5, 7));
  EXPECT_THAT(machine.reordering(), HasSubstr("4 last level caches"));
}

// If the operating system numbers cores across caches, the order differs from its numbering.
TEST(SyntheticTopology, TheOrderIsNotTheOperatingSystems) {
  const Topology machine = Topology::synthetic("l3:2 core:4 pu:1(indexes=0,2,4,6,1,3,5,7)");
  EXPECT_THAT(order_of(machine), ElementsAre(0, 2, 4, 6, 1, 3, 5, 7));
}

TEST(SyntheticTopology, OneCacheSaysThatReorderingCannotMatter) {
  EXPECT_THAT(Topology::synthetic("l3:1 core:8 pu:1").reordering(), HasSubstr("reordering has no effect"));
  EXPECT_THAT(Topology::synthetic("l3:1 core:4 pu:2").reordering(), HasSubstr("hardware threads"));
  EXPECT_THAT(Topology::synthetic("core:1 pu:1").reordering(), HasSubstr("nothing to reorder"));
  EXPECT_EQ(Topology::synthetic("l3:1 core:8 pu:1").last_level_cache_count(), 1U);
}

TEST(SyntheticTopology, NonsenseIsRefused) {
  EXPECT_THROW(static_cast<void>(Topology::synthetic("bread:2")), UsageError);
}

TEST(CoreRoundTrips, PairsHoldEveryDistance) {
  const auto pairs = pairs_by_distance(Topology::synthetic("numa:2 l3:2 core:4 pu:2"), 2);
  std::vector<std::string_view> distances;
  for (const auto& [a, b] : pairs) {
    EXPECT_EQ(a.os_index, 0);
    distances.push_back(to_string(distance(a, b)));
  }
  EXPECT_THAT(distances,
              ElementsAre("same core", "same last level cache", "same last level cache", "same NUMA node, other cache",
                          "same NUMA node, other cache", "other NUMA node", "other NUMA node"));
  EXPECT_TRUE(pairs_by_distance(Topology::synthetic("core:1 pu:1")).empty());
}

TEST(CoreRoundTrips, OfThisMachineTakeTime) {
  const auto found = measure_core_round_trips(1);
  EXPECT_EQ(found.empty(), Topology::machine().processors().size() == 1);
  for (const CoreRoundTrip& one : found) {
    EXPECT_GT(one.round_trip, Duration::zero());
    EXPECT_NE(one.distance, CacheDistance::same_processor);
  }
}

TEST(CoreRoundTrips, NeedTwoProcessorsThatAreThere) {
  const Processor first = Topology::machine().processors().front();
  EXPECT_EQ(core_round_trip(first, first).error().code, Errc::invalid_argument);
  EXPECT_FALSE(core_round_trip(first, {.os_index = 100000}).ok());
}

}  // namespace
}  // namespace headrace::measure
