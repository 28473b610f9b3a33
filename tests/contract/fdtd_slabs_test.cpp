#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/grid/fdtd.hpp"
#include "tests/contract/grid_support.hpp"
#include "tests/sanitizers.hpp"

/// Maxwell's equations in a domain larger than its device's memory: fields and traces equal those of a run within that
/// memory, to the last bit.
namespace headrace::testing {
namespace {

using grid::Extent;
using grid::Fdtd;
using grid::FdtdOptions;
using grid::Passes;

class FdtdSlabsTest : public GridTest {};
HEADRACE_ON_EVERY_DEVICE(FdtdSlabsTest);

struct SweptScene {
  Extent extent;
  int layers = 0;
  int points = 2;  ///< Number of sources, and of receivers, in rows all along the domain.
  bool uniform = false;
  bool per_component = false;
  bool dispersive = false;
  grid::Polarisation polarisation = grid::Polarisation::tm;

  /// "ez" or "hz", and "hx" or "ex", and "hy" or "ey".
  [[nodiscard]] const char* across() const { return is_te() ? "hz" : "ez"; }
  [[nodiscard]] const char* along_x() const { return is_te() ? "ex" : "hx"; }
  [[nodiscard]] const char* along_y() const { return is_te() ? "ey" : "hy"; }
  [[nodiscard]] bool is_te() const { return polarisation == grid::Polarisation::te; }
};

[[nodiscard]] FdtdOptions options_of(const SweptScene& scene, grid::Precision precision) {
  FdtdOptions options;
  options.extent = scene.extent;
  options.dimensions = scene.extent.dimensions();
  options.polarisation = scene.polarisation;
  options.spacing = 1e-3;
  options.devices = GridTest::devices(1);
  options.cpml.cells = scene.layers;
  options.precision = precision;
  options.per_component = scene.per_component;
  options.pole_values = scene.dispersive ? 3 : 0;
  return options;
}

void set_materials(Fdtd& fdtd, const SweptScene& scene) {
  const auto cells = static_cast<std::size_t>(scene.extent.cells());
  std::vector<double> permittivity(scene.uniform ? 1 : cells, 2.0);
  std::vector<double> conductivity(permittivity.size(), 0.002);
  for (std::size_t i = 0; i < permittivity.size() && !scene.uniform; ++i) {
    permittivity[i] = 2 + static_cast<double>(i / 7 % 5);
    conductivity[i] = i % 11 == 0 ? 0.01 : 0;
  }
  const double one[] = {1.5};
  if (scene.per_component) return fdtd.set_component_materials({permittivity, conductivity, one, one});
  grid::FdtdMaterials materials{.permittivity = permittivity, .conductivity = conductivity, .permeability = one};
  std::array<grid::FdtdMedium, 2> media;
  add_debye(media[0], 3, 2e-11);
  add_lorentz(media[1], 1, 2e10, 1e9);
  std::vector<std::uint16_t> medium(cells);
  for (std::size_t i = 0; i < cells; ++i) medium[i] = static_cast<std::uint16_t>(i % 4 == 1 ? 1 : i % 9 == 2 ? 2 : 0);
  if (scene.dispersive) materials.media = media;
  if (scene.dispersive) materials.medium = medium;
  fdtd.set_materials(materials);
}

void add_points(Fdtd& fdtd, const SweptScene& scene, int number) {
  const Extent& extent = scene.extent;
  const bool flat = extent.nz == 1;
  const std::int64_t rows = flat ? extent.ny : extent.nz;
  const std::int64_t row = 2 + (rows - 4) * number / std::max(scene.points - 1, 1);
  const std::int64_t across = 2 + number % 4;
  const auto at = [&](std::int64_t x, std::int64_t along) {
    return flat ? grid::Offsets{x, along, 0} : grid::Offsets{x, extent.ny / 2, along};
  };
  std::vector<double> samples(9);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = std::sin(static_cast<double>(i) + number);
  fdtd.add_source(number % 3 == 2 ? scene.along_x() : scene.across(), at(extent.nx / 2 - across, row), samples);
  fdtd.add_receiver(number % 2 == 0 ? scene.across() : scene.along_y(), at(extent.nx / 2 + across, rows - row));
}

struct Result {
  std::vector<std::vector<double>> values;
  bool slabs = false;
  std::int64_t count = 0;
  std::size_t fields = 0;
};

template <class V>
Result result_of(const SweptScene& scene, const grid::SimulationOptions& simulation) {
  FdtdOptions options = options_of(scene, sizeof(V) == 4 ? grid::Precision::fp32 : grid::Precision::fp64);
  options.simulation = simulation;
  Fdtd fdtd(options);
  set_materials(fdtd, scene);
  fdtd.set<V>(scene.along_y(), scattered<V>(scene.extent, 9).values);
  Result result;
  for (int i = 0; i < scene.points - 1; ++i) add_points(fdtd, scene, i);
  fdtd.step(5);
  add_points(fdtd, scene, scene.points - 1);
  fdtd.step(18);
  if (const auto slabs = fdtd.simulation().slabs())
    result = {.values = {}, .slabs = true, .count = slabs->count, .fields = 0};
  for (const std::string& name : fdtd.state_fields()) {
    std::vector<V> field(static_cast<std::size_t>(scene.extent.cells()));
    fdtd.get<V>(name, field);
    result.values.emplace_back(field.begin(), field.end());
  }
  result.fields = result.values.size();
  for (std::size_t i = 0; i < fdtd.receiver_count(); ++i) {
    const auto trace = fdtd.trace(i);
    std::vector<double>& kept = result.values.emplace_back(trace.begin(), trace.end());
    for (double& value : kept) value = std::isnan(value) ? 1e9 : value;
  }
  return result;
}

// Under a sanitizer, where a run takes thirty times as long, fewer of them find what it looks for.
const std::vector<double> kShares = kSanitized ? std::vector{0.7, 0.3} : std::vector{1.0, 0.7, 0.5, 0.3};
const std::vector<int> kVisitSteps = kSanitized ? std::vector{0, 4} : std::vector{0, 1, 4, 6, 13};

/// Slabs with budgets from nearly the whole domain down to none.
template <class V>
void expect_as_in_core(const SweptScene& scene) {
  const Result wanted = result_of<V>(scene, {});
  ASSERT_FALSE(wanted.slabs);
  int runs = 0;
  std::int64_t most = 0;
  const auto fields = static_cast<double>(wanted.fields) + (scene.extent.nz > 1 ? 2 : 3);
  for (const double share : kShares) {
    for (const int steps : kVisitSteps) {
      for (const Passes passes : {Passes::automatic, Passes::always}) {
        const auto budget =
            static_cast<std::size_t>(share * fields * static_cast<double>(scene.extent.cells()) * sizeof(V));
        SCOPED_TRACE(fmt::format("{}, {} layers, {} points, {} bytes, {} steps a visit, passes {}",
                                 to_string(scene.extent), scene.layers, scene.points, budget, steps,
                                 to_string(passes)));
        Result found;
        try {
          found = result_of<V>(scene, {.passes = passes, .device_memory_bytes = budget, .visit_steps = steps});
        } catch (const UsageError& error) {
          EXPECT_THAT(error.what(), ::testing::HasSubstr("cannot hold a slab of a domain"));
          continue;
        }
        if (!found.slabs) continue;
        ++runs;
        EXPECT_TRUE(found.values == wanted.values);
        most = std::max(most, found.count);
      }
    }
  }
  EXPECT_GE(runs, kSanitized ? 4 : 12);
  EXPECT_GE(most, 8);
}

TEST_P(FdtdSlabsTest, PlaneWithoutLayers) {
  expect_as_in_core<float>({.extent = {50, 220}});
  expect_as_in_core<double>({.extent = {33, 150}, .uniform = true});
}

TEST_P(FdtdSlabsTest, PlaneWithLayers) {
  expect_as_in_core<float>({.extent = {70, 280}, .layers = 4});
  expect_as_in_core<double>({.extent = {70, 180}, .layers = 3, .uniform = true});
}

/// More points than passes leave patches for, so phases do everything.
TEST_P(FdtdSlabsTest, PlaneWithManyPoints) {
  expect_as_in_core<float>({.extent = {40, 200}, .layers = 4, .points = 40});
}

TEST_P(FdtdSlabsTest, PlaneWithMaterialsOfComponents) {
  expect_as_in_core<float>({.extent = {50, 200}, .layers = 4, .points = 3, .per_component = true});
}

TEST_P(FdtdSlabsTest, PlaneWithDispersiveMedia) {
  expect_as_in_core<double>({.extent = {40, 160}, .layers = 3, .points = 3, .dispersive = true});
}

TEST_P(FdtdSlabsTest, PlaneOfHz) {
  constexpr auto kTe = grid::Polarisation::te;
  expect_as_in_core<float>({.extent = {50, 220}, .polarisation = kTe});
  expect_as_in_core<double>({.extent = {70, 180}, .layers = 3, .points = 3, .polarisation = kTe});
  expect_as_in_core<float>({.extent = {40, 160}, .layers = 3, .points = 3, .dispersive = true, .polarisation = kTe});
}

TEST_P(FdtdSlabsTest, SpaceWithoutLayers) { expect_as_in_core<float>({.extent = {14, 11, 90}, .points = 3}); }

TEST_P(FdtdSlabsTest, SpaceWithLayers) {
  expect_as_in_core<float>({.extent = {14, 12, 90}, .layers = 3, .points = 5});
  expect_as_in_core<double>({.extent = {15, 12, 70}, .layers = 3, .points = 3, .uniform = true});
}

TEST_P(FdtdSlabsTest, SpaceWithDispersiveMedia) {
  expect_as_in_core<float>({.extent = {12, 11, 60}, .layers = 2, .points = 3, .dispersive = true});
}

TEST_P(FdtdSlabsTest, OptionsThatCannotBeAreRefusedAsInDeviceMemory) {
  for (const int redundant : {0, -1, 1 << 30}) {
    FdtdOptions options = options_of({.extent = {60, 240}, .layers = 4}, grid::Precision::fp32);
    options.simulation = {.redundant = redundant, .device_memory_bytes = 400000};
    EXPECT_THAT(
        [&] { const Fdtd refused(options); },
        ::testing::ThrowsMessage<UsageError>(::testing::HasSubstr("redundant layers must cover 1 to 64 steps")));
  }
}

/// A run that began in device memory continues in slabs, and vice versa.
TEST_P(FdtdSlabsTest, ResumedInSlabs) {
  const SweptScene scene{.extent = {60, 240}, .layers = 4, .points = 3};
  const auto make = [&](std::size_t budget) {
    FdtdOptions options = options_of(scene, grid::Precision::fp32);
    options.simulation.device_memory_bytes = budget;
    Fdtd fdtd(options);
    set_materials(fdtd, scene);
    for (int i = 0; i < scene.points; ++i) add_points(fdtd, scene, i);
    return fdtd;
  };
  const auto fields_of = [&](Fdtd& fdtd) {
    std::vector<std::vector<float>> fields;
    for (const std::string& name : fdtd.state_fields())
      fdtd.get<float>(name, fields.emplace_back(static_cast<std::size_t>(scene.extent.cells())));
    return fields;
  };
  Fdtd whole = make(0);
  whole.step(40);
  for (const auto& [before, after] : {std::pair<std::size_t, std::size_t>{0, 400000}, {400000, 0}, {400000, 300000}}) {
    Fdtd first = make(before);
    first.step(21);
    const auto fields = fields_of(first);
    std::vector<std::vector<double>> traces;
    for (std::size_t i = 0; i < first.receiver_count(); ++i) {
      traces.emplace_back(first.trace(i).begin(), first.trace(i).end());
    }
    Fdtd second = make(after);
    for (std::size_t i = 0; i < fields.size(); ++i) second.set<float>(second.state_fields()[i], fields[i]);
    second.resume(21, traces);
    second.step(19);
    EXPECT_TRUE(fields_of(second) == fields_of(whole));
    EXPECT_TRUE(std::ranges::equal(second.trace(1), whole.trace(1)));
    second.check_finite();
  }
}

}  // namespace
}  // namespace headrace::testing
