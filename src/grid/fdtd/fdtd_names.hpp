#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/grid/detail/box.hpp"

/// Names of the FDTD fields.
namespace headrace::grid {

/// The field names of the stencil with absorbing layers, in its order. Without layers only those before the first
/// "psi_..." exist.
[[nodiscard]] std::span<const std::string_view> fdtd_names(int dimensions) noexcept;

/// The names of the pole memories, in the order of their fields: pole_ez_0, pole_ez_1 and so on; in three dimensions
/// pole_ex_0, pole_ey_0, pole_ez_0, pole_ex_1 and so on.
[[nodiscard]] std::vector<std::string> pole_names(int dimensions, int pole_values);

/// The index of the first pole memory and, in two dimensions, of the field that numbers each cell's medium.
[[nodiscard]] int first_pole_field(int dimensions, bool absorbing) noexcept;
[[nodiscard]] int medium_field(int dimensions, bool absorbing) noexcept;

/// The components of E and H, in their customary order.
[[nodiscard]] std::span<const std::string_view> fdtd_components(int dimensions) noexcept;

[[nodiscard]] constexpr bool is_magnetic(std::string_view component) noexcept { return component.front() == 'h'; }
[[nodiscard]] constexpr bool is_memory(std::string_view name) noexcept { return name.starts_with("psi_"); }

/// Whether a component of this cell lies along a wall, where it stays 0.
[[nodiscard]] bool on_wall(std::string_view component, const Offsets& cell, int dimensions) noexcept;

}  // namespace headrace::grid
