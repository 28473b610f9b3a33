#pragma once

#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/grid/detail/phase.hpp"
#include "headrace/grid/detail/stencils/cpml.hpp"
#include "headrace/grid/detail/stencils/fdtd_media.hpp"
#include "headrace/grid/detail/stencils/fdtd_phases.hpp"
#include "headrace/grid/detail/stencils/fdtd_points.hpp"
#include "headrace/grid/detail/stencils/inlined.hpp"
#include "headrace/grid/detail/stencils/wall.hpp"

namespace headrace::grid {

namespace fdtd2d_te {

/// The fields of Fdtd2dTe. psi_abc is the memory of component b of field a in the absorbing layers across axis c.
enum Fields : int {
  hz,          ///< Hz, in A/m.
  ex,          ///< Ex, in V/m.
  ey,          ///< Ey, in V/m.
  e_medium,    ///< The number of a cell's coefficients in FdtdTables::electric_media.
  h_medium,    ///< The number of a cell's coefficients in FdtdTables::magnetic_media.
  psi_hzx,     ///< Memory of Hz across x, of the difference of Ey.
  psi_hzy,     ///< Memory of Hz across y, of the difference of Ex.
  psi_eyx,     ///< Memory of Ey across x.
  psi_exy,     ///< Memory of Ex across y.
  field_count  ///< Fields of the stencil with absorbing layers and without dispersive media.
};

/// With dispersive media, the field of the first memory of the poles of ex. That of ey follows, then the second
/// memories of both, and so on.
[[nodiscard]] constexpr int first_memory(bool absorbing) noexcept { return absorbing ? field_count : psi_hzx; }

/// The fields that a phase reads and writes, and how far it reads.
template <int FirstMemory>
[[nodiscard]] constexpr Phase describe(FdtdPhase phase) {
  constexpr auto kE = fields(ex, ey);
  switch (phase) {
    case FdtdPhase::update_h: return {fields(hz), kE | fields(hz, h_medium), kE, {{}, {1, 1, 0}}};
    case FdtdPhase::absorb_h_x:
      return {fields(hz, psi_hzx), fields(hz, psi_hzx, ey, h_medium), fields(ey), layer_above(0)};
    case FdtdPhase::absorb_h_y:
      return {fields(hz, psi_hzy), fields(hz, psi_hzy, ex, h_medium), fields(ex), layer_above(1)};
    case FdtdPhase::magnetic_sources: return {fields(hz), fields(hz), {}, {}};
    case FdtdPhase::disperse: {
      const FieldSet changed = kE | fields_from(FirstMemory, 2 * kPoleValuesMax);
      return {changed, changed | fields(e_medium), {}, {}};
    }
    case FdtdPhase::update_e: return {kE, kE | fields(hz, e_medium), fields(hz), {{1, 1, 0}, {}}};
    case FdtdPhase::absorb_e_x:
      return {fields(ey, psi_eyx), fields(ey, psi_eyx, hz, e_medium), fields(hz), layer_below(0)};
    case FdtdPhase::absorb_e_y:
      return {fields(ex, psi_exy), fields(ex, psi_exy, hz, e_medium), fields(hz), layer_below(1)};
    case FdtdPhase::electric_sources: return {kE, kE, {}, {}};
    default: return {{}, kE | fields(hz), {}, {}};
  }
}

}  // namespace fdtd2d_te

/// Maxwell's equations in a plane, transverse electric: Hz in the middle of cells, at (i + 1/2, j + 1/2), Ex at
/// (i + 1/2, j), Ey at (i, j + 1/2), leapfrogging in time (Yee, IEEE Transactions on Antennas and Propagation 14,
/// 1966). It does what Fdtd3d does where nothing changes along z, to the last bit. The walls of the domain conduct
/// perfectly: E along a wall stays 0 at index 0 (unless FdtdTables::conducting says otherwise), and is 0 beyond the
/// last cell. The stencil has fields and phases for absorbing layers and for poles only with Absorbing and Dispersive;
/// with Dispersive media steps are done one by one, without passes over memory.
template <class V, bool Absorbing, bool Dispersive = false>
struct Fdtd2dTe {
  /// For messages.
  static constexpr const char* kName = sizeof(V) == sizeof(float) ? "fdtd2d_te_single" : "fdtd2d_te_double";
  using Value = V;  ///< The type of values in fields.
  /// In float, subnormal values count as 0: a wave's fringe is full of them, and a CPU takes many times as long for
  /// each.
  static constexpr bool kFlushToZero = sizeof(V) == sizeof(float);
  /// With dispersive media, the first field of poles, see fdtd2d_te::first_memory().
  static constexpr int kMemory = fdtd2d_te::first_memory(Absorbing);
  /// Number of fields.
  static constexpr int kFields = kMemory + (Dispersive ? 2 * kPoleValuesMax : 0);
  /// What each phase of a step does.
  static constexpr auto kOrder = fdtd_order<2, Absorbing, Dispersive>();
  /// The phases of a step.
  static constexpr auto kPhases = describe_phases(kOrder, fdtd2d_te::describe<kMemory>);
  /// Phases that CUDA threads do for 16 bytes of a row at a time.
  static constexpr auto kVectored = phases_that_are<FdtdPhase::update_h, FdtdPhase::update_e>(kOrder);
  /// Phases that passes over memory do.
  static constexpr auto kSwept = swept<Dispersive>(kVectored);
  /// The stencil whose kernels do the passes, which leave absorbing layers to other phases.
  using SweptBy = Fdtd2dTe<V, false, Dispersive>;

  /// Factors, sources, receivers and media, in the memory of the part's device.
  FdtdTables<V> tables;

  /// All that the phases of passes need besides the fields, see Fdtd2d::swept_part().
  struct Swept {
    const FdtdElectric<V>* electric;
    const FdtdMagnetic<V>* magnetic;
    std::int32_t walls[2];  ///< For each axis, the index at which E along its wall stays 0, or kNoWall.

    template <int PhaseNumber, class Cell>
    HEADRACE_HD HEADRACE_INLINED void update(Cell cell) const {
      if constexpr (kOrder[PhaseNumber] == FdtdPhase::update_h) {
        const std::uint32_t number = combination_number(cell.get(fdtd2d_te::h_medium));
        update_in<PhaseNumber>(cell, combination_at(magnetic, number));
      } else {
        const std::uint32_t number = combination_number(cell.get(fdtd2d_te::e_medium));
        update_in<PhaseNumber>(cell, combination_at(electric, number));
      }
    }
    template <int PhaseNumber, class Cell, class Combination>
    HEADRACE_HD HEADRACE_INLINED void update_in(Cell cell, const Combination& its) const {
      using enum fdtd2d_te::Fields;
      if constexpr (kOrder[PhaseNumber] == FdtdPhase::update_h) {
        const V difference_x = cell.get(ey, 1, 0, 0) - cell.get(ey);
        const V difference_y = cell.get(ex, 0, 1, 0) - cell.get(ex);
        cell.set(hz, cell.get(hz) - its.db[2] * (difference_x - difference_y));
      } else {
        static_assert(kOrder[PhaseNumber] == FdtdPhase::update_e);
        const V h = cell.get(hz);
        set_ex(cell, its.ca[0] * cell.get(ex) + its.cb[0] * (h - cell.get(hz, 0, -1, 0)));
        set_ey(cell, its.ca[1] * cell.get(ey) - its.cb[1] * (h - cell.get(hz, -1, 0, 0)));
      }
    }

    /// Keep E along the low walls that conduct at 0.
    template <class Cell>
    HEADRACE_HD HEADRACE_INLINED void set_ex(Cell cell, V value) const {
      cell.set(fdtd2d_te::ex, unless_wall(at_wall(cell.y(), walls[1]), value));
    }
    template <class Cell>
    HEADRACE_HD HEADRACE_INLINED void set_ey(Cell cell, V value) const {
      cell.set(fdtd2d_te::ey, unless_wall(at_wall(cell.x(), walls[0]), value));
    }
  };
  [[nodiscard]] HEADRACE_HD HEADRACE_INLINED Swept swept_part() const noexcept {
    return {tables.electric_media.table,
            tables.magnetic_media.table,
            {low_wall(tables.conducting, 0), low_wall(tables.conducting, 1)}};
  }

  /// Does a phase for one cell.
  template <int PhaseNumber, class Cell>
  HEADRACE_HD HEADRACE_INLINED void update(Cell cell) const {
    constexpr FdtdPhase kDo = kOrder[PhaseNumber];
    if constexpr (is_magnetic(kDo)) {
      const std::uint32_t number = combination_number(cell.get(fdtd2d_te::h_medium));
      update_in<PhaseNumber>(cell, combination_at(tables.magnetic_media.table, number));
    } else if constexpr (is_electric(kDo)) {
      const std::uint32_t number = combination_number(cell.get(fdtd2d_te::e_medium));
      update_in<PhaseNumber>(cell, combination_at(tables.electric_media.table, number));
    } else if constexpr (kDo == FdtdPhase::disperse) {
      const std::uint32_t number = combination_number(cell.get(fdtd2d_te::e_medium));
      for (int along = 0; along < 2; ++along)
        advance_poles(cell, tables.dispersion, number, along, fdtd2d_te::ex + along, kMemory + along, 2);
    } else if constexpr (kDo == FdtdPhase::magnetic_sources) {
      add_sources(cell, tables.sources, 1);
    } else if constexpr (kDo == FdtdPhase::electric_sources) {
      add_sources(cell, tables.sources, 0);
    } else {
      record(cell, tables.receivers);
    }
  }

  /// Splits cells `begin` to `end` of a row where coefficients change and calls `visit` for each run, as
  /// Fdtd3d::for_each_run() does.
  template <int PhaseNumber, class Row, class Visit>
  HEADRACE_HD void for_each_run(const Row& row, std::int32_t begin, std::int32_t end, const Visit& visit) const {
    constexpr FdtdPhase kDo = kOrder[PhaseNumber];
    if constexpr (is_magnetic(kDo)) {
      visit_runs_in_one_medium(*this, tables.magnetic_media, row, begin, end, visit);
    } else if constexpr (is_electric(kDo)) {
      visit_runs_in_one_medium(*this, tables.electric_media, row, begin, end, visit);
    } else {
      visit(*this, begin, end);
    }
  }

  /// Does a phase that needs coefficients, with those given.
  template <int PhaseNumber, class Cell, class Combination>
  HEADRACE_HD HEADRACE_INLINED void update_in(Cell cell, const Combination& its) const {
    using enum fdtd2d_te::Fields;
    constexpr FdtdPhase kDo = kOrder[PhaseNumber];
    if constexpr (kDo == FdtdPhase::update_h || kDo == FdtdPhase::update_e) {
      swept_part().template update_in<PhaseNumber>(cell, its);
    } else if constexpr (kDo == FdtdPhase::absorb_h_x) {
      const V difference = cell.get(ey, 1, 0, 0) - cell.get(ey);
      cell.set(hz, cell.get(hz) - its.db[2] * cpml_term(cell, psi_hzx, tables.magnetic[0], cell.x(), difference));
    } else if constexpr (kDo == FdtdPhase::absorb_h_y) {
      const V difference = cell.get(ex, 0, 1, 0) - cell.get(ex);
      cell.set(hz, cell.get(hz) + its.db[2] * cpml_term(cell, psi_hzy, tables.magnetic[1], cell.y(), difference));
    } else if constexpr (kDo == FdtdPhase::absorb_e_x) {
      const V difference = cell.get(hz) - cell.get(hz, -1, 0, 0);
      swept_part().set_ey(
          cell, cell.get(ey) - its.cb[1] * cpml_term(cell, psi_eyx, tables.electric[0], cell.x(), difference));
    } else {
      const V difference = cell.get(hz) - cell.get(hz, 0, -1, 0);
      swept_part().set_ex(
          cell, cell.get(ex) + its.cb[0] * cpml_term(cell, psi_exy, tables.electric[1], cell.y(), difference));
    }
  }
};

}  // namespace headrace::grid
