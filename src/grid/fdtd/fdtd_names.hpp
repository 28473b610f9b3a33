#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/grid/detail/box.hpp"

/// The fields of finite differences in the time domain by name.
namespace headrace::grid {

/// The names of the stencil with absorbing layers, in its order; without them it has those before the first "psi_...".
[[nodiscard]] std::span<const std::string_view> fdtd_names(int dimensions) noexcept;

/// The names of the memories of poles, in the order of their fields: pole_ez_0, pole_ez_1 and so on; in three
/// dimensions pole_ex_0, pole_ey_0, pole_ez_0, pole_ex_1 and so on.
[[nodiscard]] std::vector<std::string> pole_names(int dimensions, int pole_values);

/// The field of the first of them, and, in two dimensions, that of the number of a cell's medium.
[[nodiscard]] int first_pole_field(int dimensions, bool absorbing) noexcept;
[[nodiscard]] int medium_field(int dimensions, bool absorbing) noexcept;

/// Components of E and H, in the order in which people write them.
[[nodiscard]] std::span<const std::string_view> fdtd_components(int dimensions) noexcept;

[[nodiscard]] constexpr bool is_magnetic(std::string_view component) noexcept { return component.front() == 'h'; }
[[nodiscard]] constexpr bool is_memory(std::string_view name) noexcept { return name.starts_with("psi_"); }

/// Whether a component lies along a wall in this cell, where it stays 0.
[[nodiscard]] bool on_wall(std::string_view component, const Offsets& cell, int dimensions) noexcept;

}  // namespace headrace::grid
