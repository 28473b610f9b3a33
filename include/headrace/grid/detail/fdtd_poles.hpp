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

/// What a dispersive medium adds to the permittivity at infinite frequency and to the conductivity of a material.
struct FdtdMedium {
  std::vector<FdtdPole> poles;
  double conductivity = 0;  ///< S/m; Drude poles conduct at frequency 0.
};

/// Adds a Debye pole: a permittivity of difference / (1 + j omega relaxation_time). Throws UsageError if the relaxation
/// time is not above 0 or the difference is not finite.
void add_debye(FdtdMedium& medium, double difference, double relaxation_time);
/// Adds a Lorentz pole: difference omega_0^2 / (omega_0^2 + 2 j omega damping - omega^2), with omega_0 and damping in
/// radians per second. If the damping exceeds omega_0, this is two real poles. Throws UsageError if omega_0 is not
/// above 0, or the damping is below 0 or equal to omega_0, for which no such sum of poles exists.
void add_lorentz(FdtdMedium& medium, double difference, double omega_0, double damping);
/// Adds a Drude pole: -omega_p^2 / (omega^2 - j omega rate), with both in radians per second: a conductivity and a real
/// pole. Throws UsageError if either is not above 0.
void add_drude(FdtdMedium& medium, double omega_p, double rate);

/// The values of memory that a component of this medium needs: one for a real pole, two for a pair.
[[nodiscard]] int pole_values(const FdtdMedium& medium) noexcept;

/// What the poles add to the permittivity of a step: the susceptibility that E, and its change within half a step, see.
[[nodiscard]] double permittivity_in_step(const FdtdMedium& medium, double time_step);
/// What the poles add to the permittivity of the fastest possible oscillation, with a period of two steps. It may be
/// negative; the largest stable time step is that of the sum.
[[nodiscard]] double permittivity_at_fastest(const FdtdMedium& medium, double time_step);
/// Why a run cannot have this medium: a pole is faster than the time step, oscillates faster than a quarter of a turn
/// in it, grows, or generates energy at some frequency. Empty if a run can have it.
[[nodiscard]] std::string problem_of(const FdtdMedium& medium, double time_step);

/// The coefficients of a pole in one step, for piecewise linear E (Giannakis and Giannopoulos, IEEE Transactions on
/// Antennas and Propagation 62, 2014).
struct FdtdPoleStep {
  std::complex<double> decay;   ///< exp(-rate * time step) - 1.
  std::complex<double> within;  ///< The susceptibility over half a step, divided by the step: what dE of this step adds
                                ///< to J.
  std::complex<double> before;  ///< The same for dE of the previous step, in 1/s.
};
[[nodiscard]] FdtdPoleStep step_of(const FdtdPole& pole, double time_step);

}  // namespace headrace::grid
