#include "headrace/grid/detail/decomposition.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

#include "grid/flow.hpp"
#include "headrace/base/error.hpp"

namespace headrace::grid {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// Expects every cell of the domain to be in exactly one part.
void expect_tiles(const Decomposition& cut) {
  const Extent extent = cut.extent();
  std::vector<int> owners(static_cast<std::size_t>(extent.cells()));
  for (const Box& part : cut.parts()) {
    EXPECT_FALSE(part.empty());
    for (std::int64_t z = part.low[2]; z < part.high[2]; ++z) {
      for (std::int64_t y = part.low[1]; y < part.high[1]; ++y) {
        for (std::int64_t x = part.low[0]; x < part.high[0]; ++x) {
          ++owners.at(static_cast<std::size_t>((z * extent.ny + y) * extent.nx + x));
        }
      }
    }
  }
  EXPECT_THAT(owners, ::testing::Each(1));
}

TEST(BoxTest, IntersectsGrowsAndCounts) {
  const Box box{{1, 2, 3}, {4, 5, 6}};
  EXPECT_EQ(box.cells(), 27);
  EXPECT_EQ(box.grow(layers(1, 2)), (Box{{0, 1, 3}, {5, 6, 6}}));
  EXPECT_EQ(box.intersect({{2, 0, 0}, {9, 9, 4}}), (Box{{2, 2, 3}, {4, 5, 4}}));
  EXPECT_TRUE(box.intersect({{4, 0, 0}, {9, 9, 9}}).empty());
  EXPECT_EQ((Box{{5, 5, 5}, {1, 1, 1}}).cells(), 0);
  EXPECT_TRUE(box.contains(Box::cell({1, 2, 3})));
  EXPECT_FALSE(box.contains(Box::cell({4, 2, 3})));
  EXPECT_EQ(to_string(box), "[1, 4) x [2, 5) x [3, 6)");
}

TEST(DecompositionTest, PartsTileTheDomain) {
  for (const std::size_t axis : {0U, 1U, 2U}) {
    for (const std::size_t parts : {1U, 2U, 3U, 5U, 7U}) expect_tiles(Decomposition::slabs({7, 8, 9}, parts, axis));
  }
  expect_tiles(Decomposition::blocks({7, 8, 9}, {2, 3, 4}));
  expect_tiles(Decomposition::best({30, 20, 10}, 8));
  expect_tiles(Decomposition::weighted({5, 100}, 1, std::vector<double>{3, 1, 0.001, 1}));
}

TEST(DecompositionTest, EqualPartsDifferByACellAtMost) {
  for (const Box& part : Decomposition::slabs({1, 1000}, 7, 1).parts()) {
    EXPECT_GE(part.size(1), 142);
    EXPECT_LE(part.size(1), 143);
  }
  const auto large = Decomposition::slabs({2147483647}, 1000, 0);
  EXPECT_EQ(large.parts().back().high[0], 2147483647);
}

TEST(DecompositionTest, TheBestCutHasTheFewestCellsOfFaces) {
  using Along = std::array<std::size_t, 3>;
  EXPECT_EQ(Decomposition::best({100, 100, 100}, 8).along(), (Along{1, 2, 4})) << "columns cost more";
  EXPECT_EQ(Decomposition::best({100, 100, 100}, 2).along(), (Along{1, 1, 2})) << "among equals, the slowest axis";
  EXPECT_EQ(Decomposition::best({100, 100}, 2).along(), (Along{1, 2, 1}));
  EXPECT_EQ(Decomposition::best({1000, 10}, 2).along(), (Along{2, 1, 1}));
  EXPECT_EQ(Decomposition::best({32000, 4000}, 2).along(), (Along{1, 2, 1}));
  EXPECT_EQ(Decomposition::best({16000, 16000}, 4).along(), (Along{1, 4, 1}));
  EXPECT_EQ(Decomposition::best({2000, 100}, 4).along(), (Along{2, 2, 1}));
  EXPECT_EQ(Decomposition::best({4, 4, 4}, 1).along(), (Along{1, 1, 1}));
}

TEST(DecompositionTest, WeightedPartsGoWithSpeed) {
  const auto cut = Decomposition::weighted({10, 100}, 1, std::vector<double>{1, 3, 1});
  EXPECT_EQ(cut.parts()[0].size(1), 20);
  EXPECT_EQ(cut.parts()[1].size(1), 60);
  EXPECT_EQ(cut.parts()[2].size(1), 20);
  const auto narrow = Decomposition::weighted({3}, 0, std::vector<double>{1000, 1, 1});
  for (const Box& part : narrow.parts()) EXPECT_EQ(part.size(0), 1) << "at least a cell each";
}

TEST(DecompositionTest, ExchangesAreWhatNeighboursReach) {
  const auto cut = Decomposition::blocks({8, 8}, {2, 2, 1});
  const auto found = cut.exchanges({.low = {2, 1, 0}, .high = {1, 1, 0}});
  EXPECT_EQ(found.size(), 12U) << "each of four parts from each other";
  EXPECT_THAT(found, ::testing::Contains(Exchange{0, 1, {{2, 0, 0}, {4, 4, 1}}}));
  EXPECT_THAT(found, ::testing::Contains(Exchange{1, 0, {{4, 0, 0}, {5, 4, 1}}}));
  EXPECT_THAT(found, ::testing::Contains(Exchange{0, 3, {{2, 3, 0}, {4, 4, 1}}})) << "a corner";
  EXPECT_EQ(cut.exchanges({.low = {1, 0, 0}, .high = {}}).size(), 2U) << "to the right only";
  EXPECT_TRUE(cut.exchanges({}).empty());
}

TEST(DecompositionTest, PartsAtPeriodicWallsAreNeighbours) {
  auto cut = Decomposition::blocks({8, 8}, {2, 1, 1});
  cut.set_periodic({true, false, false});
  EXPECT_EQ(cut.with_images(), (Box{{-8, 0, 0}, {16, 8, 1}}));
  EXPECT_EQ(cut.neighbours(0), (Layers{{1, 0, 0}, {1, 0, 0}}));
  const auto found = cut.exchanges({.low = {2, 1, 0}, .high = {1, 1, 0}});
  EXPECT_THAT(found, ::testing::UnorderedElementsAre(Exchange{0, 1, {{2, 0, 0}, {4, 8, 1}}},
                                                     Exchange{1, 0, {{4, 0, 0}, {5, 8, 1}}},
                                                     Exchange{0, 1, {{0, 0, 0}, {1, 8, 1}}, {8, 0, 0}},
                                                     Exchange{1, 0, {{6, 0, 0}, {8, 8, 1}}, {-8, 0, 0}}));
  EXPECT_TRUE(std::ranges::is_sorted(found, {}, &Exchange::to)) << "those of a pair follow each other";
}

TEST(DecompositionTest, APartAloneBetweenPeriodicWallsIsItsOwnNeighbour) {
  auto whole = Decomposition::blocks({4, 3}, {1, 1, 1});
  whole.set_periodic({true, true, false});
  const auto found = whole.exchanges({.low = {1, 1, 0}, .high = {}});
  EXPECT_THAT(found, ::testing::UnorderedElementsAre(Exchange{0, 0, {{3, 0, 0}, {4, 3, 1}}, {-4, 0, 0}},
                                                     Exchange{0, 0, {{0, 2, 0}, {4, 3, 1}}, {0, -3, 0}},
                                                     Exchange{0, 0, {{3, 2, 0}, {4, 3, 1}}, {-4, -3, 0}}));
  EXPECT_NO_THROW(whole.require_room_for(layers(3, 2)));
  EXPECT_THROW(whole.require_room_for(layers(4, 2)), UsageError);
}

TEST(DecompositionTest, SaysWhatIsWrongAndWhatWouldDo) {
  EXPECT_THAT(([] { static_cast<void>(Decomposition::slabs({4, 100}, 5, 0)); }),
              ThrowsMessage<UsageError>(HasSubstr("5 parts along x")));
  EXPECT_THAT(([] { static_cast<void>(Decomposition::slabs({4, 0}, 1, 0)); }),
              ThrowsMessage<UsageError>(HasSubstr("along y it must have 1 to 2147483647 cells")));
  EXPECT_THROW(static_cast<void>(Decomposition::slabs({2147483648}, 1, 0)), UsageError);
  EXPECT_THROW(static_cast<void>(Decomposition::slabs({4, 4}, 0, 1)), UsageError);
  EXPECT_THROW(static_cast<void>(Decomposition::slabs({4, 4}, 1, 3)), UsageError);
  EXPECT_THROW(static_cast<void>(Decomposition::blocks({4, 4}, {1, 0, 1})), UsageError);
  EXPECT_THROW(static_cast<void>(Decomposition::best({4, 4}, 0)), UsageError);
  EXPECT_THAT(([] { static_cast<void>(Decomposition::best({4, 4}, 7)); }),
              ThrowsMessage<UsageError>(HasSubstr("no three factors of 7")));
  EXPECT_THROW(static_cast<void>(Decomposition::weighted({4}, 0, std::vector<double>{1, 0})), UsageError);
  EXPECT_THROW(static_cast<void>(Decomposition::weighted({4}, 0, std::vector<double>{1, NAN})), UsageError);
  EXPECT_THROW(static_cast<void>(Decomposition::weighted({4}, 0, {})), UsageError);
  EXPECT_THAT(
      ([] { Decomposition::slabs({9, 9}, 3, 1).require_room_for(layers(4)); }),
      ThrowsMessage<UsageError>(HasSubstr("3 cells along y is thinner than the 4 ghost layers of its neighbour; "
                                          "use at most 2 equal parts along y")));
  Decomposition::slabs({9, 9}, 3, 1).require_room_for({.low = {99, 3, 99}, .high = {99, 3, 99}});
}

/// Two fields updated in place, as in FDTD: the first phase reads ahead, the second reads behind.
StencilProgram in_place() {
  StencilProgram program;
  program.field_count = 2;
  program.phases = {
      {.writes = fields(1), .reads = fields(1), .neighbours = fields(0), .reach = {.low = {}, .high = {1, 0, 0}}},
      {.writes = fields(0), .reads = fields(0), .neighbours = fields(1), .reach = {.low = {1, 0, 0}, .high = {}}}};
  return program;
}

TEST(FlowTest, GhostsAreAsWideAsWhatIsReadBeforeTheNextExchange) {
  const Flow flow = flow_of(in_place(), 3);
  EXPECT_EQ(flow.needed[0], (Layers{.low = {3, 0, 0}, .high = {3, 0, 0}}));
  EXPECT_EQ(flow.needed[1], (Layers{.low = {3, 0, 0}, .high = {2, 0, 0}}));
  EXPECT_EQ(flow.exchanged, fields(0, 1));
  EXPECT_EQ(flow.tail, 1U) << "the second phase reads what the first writes";
  ASSERT_EQ(flow.cycles.size(), 3U);
  EXPECT_EQ(flow.cycles[0].beyond[0][0], (Layers{.low = {1, 0, 0}, .high = {}}));
  EXPECT_EQ(flow.cycles[2].beyond[2][1], Layers{}) << "at the end nothing beyond the owned cells";
}

TEST(FlowTest, WhatIsOverwrittenOrNeverChangesIsNotExchanged) {
  StencilProgram program;
  program.field_count = 3;
  program.phases = {{.writes = fields(1), .reads = fields(2), .neighbours = fields(0), .reach = layers(1, 1)}};
  program.swaps = {{0, 1}};
  const Flow flow = flow_of(program, 2);
  EXPECT_EQ(flow.exchanged, fields(0));
  EXPECT_EQ(flow.needed[0], layers(2, 1));
  EXPECT_TRUE(flow.needed[1].none());
  EXPECT_EQ(flow.needed[2], layers(1, 1)) << "needed there, but set once and for all";
  EXPECT_EQ(flow.tail, 0U);
}

}  // namespace
}  // namespace headrace::grid
