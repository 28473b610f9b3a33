#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "headrace/grid/box.hpp"
#include "headrace/grid/fdtd_coefficients.hpp"

/// Finite differences in the time domain as plain loops over whole arrays, with the arithmetic of the stencils.
namespace headrace::testing {

using grid::Extent;
using grid::Offsets;

/// Values of a domain with a layer of zeros about it.
template <class V>
class NaiveField {
 public:
  explicit NaiveField(const Extent& extent)
      : pitch_(extent.nx + 2), plane_(pitch_ * (extent.ny + 2)),
        values_(static_cast<std::size_t>(plane_ * (extent.nz + 2))) {}

  [[nodiscard]] V& operator()(const Offsets& at) { return values_[index(at)]; }
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
  NaiveFdtd(const Extent& extent, int dimensions, double spacing, double time_step, const grid::CpmlOptions& cpml)
      : extent_(extent), dimensions_(dimensions), spacing_(spacing), time_step_(time_step), layer_(cpml.cells) {
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(dimensions); ++axis) {
      axes_.push_back(grid::cpml_axis(extent.cells_along()[axis], spacing, time_step, cpml));
    }
  }

  [[nodiscard]] NaiveField<V>& field(const std::string& name) {
    return fields_.try_emplace(name, NaiveField<V>(extent_)).first->second;
  }

  template <class Material>
  void set_materials(Material of) {
    each([&](const Offsets& at) {
      const auto [permittivity, conductivity, permeability] = of(at);
      const grid::FdtdCoefficients made =
          grid::fdtd_coefficients(permittivity, conductivity, permeability, spacing_, time_step_);
      field("ca")(at) = static_cast<V>(made.ca);
      field("cb")(at) = static_cast<V>(made.cb);
      field("db")(at) = static_cast<V>(made.db);
    });
  }

  void half_step_h() {
    if (dimensions_ == 2) {
      each([&](const Offsets& at) {
        field("hx")(at) = field("hx")(at) - field("db")(at) * above("ez", at, 1);
        field("hy")(at) = field("hy")(at) + field("db")(at) * above("ez", at, 0);
      });
    } else {
      each([&](const Offsets& at) {
        const V db = field("db")(at);
        field("hx")(at) = field("hx")(at) - db * (above("ez", at, 1) - above("ey", at, 2));
        field("hy")(at) = field("hy")(at) - db * (above("ex", at, 2) - above("ez", at, 0));
        field("hz")(at) = field("hz")(at) - db * (above("ey", at, 0) - above("ex", at, 1));
      });
    }
    for (std::size_t axis = 0; axis < axes_.size(); ++axis) absorb('h', axis);
  }

  void half_step_e() {
    if (dimensions_ == 2) {
      each([&](const Offsets& at) {
        const V curl = below("hy", at, 0) - below("hx", at, 1);
        set_e("ez", at, field("ca")(at) * field("ez")(at) + field("cb")(at) * curl);
      });
    } else {
      each([&](const Offsets& at) {
        const V ca = field("ca")(at);
        const V cb = field("cb")(at);
        set_e("ex", at, ca * field("ex")(at) + cb * (below("hz", at, 1) - below("hy", at, 2)));
        set_e("ey", at, ca * field("ey")(at) + cb * (below("hx", at, 2) - below("hz", at, 0)));
        set_e("ez", at, ca * field("ez")(at) + cb * (below("hy", at, 0) - below("hx", at, 1)));
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
  [[nodiscard]] V above(const std::string& name, const Offsets& at, std::size_t axis) {
    return field(name)(at, axis, 1) - field(name)(at);
  }
  [[nodiscard]] V below(const std::string& name, const Offsets& at, std::size_t axis) {
    return field(name)(at) - field(name)(at, axis, -1);
  }

  /// E along a wall at index 0 stays 0.
  void set_e(const std::string& name, const Offsets& at, V value) {
    const auto along = static_cast<std::size_t>(name[1] - 'x');
    for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
      if (axis != along && at[axis] == 0) value = 0;
    }
    field(name)(at) = value;
  }

  /// d/dt of component a takes + d/d(axis) of component b of the other field where (axis, b, a) is a cyclic order
  /// for E, and - for H; and the other way round.
  void absorb(char of, std::size_t axis) {
    const grid::CpmlTable& table = of == 'e' ? axes_[axis].electric : axes_[axis].magnetic;
    const std::int64_t count = extent_.cells_along()[axis];
    for (std::size_t turn = 1; turn <= 2; ++turn) {
      const std::string component{of, static_cast<char>('x' + static_cast<char>((axis + 3 - turn) % 3))};
      const std::string other{of == 'e' ? 'h' : 'e', static_cast<char>('x' + static_cast<char>((axis + turn) % 3))};
      if (dimensions_ == 2 && component != "hx" && component != "hy" && component != "ez") continue;
      const std::string memory = "psi_" + component + static_cast<char>('x' + static_cast<char>(axis));
      each([&](const Offsets& at) {
        if (at[axis] >= layer_ && at[axis] < count - layer_) return;
        const auto place = static_cast<std::size_t>(at[axis]);
        const V difference = of == 'e' ? below(other, at, axis) : above(other, at, axis);
        const V advanced = static_cast<V>(table.b[place]) * field(memory)(at) + static_cast<V>(table.c[place]) * difference;
        field(memory)(at) = advanced;
        const V term = static_cast<V>(table.k[place]) * difference + advanced;
        const V change = field(of == 'e' ? "cb" : "db")(at) * term;
        // x * dy = z: the curl's component (axis + 2) takes the derivative along axis of (axis + 1) with a plus.
        const bool plus = (turn == 1) == (of == 'e');
        const V value = plus ? field(component)(at) + change : field(component)(at) - change;
        if (of == 'e') {
          set_e(component, at, value);
        } else {
          field(component)(at) = value;
        }
      });
    }
  }

  Extent extent_;
  int dimensions_;
  double spacing_;
  double time_step_;
  std::int64_t layer_;
  std::vector<grid::CpmlAxis> axes_;
  std::map<std::string, NaiveField<V>> fields_;
};

}  // namespace headrace::testing
