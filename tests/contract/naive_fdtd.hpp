#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "headrace/grid/detail/box.hpp"
#include "headrace/grid/detail/fdtd_coefficients.hpp"
#include "headrace/grid/fdtd.hpp"

/// Finite differences in the time domain as plain loops over whole arrays, with the arithmetic of the stencils.
namespace headrace::testing {

using grid::Extent;
using grid::Offsets;

/// Values of a domain with a border of zeros.
template <class V>
class NaiveField {
 public:
  explicit NaiveField(const Extent& extent)
      : pitch_(extent.nx + 2),
        plane_(pitch_ * (extent.ny + 2)),
        values_(static_cast<std::size_t>(plane_ * (extent.nz + 2))) {}

  [[nodiscard]] V& operator()(const Offsets& at) { return values_[index(at)]; }
  [[nodiscard]] V operator()(const Offsets& at) const { return values_[index(at)]; }
  [[nodiscard]] V operator()(const Offsets& at, std::size_t axis, std::int64_t by) const {
    Offsets moved = at;
    moved[axis] += by;
    return values_[index(moved)];
  }

 private:
  [[nodiscard]] std::size_t index(const Offsets& at) const {
    return static_cast<std::size_t>(at[0] + 1 + (at[1] + 1) * pitch_ + (at[2] + 1) * plane_);
  }

  std::int64_t pitch_;
  std::int64_t plane_;
  std::vector<V> values_;
};

template <class V>
class NaiveFdtd {
 public:
  NaiveFdtd(const Extent& extent, int dimensions, double spacing, double time_step, const grid::CpmlOptions& cpml,
            grid::Polarisation polarisation = grid::Polarisation::tm)
      : extent_(extent),
        dimensions_(dimensions),
        te_(polarisation == grid::Polarisation::te),
        spacing_(spacing),
        time_step_(time_step),
        cpml_(cpml),
        layer_(cpml.cells),
        axes_(static_cast<std::size_t>(dimensions)) {}

  [[nodiscard]] NaiveField<V>& field(const std::string& name) {
    return fields_.try_emplace(name, NaiveField<V>(extent_)).first->second;
  }

  /// @param of  gives permittivity, conductivity and permeability of a cell
  template <class Material>
  void set_materials(Material of, bool averaging = true) {
    grade_layers(of);
    for (std::size_t along = 0; along < 3; ++along) {
      Field &ca = factor("ca", along), &cb = factor("cb", along), &db = factor("db", along);
      each([&](const Offsets& at) {
        const auto [permittivity, conductivity, permeability] =
            averaging ? mean_material(of, at, along) : std::array<double, 3>(of(at));
        const grid::FdtdCoefficients made =
            grid::fdtd_coefficients(permittivity, conductivity, permeability, spacing_, time_step_);
        ca(at) = static_cast<V>(made.ca);
        cb(at) = static_cast<V>(made.cb);
        db(at) = static_cast<V>(made.db);
      });
    }
  }

  /// The same per component of a plane.
  /// @param of  gives permittivity and conductivity of ez and the permeabilities of hx and hy of a cell
  template <class Material>
  void set_component_materials(Material of) {
    grade_layers([&](const Offsets& at) { return std::array{of(at)[0], of(at)[1], of(at)[2]}; });
    Field &ca = factor("ca", 2), &cb = factor("cb", 2), &db_x = factor("db", 0), &db_y = factor("db", 1);
    each([&](const Offsets& at) {
      const auto [permittivity, conductivity, of_hx, of_hy] = of(at);
      const auto made = grid::fdtd_coefficients(permittivity, conductivity, of_hx, spacing_, time_step_);
      ca(at) = static_cast<V>(made.ca);
      cb(at) = static_cast<V>(made.cb);
      db_x(at) = static_cast<V>(made.db);
      db_y(at) = static_cast<V>(grid::fdtd_coefficients(1, 0, of_hy, spacing_, time_step_).db);
    });
  }

  void half_step_h() {
    const Field &db_x = factor("db", 0), &db_y = factor("db", 1), &db_z = factor("db", 2);
    if (te_) {
      Field& hz = field("hz");
      const Field &ex = field("ex"), &ey = field("ey");
      each([&](const Offsets& at) { hz(at) = hz(at) - db_z(at) * (above(ey, at, 0) - above(ex, at, 1)); });
    } else if (dimensions_ == 2) {
      Field &hx = field("hx"), &hy = field("hy"), &ez = field("ez");
      each([&](const Offsets& at) {
        hx(at) = hx(at) - db_x(at) * above(ez, at, 1);
        hy(at) = hy(at) + db_y(at) * above(ez, at, 0);
      });
    } else {
      Field &hx = field("hx"), &hy = field("hy"), &hz = field("hz");
      const Field &ex = field("ex"), &ey = field("ey"), &ez = field("ez");
      each([&](const Offsets& at) {
        hx(at) = hx(at) - db_x(at) * (above(ez, at, 1) - above(ey, at, 2));
        hy(at) = hy(at) - db_y(at) * (above(ex, at, 2) - above(ez, at, 0));
        hz(at) = hz(at) - db_z(at) * (above(ey, at, 0) - above(ex, at, 1));
      });
    }
    for (std::size_t axis = 0; axis < axes_.size(); ++axis) absorb('h', axis);
  }

  void half_step_e() {
    const Field &ca_x = factor("ca", 0), &ca_y = factor("ca", 1), &ca_z = factor("ca", 2);
    const Field &cb_x = factor("cb", 0), &cb_y = factor("cb", 1), &cb_z = factor("cb", 2);
    if (te_) {
      Field &ex = field("ex"), &ey = field("ey");
      const Field& hz = field("hz");
      each([&](const Offsets& at) {
        ex(at) = free_of_walls(0, at, ca_x(at) * ex(at) + cb_x(at) * below(hz, at, 1));
        ey(at) = free_of_walls(1, at, ca_y(at) * ey(at) - cb_y(at) * below(hz, at, 0));
      });
    } else if (dimensions_ == 2) {
      Field& ez = field("ez");
      const Field &hx = field("hx"), &hy = field("hy");
      each([&](const Offsets& at) {
        const V curl = below(hy, at, 0) - below(hx, at, 1);
        ez(at) = free_of_walls(2, at, ca_z(at) * ez(at) + cb_z(at) * curl);
      });
    } else {
      Field &ex = field("ex"), &ey = field("ey"), &ez = field("ez");
      const Field &hx = field("hx"), &hy = field("hy"), &hz = field("hz");
      each([&](const Offsets& at) {
        ex(at) = free_of_walls(0, at, ca_x(at) * ex(at) + cb_x(at) * (below(hz, at, 1) - below(hy, at, 2)));
        ey(at) = free_of_walls(1, at, ca_y(at) * ey(at) + cb_y(at) * (below(hx, at, 2) - below(hz, at, 0)));
        ez(at) = free_of_walls(2, at, ca_z(at) * ez(at) + cb_z(at) * (below(hy, at, 0) - below(hx, at, 1)));
      });
    }
    for (std::size_t axis = 0; axis < axes_.size(); ++axis) absorb('e', axis);
  }

  template <class Do>
  void each(Do apply) const {
    for (std::int64_t z = 0; z < extent_.nz; ++z) {
      for (std::int64_t y = 0; y < extent_.ny; ++y) {
        for (std::int64_t x = 0; x < extent_.nx; ++x) apply(Offsets{x, y, z});
      }
    }
  }

 private:
  using Field = NaiveField<V>;

  template <class Material>
  void grade_layers(const Material& of) {
    for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
      const std::int64_t count = extent_.cells_along()[axis];
      const grid::CpmlIndex index{index_between(of, axis, 0, layer_), index_between(of, axis, count - layer_, count)};
      axes_[axis] = grid::cpml_axis(count, spacing_, time_step_, cpml_, index);
    }
  }

  /// The coefficients of the components along an axis.
  [[nodiscard]] Field& factor(const std::string& name, std::size_t along) { return field(name + "_" + letter(along)); }

  /// Mean material of a component along an axis: for E over the four cells around its edge, for H over the two cells
  /// that share its face; in two dimensions H takes that of its cell. Cells beyond a wall equal those at the wall, and
  /// there are no others along z in two dimensions.
  template <class Material>
  [[nodiscard]] std::array<double, 3> mean_material(Material of, const Offsets& at, std::size_t along) const {
    const auto before = [&](std::array<std::size_t, 3> by) {
      Offsets cell = at;
      for (std::size_t axis = 0; axis < 3; ++axis)
        cell[axis] = std::max<std::int64_t>(cell[axis] - static_cast<std::int64_t>(by[axis]), 0);
      return std::array<double, 3>(of(cell));
    };
    std::array<std::size_t, 3> one{};
    std::array<std::size_t, 3> other{};
    one[(along + 1) % 3] = other[(along + 2) % 3] = 1;
    std::array<std::size_t, 3> both{1, 1, 1};
    both[along] = 0;
    std::array<std::size_t, 3> across{};
    across[along] = 1;
    const auto own = before({}), a = before(one), b = before(other), c = before(both);
    std::array<double, 3> mean = own;
    for (std::size_t i = 0; i < 2; ++i) {
      // For ez in two dimensions rows are paired, otherwise the cells across the edge.
      mean[i] =
          dimensions_ == 2 && !te_ ? ((c[i] + b[i]) + (a[i] + own[i])) / 4 : ((own[i] + c[i]) + (a[i] + b[i])) / 4;
    }
    if (dimensions_ == 3 && before(across)[2] != own[2]) mean[2] = 2 / (1 / before(across)[2] + 1 / own[2]);
    return mean;
  }

  /// The speed that a layer is graded for: the root mean square of its cells, without good conductors.
  template <class Material>
  [[nodiscard]] double index_between(Material of, std::size_t axis, std::int64_t begin, std::int64_t end) const {
    double squared_speeds = 0;
    double cells = 0;
    each([&](const Offsets& at) {
      if (at[axis] < begin || at[axis] >= end) return;
      const auto [permittivity, conductivity, permeability] = of(at);
      if (conductivity * time_step_ / (2 * permittivity * grid::kVacuumPermittivity) > 1) return;
      squared_speeds += 1 / (permittivity * permeability);
      cells += 1;
    });
    return cells > 0 ? std::sqrt(cells / squared_speeds) : 1;
  }

  [[nodiscard]] static V above(const Field& field, const Offsets& at, std::size_t axis) {
    return field(at, axis, 1) - field(at);
  }
  [[nodiscard]] static V below(const Field& field, const Offsets& at, std::size_t axis) {
    return field(at) - field(at, axis, -1);
  }

  /// E along a wall at index 0 stays 0.
  [[nodiscard]] V free_of_walls(std::size_t along, const Offsets& at, V value) const {
    for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
      if (axis != along && at[axis] == 0) value = 0;
    }
    return value;
  }

  [[nodiscard]] static char letter(std::size_t axis) { return "xyz"[axis % 3]; }

  /// Adds the terms of the layers across an axis to E or H: in the curl, component (axis + 2) takes the derivative of
  /// component (axis + 1) along this axis with a plus, and the other way round with a minus.
  void absorb(char of, std::size_t axis) {
    for (std::size_t turn = 1; turn <= 2; ++turn) {
      const std::size_t along = (axis + 3 - turn) % 3;
      const std::string component{of, letter(along)};
      const bool across = component == (te_ ? "hz" : "ez");
      const bool in_plane = component[0] == (te_ ? 'e' : 'h') && along < 2;
      if (dimensions_ == 2 && !across && !in_plane) continue;
      const std::string other{of == 'e' ? 'h' : 'e', letter(axis + turn)};
      const bool plus = (turn == 1) == (of == 'e');
      absorb_component(of, axis, along, field(component), field(other), field("psi_" + component + letter(axis)), plus);
    }
  }

  void absorb_component(char of, std::size_t axis, std::size_t along, Field& component, const Field& other,
                        Field& memory, bool plus) {
    const grid::CpmlTable& table = of == 'e' ? axes_[axis].electric : axes_[axis].magnetic;
    const Field& factors = factor(of == 'e' ? "cb" : "db", along);
    const std::int64_t count = extent_.cells_along()[axis];
    each([&](const Offsets& at) {
      if (at[axis] >= layer_ && at[axis] < count - layer_) return;
      const auto place = static_cast<std::size_t>(at[axis]);
      const V difference = of == 'e' ? below(other, at, axis) : above(other, at, axis);
      memory(at) = static_cast<V>(table.b[place]) * memory(at) + static_cast<V>(table.c[place]) * difference;
      const V change = factors(at) * (static_cast<V>(table.k[place]) * difference + memory(at));
      const V value = plus ? component(at) + change : component(at) - change;
      component(at) = of == 'e' ? free_of_walls(along, at, value) : value;
    });
  }

  Extent extent_;
  int dimensions_;
  bool te_;
  double spacing_;
  double time_step_;
  grid::CpmlOptions cpml_;
  std::int64_t layer_;
  std::vector<grid::CpmlAxis> axes_;
  std::map<std::string, NaiveField<V>> fields_;
};

}  // namespace headrace::testing
