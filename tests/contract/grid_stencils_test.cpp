#include <cmath>
#include <numbers>

#include "headrace/base/error.hpp"
#include "headrace/grid/simulation.hpp"
#include "headrace/grid/stencils/heat.hpp"
#include "headrace/grid/stencils/jacobi.hpp"
#include "tests/contract/grid_stencils.hpp"
#include "tests/contract/grid_support.hpp"

namespace headrace::testing {
namespace {

using grid::Decomposition;
using grid::Extent;
using grid::Simulation;

class GridStencilsTest : public GridTest {};
HEADRACE_ON_EVERY_DEVICE(GridStencilsTest);

/// The lowest sine mode: 0 just outside of the domain on every side. An eigenvector of heat and jacobi.
template <class T>
HostField<T> sine_mode(const Extent& extent) {
  HostField<T> mode(extent);
  const grid::Offsets cells = extent.cells_along();
  for_each_cell(grid::Box::whole(extent), [&](std::int64_t x, std::int64_t y, std::int64_t z) {
    const std::array<std::int64_t, 3> at{x, y, z};
    double value = 1;
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(extent.dimensions()); ++axis) {
      value *= std::sin(std::numbers::pi * static_cast<double>(at[axis] + 1) / static_cast<double>(cells[axis] + 1));
    }
    mode.at(x, y, z) = static_cast<T>(value);
  });
  return mode;
}

/// 2 * dimensions * mode minus its neighbours, divided by the mode.
double eigenvalue(const Extent& extent) {
  const grid::Offsets cells = extent.cells_along();
  double sum = 0;
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(extent.dimensions()); ++axis) {
    sum += 2 - 2 * std::cos(std::numbers::pi / static_cast<double>(cells[axis] + 1));
  }
  return sum;
}

template <class T>
void expect_close(const std::vector<T>& values, const HostField<T>& mode, double factor, double tolerance) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(values[i]), factor * static_cast<double>(mode.values[i]), tolerance) << i;
  }
}

TEST_P(GridStencilsTest, HeatDampsASineModeAsItShould) {
  constexpr int kSteps = 50;
  for (const Extent& extent : {Extent{31}, Extent{19, 23}, Extent{11, 9, 13}}) {
    SCOPED_TRACE(grid::to_string(extent));
    const auto mode = sine_mode<double>(extent);
    const double factor = 0.9 / (2.0 * extent.dimensions());
    Simulation simulation(Decomposition::best(extent, 2), devices(2), grid::heat<double>(extent.dimensions(), factor),
                          {.redundant = 2});
    simulation.set<double>(grid::kHeat, mode.values);
    simulation.step(kSteps);
    expect_close(field_of<double>(simulation, grid::kHeat), mode, std::pow(1 - factor * eigenvalue(extent), kSteps),
                 1e-13);
  }
}

TEST_P(GridStencilsTest, HeatInFloat) {
  const Extent extent{40, 30};
  const auto mode = sine_mode<float>(extent);
  Simulation simulation(Decomposition::blocks(extent, {2, 2, 1}), devices(4), grid::heat<float>(2, 0.2F));
  simulation.set<float>(grid::kHeat, mode.values);
  simulation.step(20);
  expect_close(field_of<float>(simulation, grid::kHeat), mode, std::pow(1 - 0.2 * eigenvalue(extent), 20), 1e-5);
}

TEST_P(GridStencilsTest, JacobiGoesToTheSolutionAtTheRateThatIsKnown) {
  constexpr int kSteps = 60;
  for (const Extent& extent : {Extent{12}, Extent{9, 11}, Extent{7, 8, 9}}) {
    SCOPED_TRACE(grid::to_string(extent));
    const auto solution = sine_mode<double>(extent);
    const double value = eigenvalue(extent);
    HostField<double> source = solution;
    for (double& one : source.values) one *= value;
    Simulation simulation(Decomposition::best(extent, 2), devices(2), grid::jacobi<double>(extent.dimensions()));
    simulation.set<double>(grid::kJacobiSource, source.values);
    simulation.step(kSteps);
    const double rate = 1 - value / (2.0 * extent.dimensions());
    expect_close(field_of<double>(simulation, grid::kJacobiSolution), solution, 1 - std::pow(rate, kSteps), 1e-13);
    double squares = 0;
    for (const double one : source.values) squares += one * one;
    const grid::Norms residual = grid::jacobi_residual(simulation);
    EXPECT_NEAR(residual.two, std::sqrt(squares) * std::pow(rate, kSteps - 1), 1e-12);
    EXPECT_LE(residual.maximum, residual.two);
  }
}

TEST_P(GridStencilsTest, NormsAreEqualForEveryCut) {
  const Extent extent{21, 22, 23};
  auto field = scattered<double>(extent, 9);
  for (std::size_t i = 0; i < field.values.size(); ++i) field.values[i] *= std::pow(10.0, static_cast<double>(i % 13));
  grid::Norms first;
  for (const auto& along :
       std::vector<std::array<std::size_t, 3>>{{1, 1, 1}, {3, 1, 1}, {1, 2, 1}, {2, 2, 2}, {1, 1, 5}}) {
    const auto cut = Decomposition::blocks(extent, along);
    Simulation simulation(cut, devices(cut.parts().size()), grid::heat<double>(3, 0.1));
    simulation.set<double>(0, field.values);
    const grid::Norms norms = simulation.norms(0);
    if (along == std::array<std::size_t, 3>{1, 1, 1}) first = norms;
    EXPECT_EQ(norms.two, first.two);
    EXPECT_EQ(norms.maximum, first.maximum);
    EXPECT_EQ(simulation.norms_of_difference(0, 1).two, first.two) << "the other field is 0";
    EXPECT_EQ(simulation.norms_of_difference(0, 0).two, 0);
  }
  long double squares = 0;
  double maximum = 0;
  for (const double value : field.values) {
    squares += static_cast<long double>(value) * value;
    maximum = std::max(maximum, std::abs(value));
  }
  EXPECT_EQ(first.maximum, maximum);
  EXPECT_NEAR(first.two, static_cast<double>(std::sqrt(squares)), 1e-13 * first.two);
}

TEST_P(GridStencilsTest, NormsOfValuesThatAreHardToSquare) {
  const Extent extent{10, 10};
  Simulation simulation(Decomposition::slabs(extent, 2, 1), devices(2), grid::heat<double>(2, 0.1));
  HostField<double> field(extent);
  EXPECT_EQ(simulation.norms(0).two, 0);
  field.at(3, 7, 0) = 3e200;
  field.at(4, 2, 0) = -4e200;
  simulation.set<double>(0, field.values);
  EXPECT_DOUBLE_EQ(simulation.norms(0).two, 5e200);
  field.values.assign(field.values.size(), 5e-324);
  simulation.set<double>(0, field.values);
  EXPECT_EQ(simulation.norms(0).two, 10 * 5e-324);
  field.at(1, 1, 0) = -std::numeric_limits<double>::infinity();
  simulation.set<double>(0, field.values);
  EXPECT_TRUE(std::isinf(simulation.norms(0).two));
  field.at(9, 9, 0) = std::numeric_limits<double>::quiet_NaN();
  simulation.set<double>(0, field.values);
  EXPECT_TRUE(std::isnan(simulation.norms(0).maximum));
}

TEST_P(GridStencilsTest, TuneTriesWhatCanBeAndSaysWhyTheRestCannot) {
  const auto cut = Decomposition::slabs({16, 12}, 3, 1);  // 4 rows each: no room for 8 layers
  const grid::Tuned tuned = grid::tune(cut, devices(3), grid::heat<float>(2, 0.1F), 3);
  ASSERT_EQ(tuned.trials.size(), 12U);
  for (const grid::Trial& trial : tuned.trials) {
    EXPECT_NE(trial.options.push, grid::Push::automatic);
    if (trial.options.redundant == 8) {
      EXPECT_THAT(trial.why_not, ::testing::HasSubstr("thinner than the 8 ghost layers"));
    } else if (on_cpu()) {
      EXPECT_EQ(trial.why_not, "");
      EXPECT_GT(trial.per_step.count(), 0);
    }
  }
  Simulation simulation(cut, devices(3), grid::heat<float>(2, 0.1F), tuned.best);
  simulation.step(2);
  EXPECT_EQ(grid::tune(Decomposition::slabs({9}, 1, 0), devices(1), grid::heat<float>(1, 0.1F)).trials.size(), 1U);
  EXPECT_THROW(static_cast<void>(grid::tune(cut, devices(3), grid::heat<float>(2, 0.1F), 0)), UsageError);
  EXPECT_THROW(static_cast<void>(grid::tune(cut, devices(2), grid::heat<float>(2, 0.1F))), UsageError);
  EXPECT_THROW(static_cast<void>(grid::tune(cut, devices(3), grid::heat<float>(2, 0.1F), 3, {})), UsageError);
}

TEST_P(GridStencilsTest, TuneTriesTheModesThatItIsGiven) {
  const std::vector<grid::Mode> both{grid::Mode::streams, grid::Mode::resident};
  const auto cut = Decomposition::slabs({16, 12}, 2, 1);
  const grid::Tuned tuned = grid::tune(cut, devices(2), grid::heat<float>(2, 0.1F), 3, both);
  ASSERT_EQ(tuned.trials.size(), 16U);
  for (std::size_t i = 12; i < 16; ++i) {
    EXPECT_EQ(tuned.trials[i].options.mode, grid::Mode::resident);
    EXPECT_EQ(tuned.trials[i].options.push, grid::Push::store);
    if (on_cpu() && tuned.trials[i].options.redundant < 8) {
      EXPECT_EQ(tuned.trials[i].why_not, "");
    }
  }
  const auto one = Decomposition::slabs({16, 12}, 1, 1);
  EXPECT_EQ(grid::tune(one, devices(1), grid::heat<float>(2, 0.1F), 3, both).trials.size(), 2U);
}

TEST_P(GridStencilsTest, StencilsThatCannotBe) {
  EXPECT_THROW(static_cast<void>(grid::heat<float>(0, 0.1F)), UsageError);
  EXPECT_THROW(static_cast<void>(grid::heat<float>(4, 0.1F)), UsageError);
  EXPECT_THROW(static_cast<void>(grid::heat<double>(3, 0.2)), UsageError) << "not stable";
  EXPECT_THROW(static_cast<void>(grid::heat<double>(3, -0.1)), UsageError);
  EXPECT_THROW(static_cast<void>(grid::heat<double>(1, std::nan(""))), UsageError);
  EXPECT_THROW(static_cast<void>(grid::jacobi<float>(4)), UsageError);
  EXPECT_THROW(static_cast<void>(driven<float>({})), UsageError) << "none was given";
}

}  // namespace
}  // namespace headrace::testing
