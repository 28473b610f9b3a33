#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/grid/fdtd.hpp"

/// Names of the FDTD fields.
namespace headrace::grid {

/// The field names of the stencil with absorbing layers, in its order. Without layers only those before the first
/// "psi_..." exist.
[[nodiscard]] std::span<const std::string_view> fdtd_names(const FdtdOptions& options) noexcept;

/// The names of the pole memories, in the order of their fields: pole_ez_0, pole_ez_1 and so on; with all components
/// pole_ex_0, pole_ey_0, pole_ez_0, pole_ex_1 and so on.
[[nodiscard]] std::vector<std::string> pole_names(const FdtdOptions& options);

/// The index of the first pole memory.
[[nodiscard]] int first_pole_field(const FdtdOptions& options) noexcept;

/// The components of E and H, in their customary order.
[[nodiscard]] std::span<const std::string_view> fdtd_components(const FdtdOptions& options) noexcept;

/// The stencil of these options.
enum class FdtdStencil : int { plane_tm, plane_te, space };
[[nodiscard]] constexpr FdtdStencil stencil_of(int dimensions, Polarisation polarisation) noexcept {
  if (dimensions == 3) return FdtdStencil::space;
  return polarisation == Polarisation::te ? FdtdStencil::plane_te : FdtdStencil::plane_tm;
}
[[nodiscard]] inline FdtdStencil stencil_of(const FdtdOptions& options) noexcept {
  return stencil_of(options.dimensions, options.polarisation);
}

/// The axes along which a stencil has components of E: from `first` up to, but without, `end`.
struct ElectricAxes {
  std::size_t first = 0;
  std::size_t end = 3;
};
[[nodiscard]] constexpr ElectricAxes electric_axes(FdtdStencil stencil) noexcept {
  switch (stencil) {
    case FdtdStencil::plane_tm: return {2, 3};
    case FdtdStencil::plane_te: return {0, 2};
    default: return {};
  }
}

[[nodiscard]] constexpr bool is_magnetic(std::string_view component) noexcept { return component.front() == 'h'; }
[[nodiscard]] constexpr bool is_memory(std::string_view name) noexcept { return name.starts_with("psi_"); }

[[nodiscard]] constexpr bool is_periodic(const FdtdOptions& options) noexcept {
  return options.periodic[0] || options.periodic[1] || options.periodic[2];
}

/// The axes whose low wall does not conduct, because it is a magnetic conductor or periodic.
[[nodiscard]] std::array<bool, 3> open_walls(const FdtdOptions& options) noexcept;

/// Whether a component of this cell lies along a wall that conducts, where it stays 0; those of `open` do not.
[[nodiscard]] bool on_wall(std::string_view component, const Offsets& cell, int dimensions,
                           const std::array<bool, 3>& open = {}) noexcept;

/// The index of the cell before this one on an axis of `count` cells. Before the first is the last one if the axis is
/// periodic, and otherwise the first again.
[[nodiscard]] constexpr std::int64_t index_before(std::int64_t index, std::int64_t count, bool periodic) noexcept {
  return index > 0 ? index - 1 : periodic ? count - 1 : 0;
}

}  // namespace headrace::grid
