#include "grid/patches.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "headrace/grid/stencils/fdtd2d.hpp"

/// Boxes that passes skip.
namespace headrace::grid {
namespace {

/// Number of boxes that contain a cell.
int times(const std::vector<Box>& boxes, const Offsets& cell) {
  int found = 0;
  for (const Box& box : boxes) found += box.contains(Box::cell(cell)) ? 1 : 0;
  return found;
}

template <class Wanted>
void expect_cells(const std::vector<Box>& boxes, const Wanted& wanted) {
  for (std::int64_t z = -1; z < 6; ++z) {
    for (std::int64_t y = -1; y < 10; ++y) {
      for (std::int64_t x = -1; x < 14; ++x) {
        ASSERT_EQ(times(boxes, {x, y, z}), wanted({x, y, z}) ? 1 : 0) << x << " " << y << " " << z;
      }
    }
  }
}

const std::vector<Box> kSome{
    {{0, 0, 0}, {12, 3, 4}}, {{2, 1, 1}, {5, 9, 3}}, {{4, 5, 0}, {9, 7, 5}}, {{3, 2, 1}, {4, 3, 2}}};

TEST(GridPatches, DisjointBoxesHaveTheSameCells) {
  expect_cells(disjoint(kSome), [](const Offsets& cell) { return times(kSome, cell) > 0; });
  EXPECT_TRUE(disjoint({}).empty());
}

TEST(GridPatches, OutsideIsTheRest) {
  const std::vector<Box> whole{{{0, 0, 0}, {13, 9, 5}}};
  expect_cells(outside(whole, kSome),
               [&](const Offsets& cell) { return times(whole, cell) > 0 && times(kSome, cell) == 0; });
  EXPECT_EQ(outside(whole, {}), whole);
  EXPECT_TRUE(outside(whole, whole).empty());
}

/// Maxwell's equations with layers of 4 cells, in a program whose other phases have no cells there.
struct Layered {
  Extent extent{60, 50, 1};
  StencilProgram program = make_stencil(Fdtd2d<float, true>{});

  Layered() {
    for (const int phase : {1, 2, 3, 5, 6, 7, 8}) program.only[static_cast<std::size_t>(phase)].emplace();
    for (const std::size_t phase : {1U, 5U}) {
      program.only[phase] = std::vector<Box>{{{0, 0, 0}, {4, 50, 1}}, {{56, 0, 0}, {60, 50, 1}}};
    }
  }
  [[nodiscard]] std::optional<std::vector<Box>> patches() const {
    return patches_of(program, program.sweeps[1], extent);
  }
};

TEST(GridPatches, AreAsFarAboutOthersAsTheStepsReach) {
  const Layered layered;
  ASSERT_EQ(layered.program.sweeps[1].steps, 2);
  ASSERT_EQ(layered.program.sweeps[1].halo, layers(2, 2));
  EXPECT_EQ(layered.patches(), (std::vector<Box>{{{0, 0, 0}, {6, 50, 1}}, {{54, 0, 0}, {60, 50, 1}}}));
}

TEST(GridPatches, AreNoneWhereNoOtherPhaseHasCells) {
  Layered layered;
  for (const std::size_t phase : {1U, 5U}) layered.program.only[phase]->clear();
  EXPECT_EQ(layered.patches(), std::vector<Box>());
}

TEST(GridPatches, CannotBeWhereTheyWouldBeManyOrMost) {
  Layered most;
  most.program.only[3] = std::vector<Box>{{{0, 0, 0}, {60, 25, 1}}};
  EXPECT_FALSE(most.patches());
  Layered many;
  many.extent = {600, 500, 1};
  for (std::int64_t x = 0; x < 17; ++x) many.program.only[8]->push_back(Box::cell({100 + 10 * x, 100, 0}));
  EXPECT_FALSE(many.patches());
  many.program.only[8]->resize(14);
  EXPECT_TRUE(many.patches());
}

TEST(GridPatches, CannotBeWhereAPhaseRunsEverywhereOrChangesWhatPassesRead) {
  Layered everywhere;
  everywhere.program.only[8] = std::nullopt;
  EXPECT_FALSE(everywhere.patches());
  Layered changed;
  changed.program.phases[1].writes = changed.program.phases[1].writes | fields(fdtd2d::db);
  EXPECT_FALSE(changed.patches());
}

}  // namespace
}  // namespace headrace::grid
