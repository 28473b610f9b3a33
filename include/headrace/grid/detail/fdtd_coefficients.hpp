#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "headrace/grid/detail/fdtd_spacing.hpp"

/// Coefficients for FDTD, computed before the first step. Units are SI.
namespace headrace::grid {

inline constexpr double kSpeedOfLight = 299792458.0;             ///< m/s, exact.
inline constexpr double kVacuumPermeability = 1.25663706127e-6;  ///< H/m, CODATA 2022.
/// F/m; follows from the other two, so that the speed of light of a run is exactly the constant.
inline constexpr double kVacuumPermittivity = 1.0 / (kVacuumPermeability * kSpeedOfLight * kSpeedOfLight);

/// The largest time step, in seconds, at which Yee's scheme is stable: 1 / (c sqrt(sum of 1 / spacing^2 along each
/// axis)), where c is the speed of light in the smallest permittivity and permeability (relative). If these two occur
/// in different cells, the true limit is larger; this one always suffices (Taflove and Hagness, Computational
/// Electrodynamics, chapter 4).
[[nodiscard]] double stable_time_step(int dimensions, const FdtdSpacing& spacing, double permittivity_min = 1,
                                      double permeability_min = 1);

/// A cell's update coefficients, from its material: E <- ca E + cb (curl H), H <- H - db (curl E), both curls as plain
/// differences of neighbours.
struct FdtdCoefficients {
  double ca = 1;
  double cb = 0;
  double db = 0;
};

/// @param permittivity, permeability relative
/// @param conductivity S/m
/// @param spacing that of cubes, in metres
[[nodiscard]] FdtdCoefficients fdtd_coefficients(double permittivity, double conductivity, double permeability,
                                                 double spacing, double time_step);

/// The grading of absorbing layers (convolutional perfectly matched layer; Roden and Gedney, Microwave and Optical
/// Technology Letters 27, 2000). At a depth of d, from 0 at the inner border to 1 at the wall, conductivity is
/// conductivity_scale * d^order and alpha is alpha_scale * (1 - d)^alpha_order, both in units of 0.8 (order + 1) /
/// (impedance of vacuum * spacing along the axis * index), with the index of CpmlIndex; the stretch kappa is 1 +
/// (stretch_max - 1) * d^stretch_order. docs/fdtd.md shows what the defaults reflect.
struct CpmlOptions {
  /// Thickness of each layer, or of the thickest; 0 for none, which leaves walls that reflect everything.
  std::int64_t cells = 10;
  double order = 3.72;
  double conductivity_scale = 1.1;
  double stretch_max = 6.73;
  double stretch_order = 5.59;
  double alpha_scale = 0.0063;  ///< A larger scale absorbs long waves less well, and grazing waves better.
  double alpha_order = 0.683;
  /// Thickness at the low and the high wall of each axis if walls differ; the largest of them is `cells`.
  std::optional<std::array<std::array<std::int64_t, 2>, 3>> sides = std::nullopt;

  /// The thickness at the low and the high wall of an axis.
  [[nodiscard]] std::array<std::int64_t, 2> thickness(std::size_t axis) const noexcept {
    return sides ? (*sides)[axis] : std::array{cells, cells};
  }
};

/// The index of refraction, sqrt(permittivity * permeability), that the layers at the two walls of an axis are graded
/// for. The same layer absorbs a wave of the same length in cells equally well in any medium.
struct CpmlIndex {
  double low = 1;
  double high = 1;
};

/// The factors of one axis of an absorbing layer at one position: psi <- b psi + c difference, and the update adds k
/// difference + psi to its difference. Together they divide by the stretch kappa + conductivity / (alpha + j omega
/// eps0), to second order in the time step: differences count as linear within a step.
struct CpmlTable {
  std::vector<double> b;
  std::vector<double> c;
  std::vector<double> k;
};

/// Both tables of an axis of n cells: `electric` at i, `magnetic` at i + 1/2 for each cell i. The layers end at the
/// walls, which are at 0 and n; between them b, c and k are 0.
struct CpmlAxis {
  CpmlTable electric;
  CpmlTable magnetic;
};

/// The tables of one axis. Throws UsageError if the two layers do not fit into `count` cells, or an option or an index
/// is out of range.
[[nodiscard]] CpmlAxis cpml_axis(std::int64_t count, double spacing, double time_step, const CpmlOptions& options,
                                 const CpmlIndex& index = {}, std::size_t axis = 0);

}  // namespace headrace::grid
