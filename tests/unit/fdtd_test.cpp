#include "headrace/grid/fdtd.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>
#include <vector>

#include "grid/fdtd/fdtd_layers.hpp"
#include "grid/fdtd/fdtd_names.hpp"
#include "grid/fdtd/fdtd_parts.hpp"
#include "headrace/base/error.hpp"

namespace headrace::grid {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Sides = std::array<std::array<std::int64_t, 2>, 3>;

FdtdOptions plane() {
  FdtdOptions options;
  options.extent = {30, 20, 1};
  options.spacing = 1e-3;
  options.devices = {Device::parse("cpu:0")};
  options.cpml.cells = 4;
  return options;
}

/// Message of the UsageError that `act` throws.
template <class Act>
std::string refusal(Act act) {
  try {
    act();
  } catch (const UsageError& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

std::string refusal_of(const FdtdOptions& options) {
  return refusal([&] { Fdtd fdtd(options); });
}

TEST(FdtdCoefficients, VacuumKeepsEAndTheirProductIsTheCourantNumberSquared) {
  const double dx = 2e-3;
  const double dt = 0.5 * dx / kSpeedOfLight;
  const FdtdCoefficients vacuum = fdtd_coefficients(1, 0, 1, dx, dt);
  EXPECT_EQ(vacuum.ca, 1);
  EXPECT_NEAR(vacuum.cb * vacuum.db, 0.25, 1e-12);
  EXPECT_NEAR(vacuum.cb / vacuum.db, std::pow(376.730313412, 2), 1e-3);
}

TEST(FdtdCoefficients, NoConductivityMakesTheFieldGrow) {
  for (const double conductivity : {1e-6, 1.0, 1e3, 1e9}) {
    const FdtdCoefficients lossy = fdtd_coefficients(2, conductivity, 1, 1e-3, 1e-12);
    EXPECT_LT(std::abs(lossy.ca), 1) << conductivity;
    EXPECT_GE(lossy.cb, 0) << conductivity;
  }
}

TEST(FdtdCoefficients, StableTimeStepFollowsTheFastestMaterial) {
  EXPECT_DOUBLE_EQ(stable_time_step(2, 1), 1 / (kSpeedOfLight * std::sqrt(2.0)));
  EXPECT_DOUBLE_EQ(stable_time_step(3, 1, 4, 1), 2 / (kSpeedOfLight * std::sqrt(3.0)));
}

TEST(CpmlAxis, IsTheSameFromBothEndsAndNothingBetween) {
  const CpmlAxis axis = cpml_axis(40, 1e-3, 1e-12, {.cells = 8});
  const auto& electric = axis.electric;
  const auto& magnetic = axis.magnetic;
  for (std::size_t i = 1; i < 40; ++i) EXPECT_DOUBLE_EQ(electric.c[i], electric.c[40 - i]) << i;
  for (std::size_t i = 0; i < 40; ++i) EXPECT_DOUBLE_EQ(magnetic.c[i], magnetic.c[39 - i]) << i;
  for (std::size_t i = 8; i <= 32; ++i) {
    EXPECT_EQ(electric.b[i], 0);
    EXPECT_EQ(electric.c[i], 0);
    EXPECT_EQ(electric.k[i], 0);
  }
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_LT(electric.c[i], 0);
    EXPECT_LT(magnetic.c[i], 0);
    EXPECT_GT(electric.b[i], 0);
    EXPECT_LT(electric.b[i], 1);
  }
}

/// Relative error of one cell of a layer against dividing a difference by the complex stretch at this angular
/// frequency.
double stretch_error(const CpmlOptions& options, std::size_t cell, double time_step, double omega) {
  const double spacing = 1e-3;
  const CpmlTable table = cpml_axis(40, spacing, time_step, options).electric;
  const double depth = 1 - static_cast<double>(cell) / static_cast<double>(options.cells);
  const double unit = 0.8 * (options.order + 1) / (kVacuumPermeability * kSpeedOfLight * spacing);
  const double sigma = options.conductivity_scale * unit * std::pow(depth, options.order);
  const double alpha = options.alpha_scale * unit * std::pow(1 - depth, options.alpha_order);
  const double kappa = 1 + (options.stretch_max - 1) * std::pow(depth, options.stretch_order);
  const std::complex<double> stretch = kappa + sigma / std::complex(alpha, omega * kVacuumPermittivity);
  const std::complex<double> back = std::polar(1.0, -omega * time_step);
  return std::abs(1 + table.k[cell] + table.c[cell] / (1.0 - table.b[cell] * back) - 1.0 / stretch);
}

TEST(CpmlAxis, DividesByTheStretchToSecondOrderInTheTimeStep) {
  const double omega = 2 * std::numbers::pi * kSpeedOfLight / 0.028;  // a wave of 28 cells
  for (const std::size_t cell : {1, 3, 6, 9}) {
    const double coarse = stretch_error({}, cell, 2e-12, omega);
    const double fine = stretch_error({}, cell, 1e-12, omega);
    EXPECT_LT(coarse, 2e-3) << cell;
    EXPECT_NEAR(coarse / fine, 4, 0.3) << cell;
  }
}

TEST(CpmlAxis, StaysInRangeWhereMemoryIsShorterThanAStep) {
  const CpmlAxis axis = cpml_axis(40, 1e-3, 2e-12, {.cells = 8, .conductivity_scale = 1e4, .stretch_max = 1});
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_LE(std::abs(axis.electric.c[i]), 2) << i;
    EXPECT_LE(std::abs(axis.electric.k[i]), 8) << i;
  }
}

TEST(CpmlAxis, ScalesWithTheSpacing) {
  const CpmlAxis fine = cpml_axis(30, 1e-6, 1e-15, {});
  const CpmlAxis coarse = cpml_axis(30, 1, 1e-9, {});
  for (std::size_t i = 0; i < 30; ++i) EXPECT_NEAR(fine.electric.c[i], coarse.electric.c[i], 1e-12);
}

TEST(CpmlAxis, RefusesWhatCannotBe) {
  EXPECT_THAT(refusal([] { (void)cpml_axis(20, 1e-3, 1e-12, {.cells = 10}); }), HasSubstr("use at most 9 cells"));
  EXPECT_THAT(refusal([] { (void)cpml_axis(20, 1e-3, 1e-12, {.cells = -1}); }), HasSubstr("cannot have -1 cells"));
  EXPECT_THAT(refusal([] { (void)cpml_axis(20, 1e-3, 1e-12, {.cells = 2, .order = 0}); }), HasSubstr("order"));
  EXPECT_THAT(refusal([] { (void)cpml_axis(20, 1e-3, 1e-12, {.cells = 2, .stretch_max = std::nan("")}); }),
              HasSubstr("stretch"));
}

TEST(CpmlAxis, NamesTheOptionThatCannotBe) {
  const double nan = std::nan("");
  const double infinite = std::numeric_limits<double>::infinity();
  const auto refused = [](const CpmlOptions& options) {
    return refusal([&] { (void)cpml_axis(20, 1e-3, 1e-12, options); });
  };
  EXPECT_THAT(refused({.cells = 2, .order = 0.5}), HasSubstr("the order of an absorbing layer is 0.5"));
  EXPECT_THAT(refused({.cells = 2, .conductivity_scale = -1}), HasSubstr("sigma"));
  EXPECT_THAT(refused({.cells = 2, .conductivity_scale = infinite}), HasSubstr("sigma"));
  EXPECT_THAT(refused({.cells = 2, .stretch_max = 0.9}), HasSubstr("(kappa)"));
  EXPECT_THAT(refused({.cells = 2, .stretch_order = 0}), HasSubstr("kappa_order"));
  EXPECT_THAT(refused({.cells = 2, .alpha_scale = nan}), HasSubstr("alpha of"));
  EXPECT_THAT(refused({.cells = 2, .alpha_order = -1}), HasSubstr("alpha_order"));
  EXPECT_THAT(refused({.cells = 2, .conductivity_scale = 1e308}), HasSubstr("out of range"));
}

TEST(CpmlAxis, RefusesAnIndexThatCannotBe) {
  for (const double index : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_THAT(refusal([&] { (void)cpml_axis(20, 1e-3, 1e-12, {.cells = 2}, {.low = index}); }),
                HasSubstr("the index at the low wall"));
    EXPECT_THAT(refusal([&] { (void)cpml_axis(20, 1e-3, 1e-12, {.cells = 2}, {.high = index}); }),
                HasSubstr("the index at the high wall"));
  }
}

TEST(CpmlAxis, LayersMayDifferFromWallToWall) {
  const CpmlOptions options{.cells = 8, .sides = Sides{{{5, 5}, {8, 0}, {0, 3}}}};
  const CpmlAxis thick = cpml_axis(40, 1e-3, 1e-12, {.cells = 8});
  const CpmlAxis thin = cpml_axis(40, 1e-3, 1e-12, {.cells = 3});
  const CpmlAxis low = cpml_axis(40, 1e-3, 1e-12, options, {}, 1);
  const CpmlAxis high = cpml_axis(40, 1e-3, 1e-12, options, {}, 2);
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(low.electric.c[i], thick.electric.c[i]) << i;
    EXPECT_EQ(low.magnetic.b[39 - i], 0) << i;
    EXPECT_EQ(high.magnetic.c[i], 0) << i;
    EXPECT_EQ(high.electric.c[39 - i], thin.electric.c[39 - i]) << i;
  }
}

TEST(CpmlAxis, RefusesLayersOfWallsThatCannotBe) {
  const auto refused = [](std::array<std::int64_t, 2> along_x) {
    const CpmlOptions options{.cells = 8, .sides = Sides{along_x, {8, 8}, {8, 8}}};
    return refusal([&] { (void)cpml_axis(16, 1e-3, 1e-12, options); });
  };
  EXPECT_THAT(refused({8, 8}), HasSubstr("8 and 8 cells leave no cell between them on an axis of 16"));
  EXPECT_THAT(refused({-1, 8}), HasSubstr("cannot have -1 cells"));
  EXPECT_THAT(refused({9, 2}), HasSubstr("9 and 2 cells are thicker than the 8 cells given for the thickest"));
}

TEST(CpmlAxis, AMediumOfIndexNAbsorbsAsVacuumDoesInStepsNTimesAsLong) {
  const CpmlAxis vacuum = cpml_axis(30, 1e-3, 1e-12, {});
  const CpmlAxis soil = cpml_axis(30, 1e-3, 5e-12, {}, {.low = 5, .high = 1});
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_NEAR(soil.electric.b[i], vacuum.electric.b[i], 1e-14) << i;
    EXPECT_NEAR(soil.electric.c[i], vacuum.electric.c[i], 1e-14) << i;
    EXPECT_NEAR(soil.magnetic.c[i], vacuum.magnetic.c[i], 1e-14) << i;
  }
  const CpmlAxis air = cpml_axis(30, 1e-3, 5e-12, {});
  for (std::size_t i = 20; i < 30; ++i) EXPECT_EQ(soil.electric.c[i], air.electric.c[i]) << i;
}

TEST(FdtdLayers, TheIndexIsThatOfTheSpeedsOfALayersCells) {
  FdtdOptions options = plane();
  const auto cells = static_cast<std::size_t>(options.extent.cells());
  std::vector<double> permittivity(cells, 1);
  std::vector<double> conductivity(cells, 0);
  for (std::size_t i = 0; i < cells; ++i) {
    if (i / 30 < 4) permittivity[i] = 9;                     // the whole layer at the low wall of y
    if (i / 30 >= 16 && i % 30 < 15) permittivity[i] = 1e6;  // a good conductor in half of the layer at the high wall
    if (i / 30 >= 16 && i % 30 < 15) conductivity[i] = 1e12;
  }
  const double one = 1;
  const WallIndices found = wall_indices({permittivity, conductivity, std::span(&one, 1)}, options, 1e-12);
  EXPECT_NEAR(found[1].low, 3, 1e-12);
  EXPECT_NEAR(found[1].high, 1, 1e-12);
  // 4 of 20 rows have 1/9 of the squared speed; at the low wall of x, the conductor's 4 rows do not count.
  EXPECT_NEAR(found[0].low, std::sqrt(16 / (12 + 4.0 / 9)), 1e-12);
  EXPECT_NEAR(found[0].high, std::sqrt(20 / (16 + 4.0 / 9)), 1e-12);
}

TEST(FdtdLayers, OneMaterialHasItsIndexAtEachWall) {
  const double permittivity = 4, conductivity = 0.1, permeability = 9;
  const auto found = wall_indices(
      {std::span(&permittivity, 1), std::span(&conductivity, 1), std::span(&permeability, 1)}, plane(), 1e-12);
  for (std::size_t axis = 0; axis < 2; ++axis) {
    EXPECT_DOUBLE_EQ(found[axis].low, 6);
    EXPECT_DOUBLE_EQ(found[axis].high, 6);
  }
}

TEST(FdtdPoints, CellsOfARowAreOneBox) {
  const auto boxes =
      boxes_of_cells({10, 10, 2}, {{5, 1, 0}, {3, 1, 0}, {4, 1, 0}, {4, 1, 0}, {9, 1, 0}, {0, 2, 0}, {5, 1, 1}});
  const std::vector<Box> wanted{
      {{3, 1, 0}, {6, 2, 1}}, Box::cell({9, 1, 0}), Box::cell({0, 2, 0}), Box::cell({5, 1, 1})};
  EXPECT_EQ(boxes, wanted);
  EXPECT_TRUE(boxes_of_cells({10, 10, 1}, {}).empty());
}

TEST(FdtdPoints, AFaceIsOneBox) {
  const auto cells_of = [](const std::vector<Box>& boxes) {
    std::vector<Offsets> cells;
    for (const Box& box : boxes) {
      for (std::int64_t z = box.low[2]; z < box.high[2]; ++z) {
        for (std::int64_t y = box.low[1]; y < box.high[1]; ++y) {
          for (std::int64_t x = box.low[0]; x < box.high[0]; ++x) cells.push_back({x, y, z});
        }
      }
    }
    return cells;
  };
  const Extent extent{10, 10, 10};
  for (const Box& face : {Box{{3, 2, 1}, {4, 8, 7}}, Box{{1, 5, 2}, {9, 6, 6}}, Box{{1, 2, 4}, {8, 9, 5}}}) {
    EXPECT_EQ(boxes_of_cells(extent, cells_of({face})), std::vector<Box>{face});
  }
  const std::vector<Box> apart{{{1, 1, 0}, {2, 9, 1}}, {{7, 1, 0}, {8, 9, 1}}};
  EXPECT_EQ(boxes_of_cells(extent, cells_of(apart)), apart);
  // A shape that is not a rectangle becomes several boxes that do not overlap and cover all cells.
  const auto ring =
      cells_of({{{2, 2, 0}, {8, 3, 1}}, {{2, 3, 0}, {3, 7, 1}}, {{7, 3, 0}, {8, 7, 1}}, {{2, 7, 0}, {8, 8, 1}}});
  auto covered = cells_of(boxes_of_cells(extent, ring));
  auto wanted = ring;
  std::ranges::sort(covered);
  std::ranges::sort(wanted);
  EXPECT_EQ(covered, wanted);
  EXPECT_EQ(boxes_of_cells(extent, ring).size(), 4U);
}

TEST(FdtdNames, WallsHoldTheFieldsAlongThem) {
  EXPECT_TRUE(on_wall("ez", {0, 5, 0}, 2));
  EXPECT_FALSE(on_wall("ez", {0, 5, 0}, 2, {true, false, false}));
  EXPECT_TRUE(on_wall("ez", {5, 0, 0}, 2));
  EXPECT_FALSE(on_wall("ez", {5, 5, 0}, 2));
  EXPECT_FALSE(on_wall("ez", {5, 5, 0}, 3));
  EXPECT_TRUE(on_wall("ex", {5, 5, 0}, 3));
  EXPECT_FALSE(on_wall("ex", {0, 5, 5}, 3));
  EXPECT_FALSE(on_wall("hx", {0, 0, 0}, 3));
}

TEST(FdtdRefusals, RefusesATimeStepThatIsNotStable) {
  FdtdOptions options = plane();
  options.time_step = 3e-12;
  EXPECT_THAT(refusal_of(options), AllOf(HasSubstr("3e-12 s is not stable"), HasSubstr("at most 2.358")));
  options.time_step = 0;
  EXPECT_THAT(refusal_of(options), HasSubstr("not stable"));
  options.time_step = std::nan("");
  EXPECT_THAT(refusal_of(options), HasSubstr("not stable"));
}

TEST(FdtdRefusals, RefusesDomainsThatCannotBe) {
  FdtdOptions options = plane();
  options.spacing = 0;
  EXPECT_THAT(refusal_of(options), HasSubstr("the spacing is 0 m"));
  options = plane();
  options.extent.nz = 5;
  EXPECT_THAT(refusal_of(options), HasSubstr("1 along z"));
  options = plane();
  options.extent.ny = 1;
  EXPECT_THAT(refusal_of(options), HasSubstr("at least 2"));
  options = plane();
  options.dimensions = 4;
  EXPECT_THAT(refusal_of(options), HasSubstr("dimensions, not 4"));
  options = plane();
  options.devices.clear();
  EXPECT_THAT(refusal_of(options), HasSubstr("at least one device"));
  options = plane();
  options.decomposition = Decomposition::blocks(options.extent, {2, 1, 1});
  EXPECT_THAT(refusal_of(options), HasSubstr("1 devices were given for 2 parts"));
  options = plane();
  options.cpml.cells = 10;
  EXPECT_THAT(refusal_of(options), HasSubstr("use at most 9 cells"));
}

TEST(FdtdRefusals, RefusesMaterialsThatCannotBe) {
  Fdtd fdtd(plane());
  const std::vector<double> one{1};
  const std::vector<double> none{0};
  std::vector<double> some(600, 2);
  EXPECT_THAT(refusal([&] { fdtd.set_materials({none, none, one}); }), HasSubstr("permittivity is 0: it must be"));
  some[2 * 30 + 7] = std::nan("");
  EXPECT_THAT(refusal([&] { fdtd.set_materials({one, some, one}); }), HasSubstr("conductivity is nan in cell (7, 2)"));
  some[2 * 30 + 7] = -1;
  EXPECT_THAT(refusal([&] { fdtd.set_materials({one, none, some}); }), HasSubstr("permeability is -1 in cell (7, 2)"));
  some[2 * 30 + 7] = 0.25;
  EXPECT_THAT(refusal([&] { fdtd.set_materials({some, none, one}); }), HasSubstr("at most 1.179"));
  some.pop_back();
  EXPECT_THAT(refusal([&] { fdtd.set_materials({some, none, one}); }), HasSubstr("599 values"));
}

TEST(FdtdRefusals, RefusesEdgesThatCannotBe) {
  Fdtd fdtd(plane());
  const std::vector<double> one{1};
  const std::vector<double> none{0};
  const auto refused = [&](std::size_t along, std::vector<std::int64_t> cells, std::vector<double> permittivity,
                           std::vector<double> conductivity) {
    FdtdMaterials materials{one, none, one};
    materials.edges[along] = {cells, permittivity, conductivity};
    return refusal([&] { fdtd.set_materials(materials); });
  };
  EXPECT_THAT(refused(2, {67, 68}, {2}, {0, 0}), HasSubstr("2 edges have 1 permittivities"));
  EXPECT_THAT(refused(2, {68, 67}, {2, 2}, {0, 0}), HasSubstr("edge 1 belongs to cell 67"));
  EXPECT_THAT(refused(2, {67, 67}, {2, 2}, {0, 0}), HasSubstr("edge 1 belongs to cell 67"));
  EXPECT_THAT(refused(2, {600}, {2}, {0}), HasSubstr("cell numbers must be 0 to 599"));
  EXPECT_THAT(refused(2, {-1}, {2}, {0}), HasSubstr("edge 0 belongs to cell -1"));
  EXPECT_THAT(refused(2, {67}, {0}, {0}), HasSubstr("permittivity 0 and conductivity 0 in cell (7, 2)"));
  EXPECT_THAT(refused(2, {67}, {2}, {-1}), HasSubstr("conductivity -1 in cell (7, 2)"));
  EXPECT_THAT(refused(2, {67}, {0.25}, {0}), HasSubstr("not stable"));
  EXPECT_THAT(refused(0, {67}, {2}, {0}), HasSubstr("where ez is the only electric component"));
}

TEST(FdtdRefusals, RefusesPointsThatCannotBe) {
  Fdtd fdtd(plane());
  const std::vector<double> samples{1, 2};
  EXPECT_THAT(refusal([&] { fdtd.add_source("ex", {5, 5, 0}, samples); }), HasSubstr("the fields are ez, hx, hy"));
  EXPECT_THAT(refusal([&] { fdtd.add_source("ca", {5, 5, 0}, samples); }), HasSubstr("no field 'ca'"));
  EXPECT_THAT(refusal([&] { fdtd.add_source("ez", {30, 5, 0}, samples); }), HasSubstr("outside the domain of 30 x 20"));
  EXPECT_THAT(refusal([&] { fdtd.add_source("ez", {0, 5, 0}, samples); }), HasSubstr("lies on a wall"));
  EXPECT_THAT(refusal([&] { fdtd.add_receiver("ez", {5, -1, 0}); }), HasSubstr("outside"));
  const std::vector<double> infinite{1, std::numeric_limits<double>::infinity()};
  EXPECT_THAT(refusal([&] { fdtd.add_source("ez", {5, 5, 0}, infinite); }), HasSubstr("sample 1 of a source is inf"));
  EXPECT_THAT(refusal([&] { (void)fdtd.trace(0); }), HasSubstr("no receiver 0"));
}

TEST(FdtdRefusals, RefusesToResumeFromSomethingElse) {
  Fdtd fdtd(plane());
  (void)fdtd.add_receiver("ez", {5, 5, 0});
  EXPECT_THAT(refusal([&] { fdtd.resume(3, {}); }), HasSubstr("0 traces were given for 1 receivers"));
  const std::vector<std::vector<double>> traces{{1, 2}};
  EXPECT_THAT(refusal([&] { fdtd.resume(3, traces); }), HasSubstr("2 values, not one for each of 3 steps"));
}

TEST(FdtdRefusals, PrecisionsHaveNames) {
  EXPECT_EQ(parse_precision("double"), Precision::fp64);
  EXPECT_EQ(to_string(Precision::fp32), "single");
  EXPECT_THAT(refusal([] { (void)parse_precision("half"); }), HasSubstr("'half' is not a precision: single, double"));
}

}  // namespace
}  // namespace headrace::grid
