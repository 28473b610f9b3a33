#include "headrace/grid/fdtd.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "headrace/device/detail/flush_to_zero.hpp"
#include "tests/contract/devices.hpp"
#include "tests/contract/naive_fdtd.hpp"

// Fdtd compared with plain loops to the last bit, for every cut, push and redundancy, on every device.
namespace headrace::testing {
namespace {

using grid::CpmlOptions;
using grid::Decomposition;
using grid::Fdtd;
using grid::FdtdOptions;
using grid::Passes;
using grid::Precision;
using grid::Push;

struct Point {
  std::string field;
  Offsets cell;
};

[[nodiscard]] std::array<double, 3> material_at(const Offsets& at) {
  std::mt19937 random(static_cast<unsigned>(at[0] + 100 * at[1] + 10000 * at[2]));
  const auto draw = [&] { return static_cast<double>(random() % 1000) / 1000; };
  const double permittivity = 1 + 3 * draw();
  const double conductivity = draw() < 0.3 ? draw() : 0;
  return {permittivity, conductivity, 1 + draw()};
}

/// Large pieces: a slanted border, a conducting magnetic block, and metal.
[[nodiscard]] std::array<double, 3> pieces_at(const Offsets& at) {
  if (at[0] >= 50 && at[0] < 66 && at[1] >= 3) return {2.5, 1e-3, 4};
  if (at[0] >= 30 && at[0] < 34 && at[2] < 4) return {1, 1e10, 1};
  return at[0] + 3 * at[1] + 2 * at[2] < 40 ? std::array{1.0, 0.0, 1.0} : std::array{6.0, 0.01, 1.0};
}

/// Permittivity and conductivity of ez, and the permeabilities of hx and hy, which differ.
[[nodiscard]] std::array<double, 4> component_at(const Offsets& at) {
  const auto x = static_cast<double>(at[0]);
  const auto y = static_cast<double>(at[1]);
  if (at[0] == 9 && at[1] >= 4 && at[1] < 12) return {4, 0, 0.25, 0.5};
  if (at[0] == 8 || (at[0] == 9 && at[1] == 3)) return {4, 1e10, 1, 1};
  if (at[0] >= 10) return {3 + 0.125 * y, 0.01, 1 + 0.25 * x, 2 + 0.5 * y};
  return {4, 0, 1, 2};
}

/// A domain with materials, sources of both kinds (two of them in one cell), and receivers.
struct Scene {
  int dimensions;
  Extent extent;
  std::int64_t layer;
  std::vector<Point> sources;
  std::vector<Point> receivers;
  std::uint64_t steps;
  bool averaging = true;
  std::array<double, 3> (*material)(const Offsets&) = material_at;
  std::array<double, 4> (*component)(const Offsets&) = nullptr;  // instead of material
  grid::Polarisation polarisation = grid::Polarisation::tm;
};

const Scene kPlane{
    2,
    {26, 23, 1},
    4,
    {{"ez", {12, 11, 0}}, {"hx", {13, 12, 0}}, {"ez", {12, 11, 0}}, {"hy", {2, 3, 0}}, {"ez", {11, 11, 0}}},
    {{"ez", {20, 5, 0}}, {"hy", {12, 12, 0}}, {"hx", {25, 22, 0}}, {"ez", {12, 11, 0}}},
    30};
const Scene kPlaneTe{2,
                     {26, 23, 1},
                     4,
                     {{"hz", {12, 11, 0}}, {"ex", {13, 12, 0}}, {"hz", {12, 11, 0}}, {"ey", {2, 3, 0}}},
                     {{"hz", {20, 5, 0}}, {"ey", {12, 12, 0}}, {"ex", {25, 22, 0}}, {"hz", {12, 11, 0}}},
                     30,
                     true,
                     material_at,
                     nullptr,
                     grid::Polarisation::te};
const Scene kSpace{3,
                   {14, 12, 13},
                   3,
                   {{"ez", {7, 6, 6}}, {"ex", {6, 6, 6}}, {"hz", {7, 6, 7}}, {"hy", {2, 3, 4}}},
                   {{"ex", {3, 5, 4}}, {"ey", {7, 6, 5}}, {"hz", {13, 11, 12}}, {"hx", {7, 7, 7}}},
                   14};

/// Rows with several runs of one combination each, as long as vectors and longer.
const Scene kPieces{
    3,  {83, 9, 8}, 2,        {{"ez", {20, 4, 4}}, {"hy", {40, 5, 3}}}, {{"ex", {33, 3, 4}}, {"hz", {60, 6, 5}}},
    24, true,       pieces_at};

/// The same in a plane with Hz.
const Scene kPiecesTe{2,
                      {83, 41, 1},
                      4,
                      {{"hz", {20, 4, 0}}, {"ey", {40, 5, 0}}},
                      {{"ex", {33, 3, 0}}},
                      24,
                      true,
                      pieces_at,
                      nullptr,
                      grid::Polarisation::te};

/// How the domain is run.
struct Way {
  std::array<std::size_t, 3> cut;
  int redundant = 1;
  Push push = Push::automatic;
  Passes passes = Passes::automatic;
};

constexpr double kSpacing = 1e-3;

[[nodiscard]] std::vector<double> samples_of(std::size_t source) {
  std::mt19937 random(static_cast<unsigned>(source));
  std::vector<double> samples(20 + source);
  for (double& sample : samples) sample = static_cast<double>(random() % 2000) / 1000 - 1;
  return samples;
}

[[nodiscard]] Fdtd make_fdtd(const Scene& scene, const Way& way, Precision precision, Device device) {
  FdtdOptions options;
  options.extent = scene.extent;
  options.dimensions = scene.dimensions;
  options.polarisation = scene.polarisation;
  options.spacing = kSpacing;
  options.decomposition = Decomposition::blocks(scene.extent, way.cut);
  options.devices.assign(way.cut[0] * way.cut[1] * way.cut[2], device);
  options.simulation = {.redundant = way.redundant, .push = way.push, .passes = way.passes};
  options.cpml.cells = scene.layer;
  options.precision = precision;
  options.averaging = scene.averaging;
  options.per_component = scene.component != nullptr;
  Fdtd fdtd(std::move(options));
  std::array<std::vector<double>, 4> materials;
  const auto fill = [&](const auto& of) {
    NaiveFdtd<double>(scene.extent, scene.dimensions, kSpacing, 1e-12, {.cells = 0}).each([&](const Offsets& at) {
      for (std::size_t i = 0; i < of(at).size(); ++i) materials[i].push_back(of(at)[i]);
    });
  };
  if (scene.component != nullptr) {
    fill(scene.component);
    fdtd.set_component_materials({materials[0], materials[1], materials[2], materials[3]});
  } else {
    fill(scene.material);
    fdtd.set_materials({materials[0], materials[1], materials[2]});
  }
  for (std::size_t i = 0; i < scene.sources.size(); ++i) {
    fdtd.add_source(scene.sources[i].field, scene.sources[i].cell, samples_of(i));
  }
  for (const Point& receiver : scene.receivers) fdtd.add_receiver(receiver.field, receiver.cell);
  return fdtd;
}

template <class V>
struct Expected {
  NaiveFdtd<V> fdtd;
  std::vector<std::vector<double>> traces;
};

template <class V>
void add_naive_sources(NaiveFdtd<V>& fdtd, const Scene& scene, std::uint64_t step, char kind) {
  for (std::size_t i = 0; i < scene.sources.size(); ++i) {
    const std::vector<double> samples = samples_of(i);
    const Point& source = scene.sources[i];
    if (source.field[0] != kind || step >= samples.size()) continue;
    V& value = fdtd.field(source.field)(source.cell);
    value = value + static_cast<V>(samples[step]);
  }
}

template <class V>
[[nodiscard]] Expected<V> expected(const Scene& scene, double time_step) {
  Expected<V> made{
      NaiveFdtd<V>(scene.extent, scene.dimensions, kSpacing, time_step, {.cells = scene.layer}, scene.polarisation),
      std::vector<std::vector<double>>(scene.receivers.size())};
  if (scene.component != nullptr) {
    made.fdtd.set_component_materials(scene.component);
  } else {
    made.fdtd.set_materials(scene.material, scene.averaging);
  }
  [[maybe_unused]] const std::conditional_t<sizeof(V) == sizeof(float), detail::FlushToZero, int> subnormals{};
  for (std::uint64_t step = 0; step < scene.steps; ++step) {
    made.fdtd.half_step_h();
    add_naive_sources(made.fdtd, scene, step, 'h');
    made.fdtd.half_step_e();
    add_naive_sources(made.fdtd, scene, step, 'e');
    for (std::size_t i = 0; i < scene.receivers.size(); ++i) {
      made.traces[i].push_back(made.fdtd.field(scene.receivers[i].field)(scene.receivers[i].cell));
    }
  }
  return made;
}

template <class V>
void expect_equal(Fdtd& fdtd, const Scene& scene, Expected<V>& wanted) {
  for (const std::string& name : fdtd.state_fields()) {
    std::vector<V> values(static_cast<std::size_t>(scene.extent.cells()));
    fdtd.get<V>(name, values);
    std::vector<V> right;
    NaiveField<V>& field = wanted.fdtd.field(name);
    wanted.fdtd.each([&](const Offsets& at) { right.push_back(field(at)); });
    EXPECT_EQ(values, right) << name;
  }
  for (std::size_t i = 0; i < scene.receivers.size(); ++i) {
    const auto trace = fdtd.trace(i);
    EXPECT_EQ(std::vector<double>(trace.begin(), trace.end()), wanted.traces[i]) << "receiver " << i;
  }
}

template <class V>
void expect_right(const Scene& scene, const Way& way, Device device) {
  SCOPED_TRACE(::testing::Message() << "cut " << way.cut[0] << " " << way.cut[1] << " " << way.cut[2] << ", R "
                                    << way.redundant << ", push " << to_string(way.push) << ", " << sizeof(V)
                                    << " bytes");
  Fdtd fdtd = make_fdtd(scene, way, sizeof(V) == sizeof(float) ? Precision::fp32 : Precision::fp64, device);
  Expected<V> wanted = expected<V>(scene, fdtd.time_step());
  fdtd.step(scene.steps / 3);  // in pieces that need not be whole cycles
  fdtd.step(scene.steps - scene.steps / 3);
  EXPECT_EQ(fdtd.steps_done(), scene.steps);
  expect_equal(fdtd, scene, wanted);
}

class FdtdTest : public DeviceTest {};
HEADRACE_ON_EVERY_DEVICE(FdtdTest);

TEST_P(FdtdTest, PlaneIsThatOfPlainLoops) {
  expect_right<float>(kPlane, {{1, 1, 1}}, device());
  expect_right<double>(kPlane, {{1, 1, 1}}, device());
}

TEST_P(FdtdTest, PlaneIsTheSameHoweverItIsCut) {
  expect_right<float>(kPlane, {{1, 2, 1}}, device());
  expect_right<float>(kPlane, {{3, 1, 1}}, device());
  expect_right<double>(kPlane, {{2, 2, 1}, 1, Push::copy}, device());
  expect_right<float>(kPlane, {{2, 1, 1}, 2, Push::host}, device());
  expect_right<float>(kPlane, {{2, 2, 1}, 3}, device());
}

TEST_P(FdtdTest, PlaneOfHzIsThatOfPlainLoops) {
  expect_right<float>(kPlaneTe, {{1, 1, 1}}, device());
  expect_right<double>(kPlaneTe, {{1, 1, 1}}, device());
  expect_right<float>(kPiecesTe, {{1, 1, 1}}, device());
}

TEST_P(FdtdTest, PlaneOfHzIsTheSameHoweverItIsCut) {
  expect_right<float>(kPlaneTe, {{1, 2, 1}}, device());
  expect_right<float>(kPlaneTe, {{3, 1, 1}}, device());
  expect_right<double>(kPlaneTe, {{2, 2, 1}, 1, Push::copy}, device());
  expect_right<float>(kPlaneTe, {{2, 1, 1}, 2, Push::host}, device());
  expect_right<float>(kPlaneTe, {{2, 2, 1}, 3}, device());
  expect_right<double>(kPlaneTe, {{1, 1, 1}, 4}, device());  // in passes
  expect_right<float>(kPiecesTe, {{1, 1, 1}, 4}, device());
  expect_right<double>(kPiecesTe, {{2, 1, 1}, 2}, device());  // the second part begins within a run
}

TEST_P(FdtdTest, SpaceIsThatOfPlainLoops) {
  expect_right<float>(kSpace, {{1, 1, 1}}, device());
  expect_right<double>(kSpace, {{1, 1, 1}}, device());
}

TEST_P(FdtdTest, SpaceIsTheSameHoweverItIsCut) {
  expect_right<float>(kSpace, {{1, 1, 3}}, device());
  expect_right<float>(kSpace, {{2, 2, 1}, 2}, device());
  expect_right<double>(kSpace, {{2, 1, 2}, 1, Push::copy}, device());
}

TEST_P(FdtdTest, PiecesOfMaterialsAreThoseOfPlainLoops) {
  expect_right<float>(kPieces, {{1, 1, 1}}, device());
  expect_right<float>(kPieces, {{2, 1, 1}}, device());  // the second part begins within a run
  expect_right<double>(kPieces, {{3, 1, 2}, 2}, device());
  expect_right<double>(kPieces, {{1, 2, 2}}, device());
}

/// So large that phases and steps go through a part of a CPU device a few rows at a time.
TEST_P(FdtdTest, LargeDomainsAreThoseOfPlainLoops) {
  Scene plane = kPlane;
  plane.extent = {3000, 23, 1};
  plane.material = pieces_at;
  plane.steps = 15;
  Scene components = plane;
  components.component = component_at;
  Scene te = kPlaneTe;
  te.extent = plane.extent;
  te.material = pieces_at;
  te.steps = plane.steps;
  for (const Scene& scene : {plane, components, te}) {
    expect_right<float>(scene, {{1, 1, 1}}, device());
    expect_right<double>(scene, {{1, 1, 1}, 7}, device());
    expect_right<float>(scene, {{1, 2, 1}, 3}, device());
  }
  Scene space = kSpace;
  space.extent = {70, 60, 13};
  space.material = pieces_at;
  space.steps = 8;
  expect_right<float>(space, {{1, 1, 1}}, device());
  expect_right<double>(space, {{1, 1, 1}, 4}, device());
  expect_right<float>(space, {{1, 1, 2}, 2}, device());
}

/// The wave is so weak that float holds none of its values in full.
TEST_P(FdtdTest, SubnormalValuesCountAsZeroInSinglePrecision) {
  const auto largest = [&](Precision precision) {
    FdtdOptions options;
    options.extent = {64, 48, 1};
    options.spacing = kSpacing;
    options.devices = {device()};
    options.precision = precision;
    Fdtd fdtd(std::move(options));
    fdtd.add_source("ez", {30, 20, 0}, std::array{1e-39, -1e-40, 1e-41});
    fdtd.step(20);
    std::vector<double> values(64 * 48);
    if (precision == Precision::fp64) {
      fdtd.get<double>("ez", values);
    } else {
      std::vector<float> single(values.size());
      fdtd.get<float>("ez", single);
      std::ranges::copy(single, values.begin());
    }
    return std::ranges::max(values, {}, [](double value) { return std::abs(value); });
  };
  EXPECT_EQ(largest(Precision::fp32), 0);
  EXPECT_GT(std::abs(largest(Precision::fp64)), 1e-42);
  volatile float weak = 1e-39F;  // this thread may have run kernels
  weak = weak * 0.5F;
  EXPECT_GT(weak, 0);
}

TEST_P(FdtdTest, WithoutAveragingAllComponentsOfACellTakeItsMaterial) {
  Scene plane = kPlane;
  plane.averaging = false;
  expect_right<float>(plane, {{2, 2, 1}, 2}, device());
  Scene te = kPlaneTe;
  te.averaging = false;
  expect_right<float>(te, {{2, 1, 1}, 2}, device());
  Scene space = kSpace;
  space.averaging = false;
  expect_right<float>(space, {{1, 1, 1}}, device());
  expect_right<double>(space, {{1, 2, 2}}, device());
}

TEST_P(FdtdTest, MaterialsPerComponentAreThoseOfPlainLoops) {
  Scene plane = kPlane;
  plane.component = component_at;
  expect_right<float>(plane, {{1, 1, 1}}, device());
  expect_right<double>(plane, {{2, 2, 1}, 2}, device());
  expect_right<float>(plane, {{1, 2, 1}, 4}, device());  // in passes
  plane.layer = 0;
  expect_right<double>(plane, {{1, 1, 1}}, device());
  expect_right<float>(plane, {{2, 1, 1}, 4}, device());
}

/// A pass leaves the layers to phases, and has the kernels of a stencil without layers.
TEST_P(FdtdTest, PassesBetweenLayersAreThoseOfPlainLoops) {
  const Way way{{1, 1, 1}, 4, Push::automatic, Passes::always};
  Scene plane = kPlane;
  plane.extent = {140, 70, 1};
  Scene components = plane;
  components.component = component_at;
  Scene te = kPlaneTe;
  te.extent = plane.extent;
  for (const Scene& scene : {plane, components, te}) {
    expect_right<float>(scene, way, device());
    expect_right<double>(scene, way, device());
  }
}

TEST_P(FdtdTest, ARunForMaterialsPerComponentTakesThoseOfCellsToo) {
  Scene other = kPlane;
  other.component = component_at;
  Fdtd fdtd = make_fdtd(other, {{1, 1, 1}}, Precision::fp64, device());
  std::array<std::vector<double>, 3> materials;
  Expected<double> wanted = expected<double>(kPlane, fdtd.time_step());
  wanted.fdtd.each([&](const Offsets& at) {
    for (std::size_t i = 0; i < 3; ++i) materials[i].push_back(kPlane.material(at)[i]);
  });
  fdtd.set_materials({materials[0], materials[1], materials[2]});
  fdtd.step(kPlane.steps);
  expect_equal(fdtd, kPlane, wanted);
}

TEST_P(FdtdTest, RefusesMaterialsPerComponentThatAreNotStable) {
  FdtdOptions options;
  options.extent = {6, 5, 1};
  options.spacing = kSpacing;
  options.devices = {device()};
  options.cpml.cells = 0;
  const double one[] = {1};
  const double none[] = {0};
  std::vector<double> cut(30, 1);
  cut[2 * 6 + 3] = 0.1;
  EXPECT_THROW(Fdtd(options).set_component_materials({one, none, one, one}), UsageError) << "not set up for them";
  options.per_component = true;
  Fdtd fdtd(options);
  EXPECT_THROW(fdtd.set_component_materials({one, none, cut, one}), UsageError);
  EXPECT_THROW(fdtd.set_component_materials({one, none, one, cut}), UsageError);
  // With a Courant number of 0.99 a node beside it needs 0.99^2 / 4 (3 + 10).
  std::vector<double> raised(30, 0.99 * 0.99 / 4 * 13);
  fdtd.set_component_materials({raised, none, cut, one});
  raised[3 * 6 + 3] *= 1 - 1e-6;
  EXPECT_THROW(fdtd.set_component_materials({raised, none, cut, one}), UsageError);
  options.polarisation = grid::Polarisation::te;
  EXPECT_THROW(Fdtd{options}, UsageError);
  options.polarisation = grid::Polarisation::tm;
  options.dimensions = 3;
  options.extent = {4, 4, 4};
  EXPECT_THROW(Fdtd{options}, UsageError);
}

TEST_P(FdtdTest, WallsWithoutLayers) {
  Scene plane = kPlane;
  plane.layer = 0;
  expect_right<float>(plane, {{2, 2, 1}, 2}, device());
  Scene te = kPlaneTe;
  te.layer = 0;
  expect_right<double>(te, {{2, 2, 1}, 2}, device());
  expect_right<float>(te, {{1, 1, 1}, 4}, device());
  Scene space = kSpace;
  space.layer = 0;
  expect_right<double>(space, {{1, 2, 2}}, device());
}

/// In the middle of a thick domain that does not change along z, everything is as in a plane, until the walls across z
/// are felt.
TEST_P(FdtdTest, PlaneOfHzIsThatOfSpaceWithoutChangeAlongZ) {
  constexpr std::int64_t kThick = 34;
  constexpr std::uint64_t kSteps = 15;
  Scene plane = kPlaneTe;
  plane.receivers.clear();
  // The layers are in vacuum: sums over their cells, which grade them, are then equal to the last bit.
  plane.material = [](const Offsets& at) {
    const bool inside = at[0] >= 4 && at[0] < 22 && at[1] >= 4 && at[1] < 19;
    return inside ? material_at({at[0], at[1], 0}) : std::array{1.0, 0.0, 1.0};
  };
  Scene thick = plane;
  thick.dimensions = 3;
  thick.extent.nz = kThick;
  thick.polarisation = grid::Polarisation::tm;
  const auto make = [&](const Scene& scene) {
    FdtdOptions options;
    options.extent = scene.extent;
    options.dimensions = scene.dimensions;
    options.polarisation = scene.polarisation;
    options.spacing = kSpacing;
    options.time_step = 0.99 * grid::stable_time_step(3, kSpacing);
    options.devices = {device()};
    options.cpml.cells = scene.layer;
    options.cpml.sides = {{{4, 4}, {4, 4}, {0, 0}}};
    options.precision = Precision::fp64;
    Fdtd fdtd(std::move(options));
    std::array<std::vector<double>, 3> materials;
    NaiveFdtd<double>(scene.extent, scene.dimensions, kSpacing, 1e-12, {.cells = 0}).each([&](const Offsets& at) {
      for (std::size_t i = 0; i < 3; ++i) materials[i].push_back(scene.material(at)[i]);
    });
    fdtd.set_materials({materials[0], materials[1], materials[2]});
    for (std::size_t i = 0; i < plane.sources.size(); ++i) {
      std::vector<Offsets> cells;
      for (std::int64_t z = 0; z < scene.extent.nz; ++z)
        cells.push_back({plane.sources[i].cell[0], plane.sources[i].cell[1], z});
      // E along the low wall stays 0, so no source may lie there.
      if (scene.dimensions == 3 && plane.sources[i].field[0] == 'e') cells.erase(cells.begin());
      fdtd.add_sources(plane.sources[i].field, cells, samples_of(i));
    }
    fdtd.step(kSteps);
    return fdtd;
  };
  Fdtd flat = make(plane);
  Fdtd space = make(thick);
  const auto cells = static_cast<std::size_t>(plane.extent.cells());
  for (const std::string& name : flat.state_fields()) {
    std::vector<double> found(cells);
    std::vector<double> all(cells * kThick);
    flat.get<double>(name, found);
    space.get<double>(name, all);
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(cells * (kThick / 2));
    EXPECT_TRUE(std::equal(found.begin(), found.end(), middle)) << name;
    EXPECT_GT(*std::ranges::max_element(found), 0) << name;
  }
}

TEST_P(FdtdTest, PointsAddedBetweenSteps) {
  Fdtd fdtd = make_fdtd(kPlane, {{2, 1, 1}}, Precision::fp64, device());
  fdtd.step(5);
  const std::size_t late = fdtd.add_receiver("ez", {12, 11, 0});
  fdtd.add_source("ez", {12, 11, 0}, std::vector<double>{0, 0, 0, 0, 0, 0, 1000});
  fdtd.step(3);
  const auto early = fdtd.trace(3);  // in the same cell
  const auto trace = fdtd.trace(late);
  ASSERT_EQ(trace.size(), 8U);
  for (std::size_t step = 0; step < 8; ++step) {
    if (step < 5) {
      EXPECT_TRUE(std::isnan(trace[step]));
    } else {
      EXPECT_EQ(trace[step], early[step]);
    }
  }
  EXPECT_GT(trace[6], 900) << "samples count from the first step of the run";
  EXPECT_LT(std::abs(trace[5]), 100);
}

TEST_P(FdtdTest, ResumedElsewhereItGoesOnAsIfItHadNotStopped) {
  Fdtd whole = make_fdtd(kPlane, {{1, 1, 1}}, Precision::fp32, device());
  whole.step(kPlane.steps);
  Fdtd first = make_fdtd(kPlane, {{1, 2, 1}, 2}, Precision::fp32, device());
  first.step(11);
  Fdtd second = make_fdtd(kPlane, {{2, 1, 1}, 3}, Precision::fp32, device());
  std::vector<float> values(static_cast<std::size_t>(kPlane.extent.cells()));
  for (const std::string& name : first.state_fields()) {
    first.get<float>(name, values);
    second.set<float>(name, values);
  }
  std::vector<std::vector<double>> traces;
  for (std::size_t i = 0; i < first.receiver_count(); ++i) {
    traces.emplace_back(first.trace(i).begin(), first.trace(i).end());
  }
  second.resume(11, traces);
  second.step(kPlane.steps - 11);
  std::vector<float> right(values.size());
  for (const std::string& name : whole.state_fields()) {
    second.get<float>(name, values);
    whole.get<float>(name, right);
    EXPECT_EQ(values, right) << name;
  }
  for (std::size_t i = 0; i < whole.receiver_count(); ++i) {
    EXPECT_TRUE(std::ranges::equal(whole.trace(i), second.trace(i)));
  }
}

TEST_P(FdtdTest, SaysWhereAValueIsNotFinite) {
  Fdtd fdtd = make_fdtd(kPlane, {{2, 2, 1}}, Precision::fp32, device());
  fdtd.step(2);
  fdtd.check_finite();
  std::vector<float> values(static_cast<std::size_t>(kPlane.extent.cells()));
  values[3 * 26 + 17] = std::numeric_limits<float>::quiet_NaN();
  fdtd.set<float>("hy", values);
  try {
    fdtd.check_finite();
    FAIL() << "NaN was not found";
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "hy is nan in cell (17, 3) after 2 steps");
  }
}

}  // namespace
}  // namespace headrace::testing
