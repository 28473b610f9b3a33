#include "headrace/grid/detail/fdtd_poles.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

#include "grid/fdtd/fdtd_dispersive.hpp"
#include "headrace/base/error.hpp"
#include "headrace/grid/detail/fdtd_coefficients.hpp"

namespace headrace::grid {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr double kStep = 1e-12;
constexpr double kTurn = 2 * std::numbers::pi;

FdtdMedium debye(double difference, double relaxation_time) {
  FdtdMedium medium;
  add_debye(medium, difference, relaxation_time);
  return medium;
}

FdtdMedium lorentz(double difference, double omega_0, double damping) {
  FdtdMedium medium;
  add_lorentz(medium, difference, omega_0, damping);
  return medium;
}

/// The permittivity that poles and conductivity represent: the Laplace transform of the susceptibility.
std::complex<double> permittivity_of(const FdtdMedium& medium, double omega) {
  const std::complex<double> s(0, omega);
  std::complex<double> sum = medium.conductivity / (s * kVacuumPermittivity);
  for (const FdtdPole& pole : medium.poles)
    sum += (pole.strength / (s + pole.rate) + std::conj(pole.strength) / (s + std::conj(pole.rate))) / 2.0;
  return sum;
}

void expect_near(const std::complex<double>& found, const std::complex<double>& expected) {
  EXPECT_LT(std::abs(found - expected), 1e-9 * std::abs(expected)) << found << " and " << expected;
}

TEST(Poles, are_the_permittivities_of_their_formulas) {
  const std::complex<double> j(0, 1);
  for (const double omega : {1e9, 5e10, 2e11}) {
    expect_near(permittivity_of(debye(3, 2e-11), omega), 3.0 / (1.0 + j * omega * 2e-11));
    for (const double damping : {1e9, 9e10}) {
      const double own = 4e10;
      expect_near(permittivity_of(lorentz(2, own, damping), omega),
                  2 * own * own / (own * own + 2.0 * j * omega * damping - omega * omega));
    }
    FdtdMedium drude;
    add_drude(drude, 5e10, 3e10);
    expect_near(permittivity_of(drude, omega), -5e10 * 5e10 / (omega * omega - j * omega * 3e10));
  }
}

TEST(Poles, keep_a_value_each_or_two_where_they_are_complex) {
  EXPECT_EQ(pole_values(debye(1, 1e-11)), 1);
  EXPECT_EQ(pole_values(lorentz(1, 4e10, 1e9)), 2);
  EXPECT_EQ(pole_values(lorentz(1, 4e10, 9e10)), 2) << "two real ones";
  EXPECT_EQ(pole_values({}), 0);
}

TEST(Poles, of_a_slow_medium_add_little_to_a_step_and_of_a_fast_one_all) {
  EXPECT_NEAR(permittivity_in_step(debye(1, 1e-6), kStep), 0.5e-6, 1e-9);
  EXPECT_NEAR(permittivity_in_step(debye(1, 1e-14), kStep), 1, 1e-9);
  EXPECT_GT(permittivity_at_fastest(debye(1, 1e-11), kStep), 0);
  FdtdMedium plasma;
  add_drude(plasma, kTurn * 50e9, 1e9);
  const double turn = kTurn * 50e9 * kStep;
  EXPECT_NEAR(permittivity_at_fastest(plasma, kStep), -turn * turn / 8, 1e-5);
}

TEST(Poles, that_a_run_cannot_have_are_told) {
  EXPECT_THAT(problem_of(debye(2, 1e-11), kStep), IsEmpty());
  EXPECT_THAT(problem_of(lorentz(2, 4e10, 1e9), kStep), IsEmpty());
  EXPECT_THAT(problem_of(lorentz(2, 4e10, 0), kStep), IsEmpty()) << "nothing is lost, and nothing gained";
  EXPECT_THAT(problem_of(debye(2, 1e-13), kStep), HasSubstr("below the time step"));
  EXPECT_THAT(problem_of(lorentz(2, 4e12, 1e9), kStep), HasSubstr("a quarter of a turn"));
  EXPECT_THAT(problem_of(lorentz(-2, 4e10, 1e9), kStep), HasSubstr("generate energy"));
  EXPECT_THAT(problem_of({.poles = {{1.0, {-1e9, 0}}}}, kStep), HasSubstr("a pole grows"));
  EXPECT_THAT(problem_of({.poles = {{1.0, 0.0}}}, kStep), HasSubstr("a rate of 0"));
  EXPECT_THAT(problem_of({.poles = {{NAN, 1e9}}}, kStep), HasSubstr("not finite"));
  EXPECT_THROW(debye(1, 0), UsageError);
  EXPECT_THROW(lorentz(1, 4e10, 4e10), UsageError);
  EXPECT_THROW(lorentz(1, -4e10, 1), UsageError);
  FdtdMedium medium;
  EXPECT_THROW(add_drude(medium, 1e9, 0), UsageError);
}

/// A domain of three dimensions with a medium in some cells.
struct Filled {
  explicit Filled(const std::vector<Offsets>& cells) : medium(static_cast<std::size_t>(options.extent.cells())) {
    for (const Offsets& at : cells)
      medium[static_cast<std::size_t>((at[2] * options.extent.ny + at[1]) * options.extent.nx + at[0])] = 1;
  }

  [[nodiscard]] FdtdMaterials materials() const {
    return {.permittivity = permittivity,
            .conductivity = conductivity,
            .permeability = permittivity,
            .media = media,
            .medium = medium};
  }

  FdtdOptions options = [] {
    FdtdOptions made;
    made.extent = {6, 5, 4};
    made.dimensions = 3;
    made.spacing = 1e-3;
    made.pole_values = 2;
    return made;
  }();
  std::vector<double> permittivity{1};
  std::vector<double> conductivity{0};
  std::vector<FdtdMedium> media{debye(2, 1e-11)};
  std::vector<std::uint16_t> medium;
};

TEST(DispersiveMedia, have_poles_at_the_edges_of_their_cells) {
  const Filled filled({{2, 2, 1}});
  const FdtdDispersiveMedia made = dispersive_media(filled.materials(), filled.options, kStep);
  const std::vector<Box> boxes = dispersive_boxes(made, filled.options.extent);
  std::int64_t cells = 0;
  for (const Box& box : boxes) cells += box.cells();
  EXPECT_EQ(cells, 7) << "all nodes of the cell except the far corner on all three axes, which has no edge of the cell";
  const FdtdDispersive<double>& own = made.dispersive[made.electric.numbers[(1 * 5 + 2) * 6 + 2]];
  EXPECT_EQ(own.real[0], 1);
  EXPECT_EQ(own.pairs[0], 0);
  EXPECT_EQ(made.electric.table[made.electric.numbers[(1 * 5 + 2) * 6 + 2]].ca[0], 1);
  EXPECT_EQ(made.electric.table[made.electric.numbers[0]].ca[0], 1);
  EXPECT_EQ(made.dispersive[made.electric.numbers[0]].real[0], 0);
}

TEST(DispersiveMedia, take_the_values_that_those_around_a_component_need) {
  Filled filled({{2, 2, 1}, {3, 2, 1}});
  EXPECT_EQ(pole_values_needed(filled.materials(), filled.options.extent, 3, true), 1);
  filled.media.push_back(lorentz(1, 4e10, 1e9));
  filled.medium[(1 * 5 + 2) * 6 + 3] = 2;
  EXPECT_EQ(pole_values_needed(filled.materials(), filled.options.extent, 3, true), 3);
  EXPECT_EQ(pole_values_needed(filled.materials(), filled.options.extent, 3, false), 2);
  EXPECT_THROW((void)dispersive_media(filled.materials(), filled.options, kStep), UsageError);
}

TEST(DispersiveMedia, without_cells_have_no_boxes) {
  const Filled filled({});
  EXPECT_THAT(dispersive_boxes(dispersive_media(filled.materials(), filled.options, kStep), filled.options.extent),
              IsEmpty());
}

}  // namespace
}  // namespace headrace::grid
