#include "grid/slabs/visit.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "headrace/grid/stencils/heat.hpp"
#include "headrace/grid/stencils/jacobi.hpp"

/// The lag in rows of each operation of a visit, worked out by hand.
namespace headrace::grid {
namespace {

constexpr Extent kTall{.nx = 8, .ny = 100};

[[nodiscard]] std::vector<std::int64_t> lags_of(const Visit& visit) {
  std::vector<std::int64_t> lags;
  for (const Operation& operation : visit.operations) lags.push_back(operation.lag);
  return lags;
}

TEST(GridVisitTest, EachStepLagsAsFarAsItReads) {
  StencilProgram program = heat<float>(2, 0.1F);
  program.sweeps.clear();
  const Visit visit = visit_of(program, kTall, 4, true, 1);
  EXPECT_EQ(lags_of(visit), (std::vector<std::int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(visit.end_lag, 4);
  EXPECT_EQ(visit.kept_rows, 5) << "the row below is read as well";
  EXPECT_EQ(visit.loaded, fields(Heat<float, 2>::now)) << "the other field is set before it is read";
  EXPECT_EQ(visit.changed, fields(Heat<float, 2>::now, Heat<float, 2>::next));
  EXPECT_EQ(lags_of(visit_of(program, {.nx = 8, .ny = 5, .nz = 9}, 2, true, 2)), (std::vector<std::int64_t>{0, 0}))
      << "nothing is read across planes";
}

/// A pass reads as far as its steps do together; the last step of a call is a pass of its own.
TEST(GridVisitTest, PassesLagAsFarAsTheirStepsTogether) {
  const StencilProgram program = heat<float>(2, 0.1F);
  const Visit amid = visit_of(program, kTall, 8, false, 1);
  EXPECT_EQ(lags_of(amid), (std::vector<std::int64_t>{4, 8}));
  EXPECT_EQ(amid.kept_rows, 12);
  const Visit last = visit_of(program, kTall, 8, true, 1);
  EXPECT_EQ(lags_of(last), (std::vector<std::int64_t>{4, 8, 10, 11}))
      << "shorter passes wait until longer ones have read the cells that they overwrite";
}

/// A restricted phase leaves other cells as they are, so the pass needs its field, but uses it only in the phase's
/// boxes.
TEST(GridVisitTest, WhatRestrictedPhasesNeed) {
  StencilProgram program = heat<float>(2, 0.1F);
  program.sweeps.clear();
  program.swaps.clear();
  const Box box{{2, 10, 0}, {4, 20, 1}};
  program.only[0] = {box};
  const Visit visit = visit_of(program, kTall, 1, true, 1);
  EXPECT_EQ(visit.loaded, fields(Heat<float, 2>::now, Heat<float, 2>::next));
  EXPECT_EQ(cells_in_use(program, kTall, Heat<float, 2>::next), std::vector<Box>{box});
  EXPECT_EQ(cells_in_use(program, kTall, Heat<float, 2>::now), std::vector<Box>{box.grow(layers(1, 2))});
  program.swaps = {{Heat<float, 2>::now, Heat<float, 2>::next}};
  EXPECT_EQ(cells_in_use(program, kTall, Heat<float, 2>::next), std::vector<Box>{Box::whole(kTall)})
      << "a field that swaps places is elsewhere after a step";
}

TEST(GridVisitTest, FieldsThatStay) {
  const StencilProgram program = jacobi<float>(2);
  EXPECT_TRUE(stays(program, kJacobiSource));
  EXPECT_FALSE(stays(program, 0));
  EXPECT_FALSE(stays(program, 1));
}

}  // namespace
}  // namespace headrace::grid
