#pragma once

#include <array>
#include <cstddef>

#include "headrace/grid/detail/phase.hpp"

/// The phases of an FDTD step, in order.
namespace headrace::grid {

enum class FdtdPhase : int {
  update_h,          ///< Advances H by half a step.
  absorb_h_x,        ///< Adds the correction of the absorbing layers across x to H.
  absorb_h_y,        ///< The same across y.
  absorb_h_z,        ///< The same across z.
  magnetic_sources,  ///< Sources that add to H.
  disperse,          ///< Advances the memories of the poles of dispersive media.
  update_e,
  absorb_e_x,
  absorb_e_y,
  absorb_e_z,
  electric_sources,
  receivers,
};

inline constexpr std::array kFdtdPhases{FdtdPhase::update_h,   FdtdPhase::absorb_h_x,       FdtdPhase::absorb_h_y,
                                        FdtdPhase::absorb_h_z, FdtdPhase::magnetic_sources, FdtdPhase::disperse,
                                        FdtdPhase::update_e,   FdtdPhase::absorb_e_x,       FdtdPhase::absorb_e_y,
                                        FdtdPhase::absorb_e_z, FdtdPhase::electric_sources, FdtdPhase::receivers};

/// Whether a step has this phase, given the dimensions and whether it has absorbing layers and dispersive media.
[[nodiscard]] constexpr bool has_phase(FdtdPhase phase, int dimensions, bool absorbing, bool dispersive) noexcept {
  switch (phase) {
    case FdtdPhase::absorb_h_x:
    case FdtdPhase::absorb_h_y:
    case FdtdPhase::absorb_e_x:
    case FdtdPhase::absorb_e_y: return absorbing;
    case FdtdPhase::absorb_h_z:
    case FdtdPhase::absorb_e_z: return absorbing && dimensions == 3;
    case FdtdPhase::disperse: return dispersive;
    default: return true;
  }
}

/// The phases of a step.
template <int Dimensions, bool Absorbing, bool Dispersive = false>
[[nodiscard]] constexpr auto fdtd_order() noexcept {
  constexpr std::size_t kCount = 5 + (Absorbing ? 2 * static_cast<std::size_t>(Dimensions) : 0) + (Dispersive ? 1 : 0);
  std::array<FdtdPhase, kCount> order{};
  std::size_t count = 0;
  for (const FdtdPhase phase : kFdtdPhases) {
    if (has_phase(phase, Dimensions, Absorbing, Dispersive)) order[count++] = phase;
  }
  return order;
}

/// The result of `describe` for each phase of an order.
template <std::size_t Count>
[[nodiscard]] constexpr std::array<Phase, Count> describe_phases(const std::array<FdtdPhase, Count>& order,
                                                                 Phase (*describe)(FdtdPhase)) {
  std::array<Phase, Count> phases{};
  for (std::size_t i = 0; i < Count; ++i) phases[i] = describe(order[i]);
  return phases;
}

/// The indices of these phases in an order.
template <FdtdPhase... Wanted, std::size_t Count>
[[nodiscard]] constexpr std::array<int, sizeof...(Wanted)> phases_that_are(const std::array<FdtdPhase, Count>& order) {
  std::array<int, sizeof...(Wanted)> numbers{};
  std::size_t found = 0;
  for (std::size_t i = 0; i < Count; ++i) {
    if (((order[i] == Wanted) || ...)) numbers[found++] = static_cast<int>(i);
  }
  return numbers;
}

/// The phases that passes over memory do: none with dispersive media.
template <bool Dispersive, std::size_t Count>
[[nodiscard]] constexpr std::array<int, Dispersive ? 0 : Count> swept(const std::array<int, Count>& phases) noexcept {
  if constexpr (Dispersive) {
    return {};
  } else {
    return phases;
  }
}

/// Whether a phase needs the coefficients of H, or those of E.
[[nodiscard]] constexpr bool is_magnetic(FdtdPhase phase) noexcept {
  return phase == FdtdPhase::update_h || phase == FdtdPhase::absorb_h_x || phase == FdtdPhase::absorb_h_y ||
         phase == FdtdPhase::absorb_h_z;
}
[[nodiscard]] constexpr bool is_electric(FdtdPhase phase) noexcept {
  return phase == FdtdPhase::update_e || phase == FdtdPhase::absorb_e_x || phase == FdtdPhase::absorb_e_y ||
         phase == FdtdPhase::absorb_e_z;
}

/// One layer above, which H reads from E, or below, which E reads from H, along one axis.
[[nodiscard]] constexpr Layers layer_above(std::size_t axis) noexcept {
  Layers made;
  made.high[axis] = 1;
  return made;
}
[[nodiscard]] constexpr Layers layer_below(std::size_t axis) noexcept {
  Layers made;
  made.low[axis] = 1;
  return made;
}

}  // namespace headrace::grid
