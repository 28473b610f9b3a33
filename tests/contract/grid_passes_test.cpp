#include <fmt/format.h>

#include <cmath>

#include "headrace/base/error.hpp"
#include "headrace/grid/fdtd.hpp"
#include "headrace/grid/stencils/heat.hpp"
#include "headrace/grid/stencils/jacobi.hpp"
#include "tests/contract/grid_stencils.hpp"
#include "tests/contract/grid_support.hpp"
#include "tests/sanitizers.hpp"

/// Phases fused into passes of several steps over memory give the results of a launch per phase.
namespace headrace::testing {
namespace {

using grid::Box;
using grid::Decomposition;
using grid::Extent;
using grid::Norms;
using grid::Passes;
using grid::Push;
using grid::Simulation;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class GridPassesTest : public GridTest {};
HEADRACE_ON_EVERY_DEVICE(GridPassesTest);

using Options = grid::SimulationOptions;

/// All fields after calls of several lengths; `between` may change something between them.
template <class T, class Between>
std::vector<std::vector<T>> fields_after(const Decomposition& cut, const grid::StencilProgram& program,
                                         const Options& options, const Between& between) {
  Simulation simulation(cut, GridTest::devices(cut.parts().size()), program, options);
  for (int field = 0; field < program.field_count; ++field) {
    simulation.set<T>(field, scattered<T>(cut.extent(), 3 + static_cast<std::uint64_t>(field)).values);
  }
  std::vector<std::vector<T>> found;
  for (const std::uint64_t count : {1U, 4U, 0U, 2U, 9U, 16U}) {
    between(simulation);
    simulation.step(count);
    for (int field = 0; field < program.field_count; ++field) found.push_back(field_of<T>(simulation, field));
  }
  return found;
}

template <class T, class Between>
void expect_as_phases(const Decomposition& cut, const grid::StencilProgram& program, const Between& between) {
  const auto right = fields_after<T>(cut, program, {.passes = Passes::never}, between);
  for (const int redundant : {1, 2, 3, 4, 7}) {
    const grid::Layers ghosts =
        Simulation(Decomposition::slabs(cut.extent(), 1, 0), GridTest::devices(1), program, {.redundant = redundant})
            .ghosts();
    try {
      cut.require_room_for(ghosts);
    } catch (const UsageError&) {
      continue;
    }
    for (const Push push : {Push::automatic, Push::copy}) {
      SCOPED_TRACE(fmt::format("{} parts of {}, {} redundant, push {}", cut.parts().size(), to_string(cut.extent()),
                               redundant, to_string(push)));
      const Options options{.redundant = redundant, .push = push, .passes = Passes::always};
      EXPECT_EQ(fields_after<T>(cut, program, options, between), right);
      Options phases = options;  // in waves of several steps on CPU devices
      phases.passes = Passes::never;
      EXPECT_EQ(fields_after<T>(cut, program, phases, between), right);
      Options short_ones = options;
      short_ones.pass_steps = push == Push::automatic ? 1 : 3;
      if (redundant > short_ones.pass_steps) {
        EXPECT_EQ(fields_after<T>(cut, program, short_ones, between), right);
      }
    }
  }
}

constexpr auto kNothing = [](Simulation&) {};

TEST_P(GridPassesTest, OnePartOfAnySize) {
  for (const Extent& extent : {Extent{37, 29}, Extent{65}, Extent{1, 1, 1}, Extent{130, 5}, Extent{3, 150, 2}}) {
    expect_as_phases<float>(Decomposition::slabs(extent, 1, 0), leaning(0.17F), kNothing);
    expect_as_phases<double>(Decomposition::slabs(extent, 1, 0), leaning(0.17), kNothing);
  }
}

TEST_P(GridPassesTest, RowsOfManyStripsAndManyRuns) {
  expect_as_phases<float>(Decomposition::slabs({4500, 9}, 1, 0), leaning(0.17F), kNothing);
  if (!kSanitized) expect_as_phases<double>(Decomposition::slabs({2100, 300}, 2, 1), coupled(0.3), kNothing);
}

TEST_P(GridPassesTest, CutsOfEveryKind) {
  expect_as_phases<float>(Decomposition::slabs({57, 44}, 3, 0), leaning(0.17F), kNothing);
  expect_as_phases<double>(Decomposition::slabs({57, 44}, 2, 1), leaning(0.17), kNothing);
  expect_as_phases<float>(Decomposition::slabs({21, 15, 6}, 3, 2), leaning(0.17F), kNothing);
  expect_as_phases<double>(Decomposition::blocks({60, 58}, {2, 2, 1}), coupled(0.3), kNothing);
  expect_as_phases<float>(Decomposition::blocks({45, 47, 4}, {2, 2, 2}), coupled(0.3F), kNothing);
}

TEST_P(GridPassesTest, FieldsThatChangePlaces) {
  expect_as_phases<float>(Decomposition::slabs({19, 30}, 1, 0), rotating(), kNothing);
  expect_as_phases<float>(Decomposition::slabs({19, 30}, 2, 1), rotating(), kNothing);
}

/// Passes of one step while another phase has cells, then without, then of many steps, then of one again, which leaves
/// fields in different memory each time.
TEST_P(GridPassesTest, AnotherPhaseNowAndThen) {
  const auto between = [](Simulation& simulation) {
    const std::uint64_t done = simulation.steps_done();
    if (done == 1 || done == 7) simulation.restrict(2, {});
    if (done == 5) simulation.restrict(2, {Box{{2, 3, 0}, {9, 8, 1}}, Box::cell({20, 20, 0})});
    if (done == 16) simulation.restrict(1, {Box{{0, 0, 0}, {30, 40, 1}}});
  };
  expect_as_phases<float>(Decomposition::slabs({44, 48}, 2, 1), coupled(0.3F), between);
  expect_as_phases<double>(Decomposition::blocks({46, 48}, {2, 2, 1}), coupled(0.3), between);
}

template <class T>
std::vector<std::vector<T>> maxwell(const Options& options, std::size_t parts, bool with_source, int layers = 0,
                                    bool te = false) {
  grid::FdtdOptions made;
  if (te) made.polarisation = grid::Polarisation::te;
  made.extent = {70, 52};
  made.spacing = 0.01;
  made.devices = GridTest::devices(parts);
  made.simulation = options;
  made.cpml.cells = layers;
  made.precision = sizeof(T) == 4 ? grid::Precision::fp32 : grid::Precision::fp64;
  grid::Fdtd fdtd(made);
  std::vector<double> permittivity(70 * 52);
  for (std::size_t i = 0; i < permittivity.size(); ++i) permittivity[i] = 1 + static_cast<double>(i % 7);
  fdtd.set_materials({.permittivity = permittivity, .conductivity = std::array{0.01}, .permeability = std::array{1.0}});
  fdtd.set<T>(te ? "ex" : "hx", scattered<T>(made.extent, 9).values);
  if (with_source) {
    fdtd.add_source(te ? "hz" : "ez", {20, 17, 0}, std::vector<double>{1, 3, -2, 5, 0.5});
    static_cast<void>(fdtd.add_receiver(te ? "ex" : "hx", {12, 19, 0}));
  }
  fdtd.step(5);
  if (with_source) fdtd.add_source(te ? "ey" : "hy", {33, 40, 0}, std::vector<double>(12, 0.25));
  fdtd.step(18);
  std::vector<std::vector<T>> found;
  for (const std::string& name : fdtd.state_fields()) fdtd.get<T>(name, found.emplace_back(70 * 52));
  if (options.passes == Passes::always) {
    EXPECT_TRUE(fdtd.simulation().passes_alone());
  }
  if (with_source) {
    for (const double value : fdtd.trace(0)) found.back().push_back(static_cast<T>(value));
  }
  return found;
}

TEST_P(GridPassesTest, MaxwellsEquations) {
  for (const bool with_source : {false, true}) {
    for (const std::size_t parts : {1U, 2U, 4U}) {
      for (const int redundant : {1, 2, 4, 6}) {
        SCOPED_TRACE(fmt::format("{} parts, {} redundant, source {}", parts, redundant, with_source));
        const Options passes{.redundant = redundant, .passes = Passes::always};
        EXPECT_EQ(maxwell<float>(passes, parts, with_source),
                  maxwell<float>({.passes = Passes::never}, 1, with_source));
        EXPECT_EQ(maxwell<double>(passes, parts, with_source),
                  maxwell<double>({.passes = Passes::never}, 1, with_source));
      }
    }
  }
}

/// Phases around layers and points add their parts, and passes do the rest.
TEST_P(GridPassesTest, MaxwellsEquationsWithLayers) {
  for (const bool with_source : {false, true}) {
    const auto wanted = maxwell<float>({.passes = Passes::never}, 1, with_source, 3);
    const auto wanted_double = maxwell<double>({.passes = Passes::never}, 1, with_source, 3);
    for (const std::size_t parts : {1U, 2U, 4U}) {
      for (const int redundant : {1, 2, 4, 6}) {
        SCOPED_TRACE(fmt::format("{} parts, {} redundant, source {}", parts, redundant, with_source));
        const Options passes{.redundant = redundant, .passes = Passes::always};
        EXPECT_EQ(maxwell<float>(passes, parts, with_source, 3), wanted);
        EXPECT_EQ(maxwell<double>(passes, parts, with_source, 3), wanted_double);
      }
    }
  }
}

TEST_P(GridPassesTest, MaxwellsEquationsWithHzInAPlane) {
  for (const int layers : {0, 3}) {
    const auto wanted = maxwell<float>({.passes = Passes::never}, 1, true, layers, true);
    const auto wanted_double = maxwell<double>({.passes = Passes::never}, 1, true, layers, true);
    for (const std::size_t parts : {1U, 2U, 4U}) {
      for (const int redundant : {1, 2, 4, 6}) {
        SCOPED_TRACE(fmt::format("{} parts, {} redundant, {} layers", parts, redundant, layers));
        const Options passes{.redundant = redundant, .passes = Passes::always};
        EXPECT_EQ(maxwell<float>(passes, parts, true, layers, true), wanted);
        EXPECT_EQ(maxwell<double>(passes, parts, true, layers, true), wanted_double);
      }
    }
  }
}

/// Norms of the change of each step of Jacobi from a scattered source.
std::vector<Norms> changes(const Decomposition& cut, const Options& options, std::uint64_t count) {
  Simulation simulation(cut, GridTest::devices(cut.parts().size()), grid::jacobi<float>(2), options);
  simulation.set<float>(grid::kJacobiSource, scattered<float>(cut.extent(), 4).values);
  auto found = simulation.step_with_changes(count);
  EXPECT_EQ(simulation.steps_done(), count);
  const Norms last = simulation.norms_of_difference(0, 1);
  EXPECT_EQ(found.back().maximum, last.maximum) << "the values before the last step still exist";
  EXPECT_NEAR(found.back().two, last.two, 1e-12 * last.two);
  return found;
}

TEST_P(GridPassesTest, ChangesOfEachStepAreEqualForEveryCut) {
  constexpr std::uint64_t kSteps = 41;
  const Extent extent{150, 61};
  const auto right = changes(Decomposition::slabs(extent, 1, 0), {.passes = Passes::never}, kSteps);
  ASSERT_EQ(right.size(), kSteps);
  for (const auto& cut : {Decomposition::slabs(extent, 1, 0), Decomposition::slabs(extent, 3, 1),
                          Decomposition::blocks(extent, {2, 2, 1})}) {
    for (const int redundant : {1, 2, 4, 5}) {
      const auto found = changes(cut, {.redundant = redundant, .passes = Passes::always}, kSteps);
      for (std::size_t step = 0; step < kSteps; ++step) {
        EXPECT_EQ(found[step].two, right[step].two) << redundant << " redundant, step " << step;
        EXPECT_EQ(found[step].maximum, right[step].maximum) << redundant << " redundant, step " << step;
      }
    }
  }
  const auto step_by_step =
      changes(Decomposition::slabs(extent, 2, 1), {.redundant = 4, .passes = Passes::always, .pass_steps = 1}, kSteps);
  for (std::size_t step = 0; step < kSteps; ++step) EXPECT_EQ(step_by_step[step].two, right[step].two) << step;
  Simulation simulation(Decomposition::slabs(extent, 1, 0), devices(1), grid::jacobi<float>(2));
  simulation.set<float>(grid::kJacobiSource, scattered<float>(extent, 4).values);
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    simulation.step(1);
    const Norms plain = simulation.norms_of_difference(0, 1);
    EXPECT_EQ(right[step].maximum, plain.maximum);
    EXPECT_NEAR(right[step].two, plain.two, 1e-12 * plain.two);
  }
}

TEST_P(GridPassesTest, ChangesThatCannotBeAddedUp) {
  const Extent extent{40, 30};
  for (const Passes passes : {Passes::always, Passes::never}) {
    Simulation growing(Decomposition::slabs(extent, 1, 0), devices(1), leaning(40.0F), {.passes = passes});
    growing.set<float>(0, scattered<float>(extent, 4).values);
    EXPECT_THAT([&] { static_cast<void>(growing.step_with_changes(9)); },
                ThrowsMessage<DataError>(HasSubstr("must not grow 64-fold")));
    Simulation still(Decomposition::slabs(extent, 1, 0), devices(1), grid::heat<double>(2, 0.2), {.passes = passes});
    for (const Norms& norms : still.step_with_changes(20)) EXPECT_EQ(norms.two, 0);
    HostField<double> field(extent);
    field.at(3, 4, 0) = std::numeric_limits<double>::quiet_NaN();
    still.set<double>(0, field.values);
    for (const Norms& norms : still.step_with_changes(3)) EXPECT_TRUE(std::isnan(norms.two));
  }
  Simulation unwatched(Decomposition::slabs(extent, 1, 0), devices(1), coupled(0.3F));
  EXPECT_THAT([&] { static_cast<void>(unwatched.step_with_changes(1)); },
              ThrowsMessage<UsageError>(HasSubstr("has no watched field")));
}

TEST_P(GridPassesTest, APassMovesEachFieldOnce) {
  const Extent extent{32, 16};
  const auto values_moved = [&](const grid::StencilProgram& program, const Options& options) {
    Simulation simulation(Decomposition::slabs(extent, 1, 0), devices(1), program, options);
    return static_cast<double>(simulation.moved_bytes()) / static_cast<double>(extent.cells()) / 4;
  };
  EXPECT_EQ(values_moved(grid::jacobi<float>(2), {.passes = Passes::always}), 3);
  EXPECT_EQ(values_moved(grid::jacobi<float>(2), {.redundant = 4, .passes = Passes::always}), 0.75);
  // Four steps go through a CPU device's memory together: they read two fields, and write both solutions.
  EXPECT_EQ(values_moved(grid::jacobi<float>(2), {.redundant = 4, .passes = Passes::never}), on_cpu() ? 1 : 3);
  EXPECT_EQ(values_moved(grid::jacobi<float>(2), {.redundant = 4, .passes = Passes::always, .pass_steps = 1}), 3);
  EXPECT_EQ(values_moved(grid::jacobi<float>(2), {.redundant = 4, .passes = Passes::always, .pass_steps = 3}), 1.5);
  grid::FdtdOptions fdtd;
  fdtd.extent = extent;
  fdtd.spacing = 0.01;
  fdtd.devices = devices(1);
  fdtd.cpml.cells = 0;
  for (const auto& [redundant, values] : {std::pair{1, 9.0}, {2, 4.5}, {4, 2.25}}) {
    fdtd.simulation = {.redundant = redundant, .passes = Passes::always};
    const grid::Fdtd made(fdtd);
    EXPECT_EQ(static_cast<double>(made.simulation().moved_bytes()) / static_cast<double>(extent.cells()) / 4, values);
  }
}

/// The layout of passes, worked out by hand.
TEST(GridSweepTest, LagsWindowsAndPlaces) {
  using Two = grid::Sweep<Leaning<float>, 2>;
  static_assert(Two::ops()[0].lag == 2 && Two::ops()[1].lag == 4, "two rows above are read");
  static_assert(Two::depth() == 6 && Two::lag() == 4);
  static_assert(Two::halo() == grid::Layers{.low = {4, 2, 0}, .high = {2, 4, 0}});
  static_assert(Two::loaded() == grid::fields(0) && Two::stored() == grid::fields(0));
  static_assert(grid::Sweep<Leaning<float>, 1>::redirects().count == 0, "the swap leads it elsewhere anyway");
  static_assert(Two::redirects().count == 1 && Two::redirects().spare == 0);
  using Pair = grid::Sweep<Coupled<float>, 1>;
  static_assert(Pair::ops()[0].lag == 1 && Pair::ops()[1].lag == 2, "what the one reads below, the other overwrites");
  static_assert(Pair::stored() == grid::fields(0, 1) && Pair::loaded() == grid::fields(0, 1, 2));
  static_assert(Pair::redirects().count == 2 && Pair::redirects().spare == 2, "no memory is free");
  static_assert(!grid::sweepable<Skewed<float>>() && grid::sweepable<Rotating>());
}

}  // namespace
}  // namespace headrace::testing
