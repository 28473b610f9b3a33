#include "headrace/grid/detail/fdtd_poles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "headrace/base/error.hpp"
#include "headrace/grid/detail/fdtd_coefficients.hpp"

namespace headrace::grid {

namespace {

using Complex = std::complex<double>;

/// exp(z) - 1 without the loss of digits near 0.
[[nodiscard]] Complex expm1_of(const Complex& z) {
  const double half_sine = std::sin(z.imag() / 2);
  return {std::expm1(z.real()) * std::cos(z.imag()) - 2 * half_sine * half_sine,
          std::exp(z.real()) * std::sin(z.imag())};
}

void require(const char* what, double value, bool right, const char* wanted) {
  if (std::isfinite(value) && right) return;
  throw UsageError(fmt::format("{} is {:g}: it must be finite{}", what, value, wanted));
}

/// Number of frequencies, in radians a step, at which media are checked; they are densest at the low end.
constexpr int kFrequencies = 512;

/// The loss of a medium at a frequency: the real part of J over the mean of E in a step.
struct Loss {
  double value = 0;
  double size = 0;  ///< Sum of the magnitudes of its terms, to tell a real gain from rounding.
};

[[nodiscard]] Loss loss_at(const FdtdMedium& medium, double time_step, double turn) {
  const Complex z = std::polar(1.0, turn);
  const Complex slope = Complex(0, 2) * std::tan(turn / 2);  // the change of E in a step over its mean
  Loss loss;
  for (const FdtdPole& pole : medium.poles) {
    const FdtdPoleStep its = step_of(pole, time_step);
    // A pole and its conjugate, half of each, where E is complex.
    for (const bool conjugate : {false, true}) {
      const auto of = [&](const Complex& value) { return conjugate ? std::conj(value) : value; };
      const Complex memory = of(its.before) / (z - (1.0 + of(its.decay)));
      loss.value += ((of(its.within) + memory) * slope).real() / 2;
      loss.size += (std::abs(its.within) + std::abs(memory)) * std::abs(slope);
    }
  }
  return loss;
}

}  // namespace

void add_debye(FdtdMedium& medium, double difference, double relaxation_time) {
  require("the relaxation time of a Debye pole", relaxation_time, relaxation_time > 0, " and above 0");
  require("the permittivity difference of a Debye pole", difference, true, "");
  medium.poles.push_back({difference / relaxation_time, 1 / relaxation_time});
}

void add_lorentz(FdtdMedium& medium, double difference, double omega_0, double damping) {
  require("the frequency of a Lorentz pole", omega_0, omega_0 > 0, " and above 0");
  require("the damping of a Lorentz pole", damping, damping >= 0, " and at least 0");
  require("the permittivity difference of a Lorentz pole", difference, true, "");
  const double squared = omega_0 * omega_0 - damping * damping;
  if (std::abs(squared) < 1e-12 * omega_0 * omega_0) {
    throw UsageError(fmt::format(
        "the damping of a Lorentz pole is {:g}, which equals its frequency; use a slightly larger or smaller damping",
        damping));
  }
  const double root = std::sqrt(std::abs(squared));
  const double strength = difference * omega_0 * omega_0 / root;
  if (squared > 0) {
    medium.poles.push_back({{0, -strength}, {damping, -root}});
    return;
  }
  medium.poles.push_back({strength / 2, omega_0 * omega_0 / (damping + root)});
  medium.poles.push_back({-strength / 2, damping + root});
}

void add_drude(FdtdMedium& medium, double omega_p, double rate) {
  require("the frequency of a Drude pole", omega_p, omega_p > 0, " and above 0");
  require("the rate of a Drude pole", rate, rate > 0, " and above 0");
  const double strength = omega_p * omega_p / rate;
  medium.poles.push_back({-strength, rate});
  medium.conductivity += strength * kVacuumPermittivity;
}

int pole_values(const FdtdMedium& medium) noexcept {
  int values = 0;
  for (const FdtdPole& pole : medium.poles) values += pole.rate.imag() == 0 ? 1 : 2;
  return values;
}

FdtdPoleStep step_of(const FdtdPole& pole, double time_step) {
  const Complex turn = pole.rate * time_step;
  const Complex half = expm1_of(-turn / 2.0);
  const Complex decay = expm1_of(-turn);
  const Complex share = pole.strength / turn;
  return {.decay = decay, .within = -share * half, .before = -share * (1.0 + half) * decay};
}

double permittivity_in_step(const FdtdMedium& medium, double time_step) {
  double added = 0;
  for (const FdtdPole& pole : medium.poles) added += step_of(pole, time_step).within.real() * time_step;
  return added;
}

double permittivity_at_fastest(const FdtdMedium& medium, double time_step) {
  double added = 0;
  for (const FdtdPole& pole : medium.poles) {
    const FdtdPoleStep its = step_of(pole, time_step);
    added += (its.within - its.before / (2.0 + its.decay)).real() * time_step;
  }
  return added;
}

std::string problem_of(const FdtdMedium& medium, double time_step) {
  for (const FdtdPole& pole : medium.poles) {
    const bool finite = std::isfinite(pole.rate.real()) && std::isfinite(pole.rate.imag()) &&
                        std::isfinite(pole.strength.real()) && std::isfinite(pole.strength.imag());
    if (!finite) return "a pole has numbers that are not finite";
    if (pole.rate.real() < 0) return fmt::format("a pole grows, at a rate of {:g} per second", -pole.rate.real());
    if (std::abs(pole.rate) == 0) return "a pole has a rate of 0; use a conductivity instead";
    if (pole.rate.real() * time_step > 1) {
      return fmt::format("a pole has a relaxation time of {:g} s, which is below the time step of {:g} s",
                         1 / pole.rate.real(), time_step);
    }
    if (std::abs(pole.rate.imag()) * time_step > std::numbers::pi / 2) {
      return fmt::format(
          "a pole turns by {:g} rad/s, which is more than a quarter of a turn in the time step of {:g} s",
          std::abs(pole.rate.imag()), time_step);
    }
  }
  for (int i = 1; i < kFrequencies; ++i) {
    const double share = static_cast<double>(i) / kFrequencies;
    const Loss loss = loss_at(medium, time_step, std::numbers::pi * share * share * share);
    // The conductivity of a Drude pole counts as part of its loss.
    if (loss.value + medium.conductivity / kVacuumPermittivity < -1e-9 * loss.size) {
      return fmt::format("its poles generate energy at {:.3g} Hz, so fields would grow",
                         share * share * share / (2 * time_step));
    }
  }
  return {};
}

}  // namespace headrace::grid
