#include <gtest/gtest.h>

#include <set>

#include "headrace/base/error.hpp"
#include "headrace/measure/links.hpp"
#include "measure/link_pattern.hpp"

namespace headrace::measure {
namespace {

LinkCurve curve_of(std::vector<std::pair<std::size_t, double>> points) {
  LinkCurve curve{.route = {.device = Device::parse("cpu"), .peer = {}}, .points = {}, .note = {}};
  for (const auto& [bytes, rate] : points) curve.points.push_back({.bytes = bytes, .rate = rate});
  return curve;
}

TEST(LinkSizes, GrowByTheFactor) {
  EXPECT_EQ(link_sizes(1024, 16 * 1024, 4), (std::vector<std::size_t>{1024, 4096, 16384}));
  EXPECT_EQ(link_sizes(1024, 16 * 1024 - 1, 4), (std::vector<std::size_t>{1024, 4096}));
  EXPECT_TRUE(link_sizes(1024, 1023, 2).empty());
  EXPECT_EQ(link_sizes(1, ~std::size_t{0}, 2).size(), 64U) << "no overflow";
  EXPECT_THROW(static_cast<void>(link_sizes(0, 10, 2)), UsageError);
  EXPECT_THROW(static_cast<void>(link_sizes(1, 10, 1)), UsageError);
}

TEST(LinkSaturation, IsTheSmallestSizeNearTheBest) {
  const LinkCurve curve = curve_of({{1024, 1e9}, {4096, 8e9}, {16384, 9e9}, {65536, 10e9}, {262144, 9.5e9}});
  EXPECT_EQ(saturation_bytes(curve), 16384U);
  EXPECT_EQ(saturation_bytes(curve, 0.8), 4096U);
  EXPECT_EQ(saturation_bytes(curve, 1.0), 65536U);
  EXPECT_EQ(saturation_bytes(curve_of({})), 0U);
}

TEST(LinkRates, ArePciExpressOwn) {
  EXPECT_NEAR(*pcie_rate(3, 16), 15.75e9, 0.01e9);  // published: 985 MB/s per lane
  EXPECT_NEAR(*pcie_rate(5, 16), 63.0e9, 0.1e9);
  EXPECT_NEAR(*pcie_rate(1, 1), 0.25e9, 1);
  EXPECT_FALSE(pcie_rate({}, 16));
  EXPECT_FALSE(pcie_rate(5, {}));
  EXPECT_FALSE(pcie_rate(0, 16));
  EXPECT_FALSE(pcie_rate(7, 16));
}

TEST(LinkPattern, DependsOnPositionAndSeed) {
  std::set<std::uint64_t> words;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (std::uint64_t i = 0; i < 100; ++i) words.insert(pattern(seed, i));
  }
  EXPECT_EQ(words.size(), 1000U);
}

TEST(LinkRoutes, NameWhatCannotBeMeasured) {
  const Device cpu = Device::parse("cpu:0");
  const Device other = Device::parse("cpu:1");
  for (const LinkRoute& route : link_routes(cpu)) {
    EXPECT_FALSE(route.peer);
    EXPECT_EQ(why_not(route), "") << to_string(route.path) << " " << to_string(route.memory);
  }
  for (const LinkRoute& route : link_routes(cpu, other)) EXPECT_EQ(why_not(route), "");
  EXPECT_NE(why_not({.device = cpu, .path = LinkPath::to_device, .memory = LinkMemory::device, .peer = {}}), "");
  EXPECT_NE(why_not({.device = cpu, .path = LinkPath::within, .memory = LinkMemory::pinned, .peer = {}}), "");
  EXPECT_NE(why_not({.device = cpu, .path = LinkPath::to_peer, .memory = LinkMemory::pinned, .peer = other}), "");
  EXPECT_NE(why_not({.device = cpu,
                     .path = LinkPath::to_peer,
                     .memory = LinkMemory::device,
                     .means = LinkMeans::kernel,
                     .peer = other,
                     .peer_access = false}),
            "");
  EXPECT_THROW(static_cast<void>(why_not({.device = cpu, .path = LinkPath::to_peer, .peer = {}})), UsageError);
  EXPECT_THROW(static_cast<void>(why_not({.device = cpu, .path = LinkPath::to_peer, .peer = cpu})), UsageError);
}

}  // namespace
}  // namespace headrace::measure
