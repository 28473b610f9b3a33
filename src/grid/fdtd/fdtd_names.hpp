#pragma once

#include <span>
#include <string_view>

#include "headrace/grid/detail/box.hpp"

/// The fields of finite differences in the time domain by name.
namespace headrace::grid {

/// The names of the stencil with absorbing layers, in its order; without them it has those before the first "psi_...".
[[nodiscard]] std::span<const std::string_view> fdtd_names(int dimensions) noexcept;

/// Components of E and H, in the order in which people write them.
[[nodiscard]] std::span<const std::string_view> fdtd_components(int dimensions) noexcept;

[[nodiscard]] constexpr bool is_magnetic(std::string_view component) noexcept { return component.front() == 'h'; }
[[nodiscard]] constexpr bool is_memory(std::string_view name) noexcept { return name.starts_with("psi_"); }

/// Whether a component lies along a wall in this cell, where it stays 0.
[[nodiscard]] bool on_wall(std::string_view component, const Offsets& cell, int dimensions) noexcept;

}  // namespace headrace::grid
