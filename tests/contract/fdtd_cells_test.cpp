#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

#include "headrace/grid/fdtd.hpp"
#include "tests/contract/devices.hpp"

// Fdtd in cells with edges of different lengths, on every device.
namespace headrace::testing {
namespace {

using grid::Decomposition;
using grid::Extent;
using grid::Fdtd;
using grid::FdtdOptions;
using grid::FdtdSpacing;
using grid::Precision;

class FdtdCellsTest : public DeviceTest {
 protected:
  [[nodiscard]] FdtdOptions box(int dimensions, const FdtdSpacing& spacing, std::array<std::size_t, 3> cut) const {
    FdtdOptions options;
    options.extent = {18, 14, dimensions == 2 ? 1 : 6};
    options.dimensions = dimensions;
    options.spacing = spacing;
    options.cpml.cells = 0;
    options.precision = Precision::fp64;
    options.decomposition = Decomposition::blocks(options.extent, cut);
    options.devices.assign(cut[0] * cut[1] * cut[2], device());
    return options;
  }
};

HEADRACE_ON_EVERY_DEVICE(FdtdCellsTest);

/// Ez of a mode of a closed box: half waves along x and y, and none along z.
[[nodiscard]] std::vector<double> mode_of(const Extent& extent, int along_x, int along_y) {
  std::vector<double> values;
  for (std::int64_t z = 0; z < extent.nz; ++z) {
    for (std::int64_t y = 0; y < extent.ny; ++y) {
      for (std::int64_t x = 0; x < extent.nx; ++x) {
        values.push_back(
            std::sin(std::numbers::pi * along_x * static_cast<double>(x) / static_cast<double>(extent.nx)) *
            std::sin(std::numbers::pi * along_y * static_cast<double>(y) / static_cast<double>(extent.ny)));
      }
    }
  }
  return values;
}

/// sin^2(omega dt / 2) = (c dt)^2 sum of (sin(k d / 2) / d)^2: Taflove and Hagness, chapter 4.
TEST_P(FdtdCellsTest, AModeOfABoxOscillatesAsNumericalDispersionSays) {
  const FdtdSpacing spacing{1e-3, 2.5e-3, 1.6e-3};
  for (const int dimensions : {2, 3}) {
    Fdtd fdtd(box(dimensions, spacing, {2, 1, 1}));
    const Extent extent = fdtd.options().extent;
    const std::vector<double> start = mode_of(extent, 2, 3);
    fdtd.set<double>("ez", start);
    const std::size_t receiver = fdtd.add_receiver("ez", {4, 3, 0});
    const double along_x = std::sin(std::numbers::pi * 2 / (2.0 * static_cast<double>(extent.nx))) / spacing.x;
    const double along_y = std::sin(std::numbers::pi * 3 / (2.0 * static_cast<double>(extent.ny))) / spacing.y;
    const double turn = 2 * std::asin(grid::kSpeedOfLight * fdtd.time_step() * std::hypot(along_x, along_y));
    const auto swing = [&](int step) { return std::cos((step + 0.5) * turn) / std::cos(turn / 2); };
    constexpr int kSteps = 300;
    fdtd.step(kSteps);
    std::vector<double> values(start.size());
    fdtd.get<double>("ez", values);
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(values[i], start[i] * swing(kSteps), 1e-11) << i;
    const double here = start[static_cast<std::size_t>(3 * extent.nx + 4)];
    for (int step = 0; step < kSteps; ++step)
      ASSERT_NEAR(fdtd.trace(receiver)[static_cast<std::size_t>(step)], here * swing(step + 1), 1e-11) << step;
  }
}

/// The same in a plane with Hz, which lies in the middle of cells and has cosines between walls that conduct. E is 0
/// first, so that H is the same half a step before and after.
TEST_P(FdtdCellsTest, AModeOfHzInAPlaneDoesToo) {
  const FdtdSpacing spacing{1e-3, 2.5e-3};
  FdtdOptions options = box(2, spacing, {2, 1, 1});
  options.polarisation = grid::Polarisation::te;
  Fdtd fdtd(options);
  const Extent extent = options.extent;
  const double half_x = std::numbers::pi * 2 / (2.0 * static_cast<double>(extent.nx));
  const double half_y = std::numbers::pi * 3 / (2.0 * static_cast<double>(extent.ny));
  std::vector<double> start;
  for (std::int64_t y = 0; y < extent.ny; ++y) {
    for (std::int64_t x = 0; x < extent.nx; ++x) {
      start.push_back(std::cos(half_x * static_cast<double>(2 * x + 1)) *
                      std::cos(half_y * static_cast<double>(2 * y + 1)));
    }
  }
  fdtd.set<double>("hz", start);
  const double share = std::hypot(std::sin(half_x) / spacing.x, std::sin(half_y) / spacing.y);
  const double turn = 2 * std::asin(grid::kSpeedOfLight * fdtd.time_step() * share);
  constexpr int kSteps = 300;
  fdtd.step(kSteps);
  std::vector<double> values(start.size());
  fdtd.get<double>("hz", values);
  const double swing = std::cos((kSteps - 0.5) * turn) / std::cos(turn / 2);
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(values[i], start[i] * swing, 1e-11) << i;
}

TEST_P(FdtdCellsTest, AStateIsRestoredToTheLastBit) {
  for (const int dimensions : {2, 3}) {
    const FdtdOptions options = box(dimensions, {1e-3, 1.7e-3, 2.3e-3}, {1, 1, 1});
    Fdtd first(options);
    Fdtd second(options);
    const std::vector<double> samples{0.3, -0.7, 1.1};
    first.add_source("hy", {6, 5, 0}, samples);
    first.step(40);
    std::vector<double> values(static_cast<std::size_t>(options.extent.cells()));
    for (const std::string& name : first.state_fields()) {
      first.get_state_bytes(name, TypeKey::of<double>(), values.data(), values.size());
      second.set_state_bytes(name, TypeKey::of<double>(), values.data(), values.size());
    }
    first.step(10);
    second.step(10);
    std::vector<double> other(values.size());
    for (const std::string& name : first.fields()) {
      first.get<double>(name, values);
      second.get<double>(name, other);
      EXPECT_EQ(values, other) << name;
    }
  }
}

}  // namespace
}  // namespace headrace::testing
