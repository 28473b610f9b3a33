#include "grid/fdtd/fdtd_names.hpp"

#include <fmt/format.h>

#include <array>
#include <cstddef>

#include "grid/stencils/fdtd2d_te.hpp"
#include "headrace/grid/stencils/fdtd2d.hpp"
#include "headrace/grid/stencils/fdtd3d.hpp"

namespace headrace::grid {

namespace {

constexpr std::array<std::string_view, fdtd2d::field_count> kNames2d{"hx", "hy",      "ez",      "ca",      "cb",
                                                                     "db", "psi_hyx", "psi_hxy", "psi_ezx", "psi_ezy"};
constexpr std::array<std::string_view, fdtd3d::field_count> kNames3d{
    "hx",      "hy",      "hz",      "ex",      "ey",      "ez",      "e_medium", "h_medium", "psi_hyx", "psi_hzx",
    "psi_hzy", "psi_hxy", "psi_hxz", "psi_hyz", "psi_ezx", "psi_eyx", "psi_exy",  "psi_ezy",  "psi_eyz", "psi_exz"};
constexpr std::array<std::string_view, fdtd2d_te::field_count> kNamesTe{
    "hz", "ex", "ey", "e_medium", "h_medium", "psi_hzx", "psi_hzy", "psi_eyx", "psi_exy"};
static_assert(kNames2d[fdtd2d::psi_ezy] == "psi_ezy" && kNames2d[fdtd2d::ez] == "ez");
static_assert(kNames3d[fdtd3d::psi_exz] == "psi_exz" && kNames3d[fdtd3d::psi_ezx] == "psi_ezx");
static_assert(kNamesTe[fdtd2d_te::ey] == "ey" && kNamesTe[fdtd2d_te::psi_exy] == "psi_exy");

constexpr std::array<std::string_view, 3> kComponents2d{"ez", "hx", "hy"};
constexpr std::array<std::string_view, 3> kComponentsTe{"hz", "ex", "ey"};
constexpr std::array<std::string_view, 6> kComponents3d{"ex", "ey", "ez", "hx", "hy", "hz"};

}  // namespace

std::span<const std::string_view> fdtd_names(const FdtdOptions& options) noexcept {
  switch (stencil_of(options)) {
    case FdtdStencil::plane_tm: return kNames2d;
    case FdtdStencil::plane_te: return kNamesTe;
    default: return kNames3d;
  }
}

std::vector<std::string> pole_names(const FdtdOptions& options) {
  std::vector<std::string> names;
  for (int value = 0; value < options.pole_values; ++value) {
    for (const std::string_view component : fdtd_components(options)) {
      if (!is_magnetic(component)) names.push_back(fmt::format("pole_{}_{}", component, value));
    }
  }
  return names;
}

int first_pole_field(const FdtdOptions& options) noexcept {
  const bool absorbing = options.cpml.cells > 0;
  switch (stencil_of(options)) {
    case FdtdStencil::plane_tm: return fdtd2d::e_medium(absorbing) + 1;
    case FdtdStencil::plane_te: return fdtd2d_te::first_memory(absorbing);
    default: return fdtd3d::first_memory(absorbing);
  }
}

std::span<const std::string_view> fdtd_components(const FdtdOptions& options) noexcept {
  switch (stencil_of(options)) {
    case FdtdStencil::plane_tm: return kComponents2d;
    case FdtdStencil::plane_te: return kComponentsTe;
    default: return kComponents3d;
  }
}

std::array<bool, 3> open_walls(const FdtdOptions& options) noexcept {
  std::array<bool, 3> open{};
  for (std::size_t axis = 0; axis < 3; ++axis) open[axis] = options.magnetic_walls[axis] || options.periodic[axis];
  return open;
}

bool on_wall(std::string_view component, const Offsets& cell, int dimensions,
             const std::array<bool, 3>& open) noexcept {
  if (is_magnetic(component)) return false;
  const auto along = static_cast<std::size_t>(component[1] - 'x');
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(dimensions); ++axis) {
    if (axis != along && cell[axis] == 0 && !open[axis]) return true;
  }
  return false;
}

}  // namespace headrace::grid
