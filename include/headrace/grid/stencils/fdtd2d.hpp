#pragma once

// Fdtd2d is the stencil that Fdtd (headrace/grid/fdtd.hpp) runs in two dimensions; programs include it to run the
// stencil in a Simulation of their own.
//
//     headrace::grid::Fdtd2d<float, true> stencil{};  // with absorbing layers, whose tables are to be filled in
//     for (const headrace::grid::Phase& phase : stencil.kPhases) {
//       std::printf("reads %d cells upwards along x\n", static_cast<int>(phase.reach.high[0]));
//     }
//     static_assert(stencil.kFields == headrace::grid::fdtd2d::field_count);

#include <array>
#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/grid/detail/phase.hpp"
#include "headrace/grid/detail/stencils/cpml.hpp"
#include "headrace/grid/detail/stencils/fdtd_phases.hpp"
#include "headrace/grid/detail/stencils/fdtd_points.hpp"
#include "headrace/grid/detail/stencils/wall.hpp"

namespace headrace::grid {

namespace fdtd2d {

/// The fields of Fdtd2d. psi_abc is the memory of component b of field a in the absorbing layers across axis c.
enum Fields : int {
  hx,          ///< Hx, in A/m.
  hy,          ///< Hy, in A/m.
  ez,          ///< Ez, in V/m.
  ca,          ///< Coefficient of Ez itself in its update.
  cb,          ///< Coefficient of the curl of H in the update of Ez.
  db,          ///< Coefficient of the curl of E in the updates of Hx and, unless it has its own, Hy.
  psi_hyx,     ///< Memory of Hy across x.
  psi_hxy,     ///< Memory of Hx across y.
  psi_ezx,     ///< Memory of Ez across x, of the difference of Hy.
  psi_ezy,     ///< Memory of Ez across y, of the difference of Hx.
  field_count  ///< Fields of the stencil with absorbing layers and without further options.
};

/// The field that holds the coefficients of hy: db, or, if components have their own, one after all others.
[[nodiscard]] constexpr int db_of_hy(bool absorbing, bool per_component) noexcept {
  if (!per_component) return db;
  return absorbing ? field_count : psi_hyx;
}

/// With dispersive media, the field that holds the number of ez in FdtdTables::dispersion. The memories of its poles
/// follow it.
[[nodiscard]] constexpr int e_medium(bool absorbing) noexcept { return absorbing ? field_count : psi_hyx; }

/// The fields that a phase reads and writes, and how far it reads.
template <int DbOfHy, int Medium>
[[nodiscard]] constexpr Phase describe(FdtdPhase phase) {
  constexpr auto kH = fields(hx, hy);
  switch (phase) {
    case FdtdPhase::update_h: return {kH, kH | fields(ez, db, DbOfHy), fields(ez), {{}, {1, 1, 0}}};
    case FdtdPhase::absorb_h_x:
      return {fields(hy, psi_hyx), fields(hy, psi_hyx, ez, DbOfHy), fields(ez), layer_above(0)};
    case FdtdPhase::absorb_h_y: return {fields(hx, psi_hxy), fields(hx, psi_hxy, ez, db), fields(ez), layer_above(1)};
    case FdtdPhase::magnetic_sources: return {kH, kH, {}, {}};
    case FdtdPhase::disperse: {
      const FieldSet changed = fields(ez) | fields_from(Medium + 1, kPoleValuesMax);
      return {changed, changed | fields(Medium), {}, {}};
    }
    case FdtdPhase::update_e: return {fields(ez), kH | fields(ez, ca, cb), kH, {{1, 1, 0}, {}}};
    case FdtdPhase::absorb_e_x: return {fields(ez, psi_ezx), fields(ez, psi_ezx, hy, cb), fields(hy), layer_below(0)};
    case FdtdPhase::absorb_e_y: return {fields(ez, psi_ezy), fields(ez, psi_ezy, hx, cb), fields(hx), layer_below(1)};
    case FdtdPhase::electric_sources: return {fields(ez), fields(ez), {}, {}};
    default: return {{}, kH | fields(ez), {}, {}};
  }
}

}  // namespace fdtd2d

/// Maxwell's equations in a plane, transverse magnetic: Ez at the corners (i, j) of cells, Hx at (i, j + 1/2), Hy at
/// (i + 1/2, j), leapfrogging in time (Yee, IEEE Transactions on Antennas and Propagation 14, 1966). The walls of the
/// domain conduct perfectly: Ez stays 0 at i = 0 and j = 0 (unless FdtdTables::conducting says otherwise), and is 0
/// beyond the last cell. Without absorbing layers the stencil has neither their fields nor their phases. Hx and Hy of a
/// cell share a coefficient, or, with PerComponent, have a field of coefficients each. With Dispersive media Ez has a
/// number and the memories of its poles, Hy the coefficient of Hx times FdtdTables::hy_share, and steps are done one by
/// one, without passes over memory.
template <class V, bool Absorbing, bool PerComponent = false, bool Dispersive = false>
struct Fdtd2d {
  static_assert(!PerComponent || !Dispersive, "dispersive media are not given per component");
  /// For messages.
  static constexpr const char* kName = sizeof(V) == sizeof(float) ? "fdtd2d_single" : "fdtd2d_double";
  using Value = V;  ///< The type of values in fields.
  /// In float, subnormal values count as 0: a wave's fringe is full of them, and a CPU takes many times as long for
  /// each.
  static constexpr bool kFlushToZero = sizeof(V) == sizeof(float);
  /// With dispersive media, the field of their numbers, see fdtd2d::e_medium().
  static constexpr int kMedium = fdtd2d::e_medium(Absorbing);
  /// Number of fields.
  static constexpr int kFields = kMedium + (PerComponent ? 1 : 0) + (Dispersive ? 1 + kPoleValuesMax : 0);
  /// The field with the coefficients of hy, see fdtd2d::db_of_hy().
  static constexpr int kDbOfHy = fdtd2d::db_of_hy(Absorbing, PerComponent);
  /// What each phase of a step does.
  static constexpr auto kOrder = fdtd_order<2, Absorbing, Dispersive>();
  /// The phases of a step.
  static constexpr auto kPhases = describe_phases(kOrder, fdtd2d::describe<kDbOfHy, kMedium>);
  /// Phases that CUDA threads do for 16 bytes of a row at a time.
  static constexpr auto kVectored = phases_that_are<FdtdPhase::update_h, FdtdPhase::update_e>(kOrder);
  /// Phases that passes over memory do.
  static constexpr auto kSwept = swept<Dispersive>(kVectored);
  /// The stencil whose kernels do the passes, which leave absorbing layers to other phases.
  using SweptBy = Fdtd2d<V, false, PerComponent, Dispersive>;
  /// The numbers that its fields have here and there.
  static constexpr std::array kSweptFields{Swap{kDbOfHy, fdtd2d::db_of_hy(false, PerComponent)}};

  /// Factors, sources, receivers and media, in the memory of the part's device.
  FdtdTables<V> tables;

  /// All that the phases of passes need besides the fields.
  struct Swept {
    std::int32_t walls[2];  ///< For each axis, the index at which Ez stays 0, or kNoWall.

    /// Does a phase of kSwept for one cell.
    template <int PhaseNumber, class Cell>
    HEADRACE_HD void update(Cell cell) const {
      using enum fdtd2d::Fields;
      if constexpr (kOrder[PhaseNumber] == FdtdPhase::update_h) {
        const V e = cell.get(ez);
        cell.set(hx, cell.get(hx) - cell.get(db) * (cell.get(ez, 0, 1, 0) - e));
        cell.set(hy, cell.get(hy) + cell.get(kDbOfHy) * (cell.get(ez, 1, 0, 0) - e));
      } else {
        static_assert(kOrder[PhaseNumber] == FdtdPhase::update_e);
        const V curl = (cell.get(hy) - cell.get(hy, -1, 0, 0)) - (cell.get(hx) - cell.get(hx, 0, -1, 0));
        set_e(cell, cell.get(ca) * cell.get(ez) + cell.get(cb) * curl);
      }
    }

    /// Sets Ez, unless it stays 0 there.
    template <class Cell>
    HEADRACE_HD void set_e(Cell cell, V value) const {
      cell.set(fdtd2d::ez, unless_wall(at_wall(cell.x(), walls[0]) | at_wall(cell.y(), walls[1]), value));
    }
  };
  /// What passes take in place of the stencil. It fits registers, while its tables would be read again for each cell,
  /// from a copy that each thread makes of all arguments.
  [[nodiscard]] HEADRACE_HD Swept swept_part() const noexcept {
    return {{low_wall(tables.conducting, 0), low_wall(tables.conducting, 1)}};
  }

  /// Does a phase for one cell.
  template <int PhaseNumber, class Cell>
  HEADRACE_HD void update(Cell cell) const {
    using enum fdtd2d::Fields;
    constexpr FdtdPhase kDo = kOrder[PhaseNumber];
    if constexpr (Dispersive && kDo == FdtdPhase::update_h) {
      const V e = cell.get(ez);
      cell.set(hx, cell.get(hx) - cell.get(db) * (cell.get(ez, 0, 1, 0) - e));
      cell.set(hy, cell.get(hy) + db_of_hy(cell) * (cell.get(ez, 1, 0, 0) - e));
    } else if constexpr (kDo == FdtdPhase::update_h || kDo == FdtdPhase::update_e) {
      swept_part().template update<PhaseNumber>(cell);
    } else if constexpr (kDo == FdtdPhase::absorb_h_x) {
      const V difference = cell.get(ez, 1, 0, 0) - cell.get(ez);
      cell.set(hy, cell.get(hy) + db_of_hy(cell) * cpml_term(cell, psi_hyx, tables.magnetic[0], cell.x(), difference));
    } else if constexpr (kDo == FdtdPhase::absorb_h_y) {
      const V difference = cell.get(ez, 0, 1, 0) - cell.get(ez);
      cell.set(hx, cell.get(hx) - cell.get(db) * cpml_term(cell, psi_hxy, tables.magnetic[1], cell.y(), difference));
    } else if constexpr (kDo == FdtdPhase::magnetic_sources) {
      add_sources(cell, tables.sources, 1);
    } else if constexpr (kDo == FdtdPhase::disperse) {
      constexpr int kAlongZ = 2;
      advance_poles(cell, tables.dispersion, combination_number(cell.get(kMedium)), kAlongZ, ez, kMedium + 1, 1);
    } else if constexpr (kDo == FdtdPhase::absorb_e_x) {
      const V difference = cell.get(hy) - cell.get(hy, -1, 0, 0);
      set_e(cell, cell.get(ez) + cell.get(cb) * cpml_term(cell, psi_ezx, tables.electric[0], cell.x(), difference));
    } else if constexpr (kDo == FdtdPhase::absorb_e_y) {
      const V difference = cell.get(hx) - cell.get(hx, 0, -1, 0);
      set_e(cell, cell.get(ez) - cell.get(cb) * cpml_term(cell, psi_ezy, tables.electric[1], cell.y(), difference));
    } else if constexpr (kDo == FdtdPhase::electric_sources) {
      add_sources(cell, tables.sources, 0);
    } else {
      record(cell, tables.receivers);
    }
  }

 private:
  template <class Cell>
  [[nodiscard]] HEADRACE_HD V db_of_hy(Cell cell) const {
    if constexpr (Dispersive) {
      return cell.get(kDbOfHy) * tables.hy_share;
    } else {
      return cell.get(kDbOfHy);
    }
  }

  template <class Cell>
  HEADRACE_HD void set_e(Cell cell, V value) const {
    swept_part().set_e(cell, value);
  }
};

}  // namespace headrace::grid
