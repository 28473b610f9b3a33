#include "headrace/measure/links.hpp"

#include <chrono>

#include "headrace/base/error.hpp"
#include "measure/link_gate.hpp"
#include "measure/link_lanes.hpp"
#include "measure/link_memory.hpp"
#include "tests/contract/devices.hpp"
#include "tests/contract/faulty_device.hpp"

namespace headrace::testing {
namespace {

using namespace std::chrono_literals;
using measure::LinkMeans;
using measure::LinkMemory;
using measure::LinkPath;
using measure::LinkRoute;

const measure::LinkOptions kSmall{.sizes = {1024, 65536}, .samples = 2, .bytes_per_sample = 128 * kKiB};

class LinksTest : public DeviceTest {
 public:
  /// Another device of the same kind, if there is one.
  [[nodiscard]] static std::optional<Device> peer() {
    if (on_cpu()) return Device::parse("cpu:7");
    for (const Device one : Device::list()) {
      if (one.kind() == device().kind() && !(one == device())) return one;
    }
    return {};
  }
  [[nodiscard]] static std::vector<LinkRoute> routes() {
    auto all = measure::link_routes(device());
    if (const auto other = peer()) {
      for (const LinkRoute& route : measure::link_routes(device(), *other)) all.push_back(route);
      all.push_back({.device = device(),
                     .path = LinkPath::from_peer,
                     .memory = LinkMemory::device,
                     .peer = other,
                     .peer_access = false});
    }
    return all;
  }
};
HEADRACE_ON_EVERY_DEVICE(LinksTest);

TEST_P(LinksTest, EveryRouteMovesItsBytesOrSaysWhyNot) {
  for (const LinkRoute& route : routes()) {
    SCOPED_TRACE(std::string(to_string(route.path)) + " " + std::string(to_string(route.memory)) + " " +
                 std::string(to_string(route.means)));
    const auto curve = measure::measure_link(route, kSmall);
    if (!measure::why_not(route).empty()) {
      EXPECT_TRUE(curve.points.empty());
      EXPECT_EQ(curve.note, measure::why_not(route));
      continue;
    }
    if (curve.points.empty()) {
      EXPECT_NE(curve.note, "");
      EXPECT_FALSE(on_cpu()) << curve.note;  // a CPU device supports all of them
      continue;
    }
    ASSERT_EQ(curve.points.size(), 2U);
    for (const auto& point : curve.points) {
      EXPECT_TRUE(point.verified);
      EXPECT_GT(point.least, 0);
      EXPECT_LE(point.least, point.rate);
      EXPECT_LE(point.rate, point.most);
      EXPECT_GT(point.alone.count(), 0);
      EXPECT_EQ(point.samples, 2);
    }
  }
}

TEST_P(LinksTest, CallsThatWaitForTheirCopyAreTimedByTheHost) {
  const auto pageable = measure::measure_link({.device = device(), .memory = LinkMemory::pageable, .peer = {}}, kSmall);
  EXPECT_FALSE(pageable.gated);
  const auto pinned = measure::measure_link({.device = device(), .memory = LinkMemory::pinned, .peer = {}}, kSmall);
  EXPECT_TRUE(pinned.gated) << pinned.note;
}

TEST_P(LinksTest, SizesThatDoNotFitDropOut) {
  auto options = kSmall;
  options.sizes.push_back(std::size_t{1} << 50);
  const auto curve = measure::measure_link({.device = device(), .peer = {}}, options);
  EXPECT_EQ(curve.points.size(), 2U);
  options.sizes = {std::size_t{1} << 50};
  const auto none = measure::measure_link({.device = device(), .peer = {}}, options);
  EXPECT_TRUE(none.points.empty());
  EXPECT_NE(none.note, "");
}

TEST_P(LinksTest, RoutesAreMeasuredWhileAllOfThemAreBusy) {
  std::vector<LinkRoute> routes{{.device = device(), .path = LinkPath::to_device, .peer = {}},
                                {.device = device(), .path = LinkPath::both_ways, .peer = {}}};
  if (const auto other = peer()) {
    routes.push_back({.device = *other, .path = LinkPath::from_device, .peer = {}});
    routes.push_back({.device = *other, .path = LinkPath::to_peer, .memory = LinkMemory::device, .peer = device()});
  }
  const auto curves = measure::measure_links_at_once(routes, kSmall);
  ASSERT_EQ(curves.size(), routes.size());
  for (std::size_t i = 0; i < routes.size(); ++i) {
    EXPECT_EQ(curves[i].route.path, routes[i].path);
    EXPECT_TRUE(curves[i].gated) << curves[i].note;
    ASSERT_EQ(curves[i].points.size(), 2U) << curves[i].note;
    for (const auto& point : curves[i].points) {
      EXPECT_TRUE(point.verified);
      EXPECT_LE(point.least, point.rate);
      EXPECT_LE(point.rate, point.most);
    }
  }
}

TEST_P(LinksTest, OneRouteThatCannotBeLeavesNoneAFigure) {
  const std::vector<LinkRoute> routes{
      {.device = device(), .peer = {}},
      {.device = device(), .path = LinkPath::to_device, .memory = LinkMemory::device, .peer = {}}};
  for (const auto& curve : measure::measure_links_at_once(routes, kSmall)) {
    EXPECT_TRUE(curve.points.empty());
    EXPECT_EQ(curve.note, measure::why_not(routes[1]));
  }
  EXPECT_THROW(static_cast<void>(measure::measure_links_at_once({}, kSmall)), UsageError);
}

TEST(Links, WhatTheProcessMayNotDoIsANoteAndAFaultIsNot) {
  FaultyDevice faulty;
  const LinkRoute route{.device = faulty.device(), .memory = LinkMemory::registered, .peer = {}};
  faulty.forbid_registration();
  const auto curve = measure::measure_link(route, kSmall);
  EXPECT_TRUE(curve.points.empty());
  EXPECT_THAT(curve.note, ::testing::HasSubstr("no permission"));
  faulty.fail();
  EXPECT_THROW(static_cast<void>(measure::measure_link(route, kSmall)), DeviceError);
}

TEST_P(LinksTest, BadOptionsAreRefused) {
  const LinkRoute route{.device = device(), .peer = {}};
  const auto with = [&](auto change) {
    auto options = kSmall;
    change(options);
    return options;
  };
  for (const auto& options : {with([](auto& o) { o.sizes = {}; }), with([](auto& o) { o.sizes = {0}; }),
                              with([](auto& o) { o.sizes = {24}; }), with([](auto& o) { o.sizes = {1024, 1024}; }),
                              with([](auto& o) { o.samples = 0; }), with([](auto& o) { o.gate_bound = 0s; })}) {
    EXPECT_THROW(static_cast<void>(measure::measure_link(route, options)), UsageError);
  }
}

TEST_P(LinksTest, AGateHoldsAStreamUntilItIsOpened) {
  measure::Gate gate(device(), 20s);
  const Buffer word(device(), MemoryKind::pinned, 4);
  const Buffer from(device(), MemoryKind::pinned, 4);
  const Buffer there(device(), MemoryKind::device, 4);
  *word.as<int>() = 1;
  *from.as<int>() = 2;
  const Stream stream(device());
  for (int round = 0; round < 3; ++round) {
    gate.next();
    ASSERT_OK(gate.close(stream));
    ASSERT_OK(stream.copy(there.data(), from.data(), 4));
    EXPECT_FALSE(*stream.ready());
    gate.open();
    ASSERT_OK(stream.wait());
    EXPECT_FALSE(gate.expired());
  }
}

TEST_P(LinksTest, AGateThatNobodyOpensEndsAndSaysSo) {
  measure::Gate gate(device(), 2ms);
  const Stream stream(device());
  gate.next();
  ASSERT_OK(gate.close(stream));
  ASSERT_OK(stream.wait()) << "ends by itself";
  EXPECT_TRUE(gate.expired());
  gate.next();
  EXPECT_FALSE(gate.expired()) << "only the one that was not opened";
  gate.open();
}

TEST_P(LinksTest, AnExpiredGateIsGivenUp) {
  auto options = kSmall;
  options.gate_bound = 1ns;
  // Every gate kernel sees its bound expire: the figures come from the host's clock, and say so.
  const auto curve = measure::measure_link({.device = device(), .peer = {}}, options);
  ASSERT_EQ(curve.points.size(), 2U);
  EXPECT_TRUE(curve.gated || !curve.note.empty());
  EXPECT_TRUE(curve.points.back().verified);
}

TEST_P(LinksTest, AWrongByteIsSeen) {
  for (const bool on_host : {true, false}) {
    const measure::LinkEnd end(device(), device(), on_host ? LinkMemory::pinned : LinkMemory::device, on_host, 65536);
    end.fill(5);
    EXPECT_TRUE(end.holds(65536, 5));
    EXPECT_FALSE(end.holds(65536, 6));
    const Stream stream(device());
    ASSERT_OK(stream.fill(end.data() + 40000, 0, 1));
    ASSERT_OK(stream.wait());
    EXPECT_FALSE(end.holds(65536, 5));
    EXPECT_TRUE(end.holds(40000 / 8 * 8, 5)) << "the results before it are right";
    end.spoil(65536);
    EXPECT_FALSE(end.holds(8, 5));
  }
}

}  // namespace
}  // namespace headrace::testing
