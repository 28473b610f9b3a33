#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "headrace/grid/fdtd.hpp"
#include "tests/contract/devices.hpp"

// Fdtd with periodic walls, on every device. A periodic domain has no place of its own: what is turned along the axis
// stays the same to the last bit, and several periods are several copies of one.
namespace headrace::testing {
namespace {

using grid::Decomposition;
using grid::Extent;
using grid::Fdtd;
using grid::FdtdOptions;
using grid::Offsets;
using grid::Polarisation;
using grid::Precision;
using grid::Push;
using Values = std::vector<std::vector<double>>;

/// One period of a domain in random materials.
struct Period {
  int dimensions = 2;
  Extent extent{11, 9, 1};
  std::array<bool, 3> axes{true, false, false};
  std::int64_t layer = 0;  ///< At the walls that are not periodic.
  Polarisation polarisation = Polarisation::tm;
  bool averaging = true;
  bool per_component = false;
  int pole_values = 0;
};

/// How it is run: turned by some cells, and with several copies along the periodic axes.
struct Turned {
  Offsets by{};
  std::int64_t copies = 1;
  std::array<std::size_t, 3> cut{1, 1, 1};
  int redundant = 1;
  Push push = Push::automatic;
};

constexpr std::uint64_t kPeriodicSteps = 23;

template <class Visit>
void for_each_cell_of(const Extent& extent, const Visit& visit) {
  for (std::int64_t z = 0; z < extent.nz; ++z) {
    for (std::int64_t y = 0; y < extent.ny; ++y) {
      for (std::int64_t x = 0; x < extent.nx; ++x) visit(Offsets{x, y, z});
    }
  }
}

class PeriodicRun {
 public:
  PeriodicRun(const Period& period, const Turned& turned, Precision precision, Device device)
      : period_(period), turned_(turned), extent_(whole()), fdtd_(options(precision, device)) {
    set_materials();
    add_points();
    fdtd_.step(kPeriodicSteps / 3);
    fdtd_.step(kPeriodicSteps - kPeriodicSteps / 3);
  }

  /// All state fields of the last copy, turned back, and the traces.
  [[nodiscard]] Values results() {
    Values found;
    for (const std::string& name : fdtd_.state_fields()) {
      const std::vector<double> all = field(name);
      std::vector<double>& kept = found.emplace_back();
      for_each_cell_of(period_.extent, [&](const Offsets& at) { kept.push_back(all[number(place(at, last_copy()))]); });
    }
    for (std::size_t i = 0; i < fdtd_.receiver_count(); ++i) {
      const auto trace = fdtd_.trace(i);
      found.emplace_back(trace.begin(), trace.end());
    }
    return found;
  }

 private:
  [[nodiscard]] Extent whole() const {
    Offsets along = period_.extent.cells_along();
    for (std::size_t axis = 0; axis < 3; ++axis) along[axis] *= period_.axes[axis] ? turned_.copies : 1;
    return {along[0], along[1], along[2]};
  }

  [[nodiscard]] FdtdOptions options(Precision precision, Device device) const {
    FdtdOptions made;
    made.extent = extent_;
    made.dimensions = period_.dimensions;
    made.polarisation = period_.polarisation;
    made.spacing = {1e-3, 1.5e-3, 1.25e-3};
    made.decomposition = Decomposition::blocks(extent_, turned_.cut);
    made.devices.assign(turned_.cut[0] * turned_.cut[1] * turned_.cut[2], device);
    made.simulation = {.redundant = turned_.redundant, .push = turned_.push};
    made.cpml.cells = period_.layer;
    made.cpml.sides.emplace();
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const bool layered = axis < static_cast<std::size_t>(period_.dimensions) && !period_.axes[axis];
      (*made.cpml.sides)[axis] = layered ? std::array{period_.layer, period_.layer} : std::array<std::int64_t, 2>{};
    }
    made.periodic = period_.axes;
    made.precision = precision;
    made.averaging = period_.averaging;
    made.per_component = period_.per_component;
    made.pole_values = period_.pole_values;
    return made;
  }

  [[nodiscard]] Offsets last_copy() const { return {turned_.copies - 1, turned_.copies - 1, turned_.copies - 1}; }

  /// Where a cell of the period lies in one of the copies.
  [[nodiscard]] Offsets place(Offsets at, const Offsets& copy) const {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (!period_.axes[axis]) continue;
      const std::int64_t count = extent_.cells_along()[axis];
      at[axis] = (at[axis] + turned_.by[axis] + copy[axis] * period_.extent.cells_along()[axis]) % count;
    }
    return at;
  }

  /// The cell of the period at a place.
  [[nodiscard]] Offsets cell_at(Offsets place) const {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const std::int64_t count = period_.extent.cells_along()[axis];
      if (period_.axes[axis]) place[axis] = (place[axis] - turned_.by[axis] + 2 * count) % count;
    }
    return place;
  }

  [[nodiscard]] std::size_t number(const Offsets& at) const {
    return static_cast<std::size_t>((at[2] * extent_.ny + at[1]) * extent_.nx + at[0]);
  }

  /// Calls `visit` with the place of a cell of the period in each copy.
  template <class Visit>
  void in_each_copy(const Offsets& at, const Visit& visit) const {
    const auto count = [&](std::size_t axis) { return period_.axes[axis] ? turned_.copies : 1; };
    for_each_cell_of({count(0), count(1), count(2)}, [&](const Offsets& copy) { visit(place(at, copy)); });
  }

  /// Vacuum in layers, whose grading depends on the order in which materials there are added up.
  [[nodiscard]] std::array<double, 4> material_at(const Offsets& at) const {
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(period_.dimensions); ++axis) {
      if (period_.axes[axis]) continue;
      const std::int64_t count = period_.extent.cells_along()[axis];
      if (at[axis] < period_.layer || at[axis] >= count - period_.layer) return {1, 0, 1, 1};
    }
    std::mt19937 random(static_cast<unsigned>(at[0] + 100 * at[1] + 10000 * at[2]));
    const auto draw = [&] { return static_cast<double>(random() % 1000) / 1000; };
    const double permittivity = 2 + 3 * draw();
    const double conductivity = draw() < 0.3 ? draw() : 0;
    return {permittivity, conductivity, 1 + draw(), 1 + draw()};
  }

  void set_materials() {
    std::array<std::vector<double>, 4> of;
    std::vector<std::uint16_t> medium;
    for_each_cell_of(extent_, [&](const Offsets& at) {
      const Offsets cell = cell_at(at);
      const auto its = material_at(cell);
      for (std::size_t i = 0; i < its.size(); ++i) of[i].push_back(its[i]);
      medium.push_back(its[0] > 3 ? 1 : 0);
    });
    if (period_.per_component) return fdtd_.set_component_materials({of[0], of[1], of[2], of[3]});
    std::vector<std::int64_t> edges;
    for (const Offsets& at : {Offsets{0, 4, 0}, Offsets{5, 0, 0}, Offsets{4, 4, 0}}) {
      in_each_copy(at, [&](const Offsets& there) { edges.push_back(static_cast<std::int64_t>(number(there))); });
    }
    std::ranges::sort(edges);
    const std::vector<double> permittivity(edges.size(), 1.5);
    const std::vector<double> conductivity(edges.size(), 0.25);
    grid::FdtdMaterials materials{of[0], of[1], of[2]};
    const std::size_t along = period_.polarisation == Polarisation::te ? 0 : 2;
    materials.edges[along] = {edges, permittivity, conductivity};
    grid::FdtdMedium debye;
    grid::add_debye(debye, 2.0, 2e-11);
    if (period_.pole_values > 0) {
      materials.media = std::span(&debye, 1);
      materials.medium = medium;
    }
    fdtd_.set_materials(materials);
  }

  /// Sources at the low end of axes, at the high end, and two in one cell; receivers in the last copy.
  void add_points() {
    std::size_t seed = 0;
    const Offsets last{period_.extent.nx - 1, period_.extent.ny - 1, period_.extent.nz - 1};
    const std::int64_t middle = period_.extent.nz / 2;
    for (const std::string& name : fdtd_.fields()) {
      std::mt19937 random(static_cast<unsigned>(++seed));
      std::vector<double> samples(15);
      for (double& sample : samples) sample = static_cast<double>(random() % 2000) / 1000 - 1;
      for (const Offsets& at : {Offsets{0, 4, middle}, Offsets{last[0], 5, middle}, Offsets{3, 0, middle},
                                Offsets{4, last[1], middle}, Offsets{4, 4, 0}, Offsets{4, 5, last[2]}}) {
        if (is_on_wall(name, at)) continue;
        in_each_copy(at, [&](const Offsets& there) { fdtd_.add_source(name, there, samples); });
        if (at[1] == 4) in_each_copy(at, [&](const Offsets& there) { fdtd_.add_source(name, there, samples); });
        fdtd_.add_receiver(name, place(at, last_copy()));
      }
    }
  }

  [[nodiscard]] bool is_on_wall(const std::string& name, const Offsets& at) const {
    if (name[0] == 'h') return false;
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(period_.dimensions); ++axis) {
      if (!period_.axes[axis] && at[axis] == 0 && static_cast<std::size_t>(name[1] - 'x') != axis) return true;
    }
    return false;
  }

  [[nodiscard]] std::vector<double> field(const std::string& name) {
    std::vector<double> values(static_cast<std::size_t>(extent_.cells()));
    if (fdtd_.options().precision == Precision::fp64) {
      fdtd_.get_state_bytes(name, TypeKey::of<double>(), values.data(), values.size());
      return values;
    }
    std::vector<float> rounded(values.size());
    fdtd_.get_state_bytes(name, TypeKey::of<float>(), rounded.data(), rounded.size());
    std::ranges::copy(rounded, values.begin());
    return values;
  }

  Period period_;
  Turned turned_;
  Extent extent_;
  Fdtd fdtd_;
};

class FdtdPeriodicTest : public DeviceTest {
 protected:
  void expect_the_same(const Period& period, const std::vector<Turned>& others) const {
    for (const Precision precision : {Precision::fp32, Precision::fp64}) {
      const Values wanted = PeriodicRun(period, {}, precision, device()).results();
      for (const std::vector<double>& values : wanted) {
        EXPECT_TRUE(std::ranges::all_of(values, [](double value) { return std::isfinite(value); }));
      }
      EXPECT_TRUE(std::ranges::any_of(wanted[0], [](double value) { return value != 0; }));
      for (const Turned& other : others) {
        SCOPED_TRACE(::testing::Message()
                     << "turned by " << other.by[0] << " " << other.by[1] << " " << other.by[2] << ", copies "
                     << other.copies << ", cut " << other.cut[0] << " " << other.cut[1] << " " << other.cut[2] << ", R "
                     << other.redundant << ", push " << to_string(other.push) << ", " << to_string(precision));
        EXPECT_EQ(PeriodicRun(period, other, precision, device()).results(), wanted);
      }
    }
  }

  [[nodiscard]] static FdtdOptions options(const Extent& extent, int dimensions, const std::array<bool, 3>& axes) {
    FdtdOptions made;
    made.extent = extent;
    made.dimensions = dimensions;
    made.spacing = {1e-3, 2e-3, 1.5e-3};
    made.devices = {device()};
    made.cpml.cells = 0;
    made.periodic = axes;
    made.precision = Precision::fp64;
    return made;
  }
};

HEADRACE_ON_EVERY_DEVICE(FdtdPeriodicTest);

const std::vector<Turned> kInPlane{{.by = {1, 2, 0}},
                                   {.by = {7, 8, 0}},
                                   {.copies = 3},
                                   {.cut = {2, 1, 1}},
                                   {.cut = {1, 2, 1}, .redundant = 2},
                                   {.by = {4, 4, 0}, .cut = {2, 2, 1}, .push = Push::copy},
                                   {.cut = {3, 1, 1}, .redundant = 3, .push = Push::host},
                                   {.redundant = 4},
                                   {.by = {3, 1, 0}, .cut = {1, 3, 1}, .push = Push::host},
                                   {.push = Push::copy}};

const std::vector<Turned> kInSpace{{.by = {1, 2, 3}},
                                   {.by = {5, 4, 6}, .copies = 2},
                                   {.cut = {1, 1, 2}, .redundant = 2, .push = Push::copy},
                                   {.cut = {2, 2, 1}, .push = Push::host},
                                   {.by = {2, 2, 2}, .cut = {2, 1, 2}},
                                   {.cut = {1, 2, 1}, .redundant = 3}};

TEST_P(FdtdPeriodicTest, APlaneHasNoPlaceOfItsOwn) {
  for (const Polarisation polarisation : {Polarisation::tm, Polarisation::te}) {
    for (const auto& axes : {std::array{true, false, false}, {false, true, false}, {true, true, false}}) {
      expect_the_same({.axes = axes, .polarisation = polarisation}, kInPlane);
    }
    expect_the_same({.extent = {13, 12, 1}, .layer = 3, .polarisation = polarisation}, kInPlane);
    expect_the_same({.axes = {true, true, false}, .polarisation = polarisation, .averaging = false}, {kInPlane[0]});
  }
}

TEST_P(FdtdPeriodicTest, SpaceHasNoneEither) {
  const Extent extent{7, 6, 8};
  for (const auto& axes : {std::array{true, false, false}, {false, true, true}, {true, true, true}})
    expect_the_same({.dimensions = 3, .extent = extent, .axes = axes}, kInSpace);
  expect_the_same({.dimensions = 3, .extent = {7, 6, 9}, .axes = {true, true, false}, .layer = 2}, kInSpace);
  expect_the_same({.dimensions = 3, .extent = extent, .axes = {true, true, true}, .averaging = false}, {kInSpace[0]});
}

TEST_P(FdtdPeriodicTest, RowsOfManyRunsHaveNone) {
  expect_the_same({.dimensions = 3, .extent = {37, 6, 6}, .axes = {true, false, true}},
                  {{.by = {9, 0, 2}}, {.cut = {2, 1, 1}, .redundant = 2}});
  expect_the_same({.extent = {83, 9, 1}, .axes = {true, true, false}, .polarisation = Polarisation::te},
                  {{.by = {31, 5, 0}}, {.cut = {3, 1, 1}, .redundant = 2}});
}

TEST_P(FdtdPeriodicTest, DispersiveMediaAndMaterialsPerComponentHaveNone) {
  for (const Polarisation polarisation : {Polarisation::tm, Polarisation::te})
    expect_the_same({.axes = {true, true, false}, .polarisation = polarisation, .pole_values = 1}, kInPlane);
  expect_the_same({.dimensions = 3, .extent = {7, 6, 8}, .axes = {true, false, true}, .pole_values = 1}, kInSpace);
  expect_the_same({.axes = {true, true, false}, .per_component = true}, kInPlane);
  expect_the_same({.extent = {13, 12, 1}, .layer = 3, .per_component = true}, kInPlane);
}

/// sin^2(omega dt / 2) = (c dt)^2 sum of (sin(k d / 2) / d)^2 (Taflove and Hagness, chapter 4), with k = 2 pi m / (n d)
/// along a periodic axis of n cells.
TEST_P(FdtdPeriodicTest, AWaveOscillatesAsNumericalDispersionSays) {
  const Extent extent{12, 10, 6};
  FdtdOptions given = options(extent, 3, {true, true, true});
  given.decomposition = Decomposition::blocks(extent, {2, 1, 1});
  given.devices = {device(), device()};
  Fdtd fdtd(given);
  const double along_x = 2 * std::numbers::pi * 2 / static_cast<double>(extent.nx);
  const double along_y = 2 * std::numbers::pi * 3 / static_cast<double>(extent.ny);
  std::vector<double> start;
  for_each_cell_of(extent, [&](const Offsets& at) {
    start.push_back(std::cos(along_x * static_cast<double>(at[0]) + along_y * static_cast<double>(at[1]) + 0.3));
  });
  fdtd.set<double>("ez", start);
  const double speed = std::hypot(std::sin(along_x / 2) / given.spacing.x, std::sin(along_y / 2) / given.spacing.y);
  const double turn = 2 * std::asin(grid::kSpeedOfLight * fdtd.time_step() * speed);
  constexpr int kSwings = 300;
  fdtd.step(kSwings);
  std::vector<double> values(start.size());
  fdtd.get<double>("ez", values);
  const double swing = std::cos((kSwings + 0.5) * turn) / std::cos(turn / 2);
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(values[i], start[i] * swing, 1e-10) << i;
}

TEST_P(FdtdPeriodicTest, TheLastNodeIsTheFirst) {
  const Extent extent{8, 6, 1};
  const std::vector<double> samples{1, 2, -1};
  std::vector<std::vector<double>> traces;
  for (const std::int64_t at : {0, 8}) {
    Fdtd fdtd(options(extent, 2, {true, false, false}));
    fdtd.add_source("ez", {at, 3, 0}, samples);
    const std::size_t receiver = fdtd.add_receiver("ez", {at, 2, 0});
    fdtd.step(20);
    traces.emplace_back(fdtd.trace(receiver).begin(), fdtd.trace(receiver).end());
    EXPECT_THROW(fdtd.add_source("ez", {9, 3, 0}, samples), UsageError);
    EXPECT_THROW(fdtd.add_source("ez", {3, 6, 0}, samples), UsageError) << "not periodic";
    EXPECT_THROW(fdtd.add_source("ez", {3, 0, 0}, samples), UsageError) << "on a wall";
  }
  EXPECT_EQ(traces[0], traces[1]);
  EXPECT_NE(traces[0].back(), 0);
}

TEST_P(FdtdPeriodicTest, RefusesWhatCannotBe) {
  const Extent extent{8, 6, 1};
  const std::array<bool, 3> along_x{true, false, false};
  const auto refused = [](const FdtdOptions& given, const char* why) {
    try {
      const Fdtd fdtd(given);
      ADD_FAILURE() << "nothing was refused: " << why;
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr(why));
    }
  };
  refused(options(extent, 2, {false, false, true}), "no wall across z in two dimensions");
  FdtdOptions both = options(extent, 2, along_x);
  both.magnetic_walls = along_x;
  refused(both, "cannot be a magnetic conductor");
  FdtdOptions layered = options(extent, 2, along_x);
  layered.cpml.cells = 1;
  refused(layered, "walls of x are periodic, so they have no layers");
  FdtdOptions resident = options(extent, 2, along_x);
  resident.simulation.mode = grid::Mode::resident;
  refused(resident, "mode 'resident' is not possible with periodic walls");
  FdtdOptions passes = options(extent, 2, along_x);
  passes.simulation.passes = grid::Passes::always;
  refused(passes, "passes over memory are not possible with periodic walls");
  FdtdOptions large = options({64, 64, 1}, 2, along_x);
  large.simulation.device_memory_bytes = 4096;
  refused(large, "cannot run with periodic walls; use more devices");
  FdtdOptions wide = options({4, 6, 1}, 2, along_x);
  wide.simulation.redundant = 5;
  refused(wide, "fewer redundant layers");
}

}  // namespace
}  // namespace headrace::testing
