#pragma once

#include <complex>
#include <string>
#include <vector>

/// Dispersive media as sums of poles. Units are SI.
namespace headrace::grid {

/// One pole: it adds Re(strength * exp(-rate * t)) to the susceptibility at a time t above 0. Both are in 1/s. A rate
/// with an imaginary part stands for a pair of conjugate poles.
struct FdtdPole {
  std::complex<double> strength;
  std::complex<double> rate;
};

/// What a dispersive medium adds to a material of permittivity at infinite frequency and conductivity.
struct FdtdMedium {
  std::vector<FdtdPole> poles;
  double conductivity = 0;  ///< S/m; Drude poles conduct at frequency 0.
};

/// Adds a Debye pole: a permittivity of difference / (1 + j omega relaxation_time). Throws UsageError for a relaxation
/// time that is not above 0 and a difference that is not finite.
void add_debye(FdtdMedium& medium, double difference, double relaxation_time);
/// Adds a Lorentz pole: difference omega_0^2 / (omega_0^2 + 2 j omega damping - omega^2), with omega_0 and damping in
/// radians per second. Where the damping exceeds omega_0 it is two real poles. Throws UsageError for an omega_0 that is
/// not above 0, a damping below 0, and one equal to omega_0, which has no such sum of poles.
void add_lorentz(FdtdMedium& medium, double difference, double omega_0, double damping);
/// Adds a Drude pole: -omega_p^2 / (omega^2 - j omega rate), with both in radians per second: a conductivity and a real
/// pole. Throws UsageError for numbers that are not above 0.
void add_drude(FdtdMedium& medium, double omega_p, double rate);

/// The values of memory that a component of this medium keeps: one for a real pole, two for a pair.
[[nodiscard]] int pole_values(const FdtdMedium& medium) noexcept;

/// What the poles add to the permittivity of a step: E and its change in half a step see so much of the susceptibility.
[[nodiscard]] double permittivity_in_step(const FdtdMedium& medium, double time_step);
/// What the poles add to the permittivity of the fastest oscillation that there is, of two steps. It may be negative;
/// the largest stable time step is that of the sum.
[[nodiscard]] double permittivity_at_fastest(const FdtdMedium& medium, double time_step);
/// Why a run cannot have this medium: a pole is faster than the time step, oscillates faster than a quarter of a turn
/// in it, grows, or gives away energy at some frequency. Empty where it can.
[[nodiscard]] std::string problem_of(const FdtdMedium& medium, double time_step);

/// A pole as one step uses it, of piecewise linear E (Giannakis and Giannopoulos, IEEE Transactions on Antennas and
/// Propagation 62, 2014).
struct FdtdPoleStep {
  std::complex<double> decay;   ///< exp(-rate * time step) - 1.
  std::complex<double> within;  ///< The susceptibility over half a step, over the step: what dE of this step adds to J.
  std::complex<double> before;  ///< That of dE of the step before, in 1/s.
};
[[nodiscard]] FdtdPoleStep step_of(const FdtdPole& pole, double time_step);

}  // namespace headrace::grid
