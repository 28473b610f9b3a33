#pragma once

// Fdtd3d is the stencil that Fdtd (headrace/grid/fdtd.hpp) runs in three dimensions; programs include it to run the
// stencil in a Simulation of their own.
//
//     headrace::grid::Fdtd3d<float, true> stencil{};  // with absorbing layers, whose tables are to be filled in
//     for (const headrace::grid::Phase& phase : stencil.kPhases) {
//       std::printf("reads %d cells upwards along z\n", static_cast<int>(phase.reach.high[2]));
//     }
//     static_assert(stencil.kFields == headrace::grid::fdtd3d::field_count);

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

namespace fdtd3d {

/// The fields of Fdtd3d. psi_abc is the memory of component b of field a in the absorbing layers across axis c.
enum Fields : int {
  hx,          ///< Hx, in A/m.
  hy,          ///< Hy, in A/m.
  hz,          ///< Hz, in A/m.
  ex,          ///< Ex, in V/m.
  ey,          ///< Ey, in V/m.
  ez,          ///< Ez, in V/m.
  e_medium,    ///< The number of a cell's coefficients in FdtdTables::electric_media.
  h_medium,    ///< The number of a cell's coefficients in FdtdTables::magnetic_media.
  psi_hyx,     ///< Memory of Hy across x.
  psi_hzx,     ///< Memory of Hz across x.
  psi_hzy,     ///< Memory of Hz across y.
  psi_hxy,     ///< Memory of Hx across y.
  psi_hxz,     ///< Memory of Hx across z.
  psi_hyz,     ///< Memory of Hy across z.
  psi_ezx,     ///< Memory of Ez across x.
  psi_eyx,     ///< Memory of Ey across x.
  psi_exy,     ///< Memory of Ex across y.
  psi_ezy,     ///< Memory of Ez across y.
  psi_eyz,     ///< Memory of Ey across z.
  psi_exz,     ///< Memory of Ex across z.
  field_count  ///< Fields of the stencil with absorbing layers and without dispersive media.
};

/// A component that the absorbing layers across an axis correct. All three members are fields.
struct Absorbed {
  int component;  ///< The component.
  int other;      ///< The component whose difference along the axis it takes.
  int psi;        ///< The memory of the correction.
};

/// The two components that the absorbing layers across an axis correct.
struct AbsorbedPair {
  Absorbed plus;   ///< The one whose curl adds the difference.
  Absorbed minus;  ///< The one whose curl subtracts it.
};

/// The components of H that the layers across x, y and z correct.
inline constexpr AbsorbedPair kAbsorbedH[3] = {{{hy, ez, psi_hyx}, {hz, ey, psi_hzx}},
                                               {{hz, ex, psi_hzy}, {hx, ez, psi_hxy}},
                                               {{hx, ey, psi_hxz}, {hy, ex, psi_hyz}}};
/// The components of E that the layers across x, y and z correct.
inline constexpr AbsorbedPair kAbsorbedE[3] = {{{ez, hy, psi_ezx}, {ey, hz, psi_eyx}},
                                               {{ex, hz, psi_exy}, {ez, hx, psi_ezy}},
                                               {{ey, hx, psi_eyz}, {ex, hy, psi_exz}}};

/// The fields that an absorbing phase reads and writes; `medium` is the field with the numbers of coefficients.
[[nodiscard]] constexpr Phase describe_absorbing(const AbsorbedPair& pair, int medium, const Layers& reach) {
  const FieldSet changed = fields(pair.plus.component, pair.plus.psi, pair.minus.component, pair.minus.psi);
  const FieldSet read = fields(pair.plus.other, pair.minus.other);
  return {changed, changed | read | fields(medium), read, reach};
}

/// With dispersive media, the field of the first memory of the poles of ex. Those of ey and ez follow, then the second
/// memories of all three, and so on.
[[nodiscard]] constexpr int first_memory(bool absorbing) noexcept { return absorbing ? field_count : psi_hyx; }

/// The fields that a phase reads and writes, and how far it reads.
template <int FirstMemory>
[[nodiscard]] constexpr Phase describe(FdtdPhase phase) {
  constexpr auto kH = fields(hx, hy, hz);
  constexpr auto kE = fields(ex, ey, ez);
  switch (phase) {
    case FdtdPhase::update_h: return {kH, kH | kE | fields(h_medium), kE, {{}, {1, 1, 1}}};
    case FdtdPhase::absorb_h_x: return describe_absorbing(kAbsorbedH[0], h_medium, layer_above(0));
    case FdtdPhase::absorb_h_y: return describe_absorbing(kAbsorbedH[1], h_medium, layer_above(1));
    case FdtdPhase::absorb_h_z: return describe_absorbing(kAbsorbedH[2], h_medium, layer_above(2));
    case FdtdPhase::magnetic_sources: return {kH, kH, {}, {}};
    case FdtdPhase::disperse: {
      const FieldSet changed = kE | fields_from(FirstMemory, 3 * kPoleValuesMax);
      return {changed, changed | fields(e_medium), {}, {}};
    }
    case FdtdPhase::update_e: return {kE, kE | kH | fields(e_medium), kH, {{1, 1, 1}, {}}};
    case FdtdPhase::absorb_e_x: return describe_absorbing(kAbsorbedE[0], e_medium, layer_below(0));
    case FdtdPhase::absorb_e_y: return describe_absorbing(kAbsorbedE[1], e_medium, layer_below(1));
    case FdtdPhase::absorb_e_z: return describe_absorbing(kAbsorbedE[2], e_medium, layer_below(2));
    case FdtdPhase::electric_sources: return {kE, kE, {}, {}};
    default: return {{}, kH | kE, {}, {}};
  }
}

}  // namespace fdtd3d

/// Maxwell's equations in space on Yee's cells (IEEE Transactions on Antennas and Propagation 14, 1966): E on the edges
/// of a cell (Ex at (i + 1/2, j, k) and so on), H on its faces (Hx at (i, j + 1/2, k + 1/2)), leapfrogging in time. The
/// walls of the domain conduct perfectly: E along a wall stays 0 at index 0 (unless FdtdTables::conducting says
/// otherwise), and is 0 beyond the last cell. The stencil
/// has fields and phases for absorbing layers and for poles only with Absorbing and Dispersive.
template <class V, bool Absorbing, bool Dispersive = false>
struct Fdtd3d {
  /// For messages.
  static constexpr const char* kName = sizeof(V) == sizeof(float) ? "fdtd3d_single" : "fdtd3d_double";
  using Value = V;  ///< The type of values in fields.
  /// In float, subnormal values count as 0: a wave's fringe is full of them, and a CPU takes many times as long for
  /// each.
  static constexpr bool kFlushToZero = sizeof(V) == sizeof(float);
  /// With dispersive media, the first field of poles, see fdtd3d::first_memory().
  static constexpr int kMemory = fdtd3d::first_memory(Absorbing);
  /// Number of fields.
  static constexpr int kFields = kMemory + (Dispersive ? 3 * kPoleValuesMax : 0);
  /// What each phase of a step does.
  static constexpr auto kOrder = fdtd_order<3, Absorbing, Dispersive>();
  /// The phases of a step.
  static constexpr auto kPhases = describe_phases(kOrder, fdtd3d::describe<kMemory>);
  /// Phases that CUDA threads do for 16 bytes of a row at a time.
  static constexpr auto kVectored = phases_that_are<FdtdPhase::update_h, FdtdPhase::update_e>(kOrder);

  /// Factors, sources, receivers and media, in the memory of the part's device.
  FdtdTables<V> tables;

  /// Does a phase for one cell.
  template <int PhaseNumber, class Cell>
  HEADRACE_HD HEADRACE_INLINED void update(Cell cell) const {
    constexpr FdtdPhase kDo = kOrder[PhaseNumber];
    if constexpr (is_magnetic(kDo)) {
      update_in<PhaseNumber>(cell, combination_at(tables.magnetic_media.table, number_in<fdtd3d::h_medium>(cell)));
    } else if constexpr (is_electric(kDo)) {
      update_in<PhaseNumber>(cell, combination_at(tables.electric_media.table, number_in<fdtd3d::e_medium>(cell)));
    } else if constexpr (kDo == FdtdPhase::disperse) {
      disperse(cell);
    } else if constexpr (kDo == FdtdPhase::magnetic_sources) {
      add_sources(cell, tables.sources, 1);
    } else if constexpr (kDo == FdtdPhase::electric_sources) {
      add_sources(cell, tables.sources, 0);
    } else {
      record(cell, tables.receivers);
    }
  }

  /// Splits cells `begin` to `end` of a row where coefficients change and calls `visit` for each run, in phases that
  /// need coefficients; see PhaseKernel. Long runs of one combination are common: its coefficients are then constants,
  /// and no cell's number is read.
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
    constexpr FdtdPhase kDo = kOrder[PhaseNumber];
    if constexpr (kDo == FdtdPhase::update_h) {
      advance_h(cell, its);
    } else if constexpr (kDo == FdtdPhase::absorb_h_x) {
      absorb_h<0>(cell, cell.x(), its);
    } else if constexpr (kDo == FdtdPhase::absorb_h_y) {
      absorb_h<1>(cell, cell.y(), its);
    } else if constexpr (kDo == FdtdPhase::absorb_h_z) {
      absorb_h<2>(cell, cell.z(), its);
    } else if constexpr (kDo == FdtdPhase::update_e) {
      advance_e(cell, its);
    } else if constexpr (kDo == FdtdPhase::absorb_e_x) {
      absorb_e<0>(cell, cell.x(), its);
    } else if constexpr (kDo == FdtdPhase::absorb_e_y) {
      absorb_e<1>(cell, cell.y(), its);
    } else {
      absorb_e<2>(cell, cell.z(), its);
    }
  }

 private:
  template <int Field, class Cell>
  [[nodiscard]] HEADRACE_HD HEADRACE_INLINED static std::uint32_t number_in(Cell cell) {
    return combination_number(cell.get(Field));
  }

  /// The difference of a field along an axis: to the neighbour above, which H reads of E, or below, as E reads of H.
  template <int Axis, class Cell>
  [[nodiscard]] HEADRACE_HD HEADRACE_INLINED static V above(Cell cell, int field) {
    return cell.get(field, Axis == 0, Axis == 1, Axis == 2) - cell.get(field);
  }
  template <int Axis, class Cell>
  [[nodiscard]] HEADRACE_HD HEADRACE_INLINED static V below(Cell cell, int field) {
    return cell.get(field) - cell.get(field, -(Axis == 0), -(Axis == 1), -(Axis == 2));
  }

  template <class Cell>
  HEADRACE_HD void disperse(Cell cell) const {
    const std::uint32_t number = number_in<fdtd3d::e_medium>(cell);
    for (int along = 0; along < 3; ++along)
      advance_poles(cell, tables.dispersion, number, along, fdtd3d::ex + along, kMemory + along, 3);
  }

  template <class Cell>
  HEADRACE_HD HEADRACE_INLINED static void advance_h(Cell cell, const FdtdMagnetic<V>& its) {
    using enum fdtd3d::Fields;
    cell.set(hx, cell.get(hx) - its.db[0] * (above<1>(cell, ez) - above<2>(cell, ey)));
    cell.set(hy, cell.get(hy) - its.db[1] * (above<2>(cell, ex) - above<0>(cell, ez)));
    cell.set(hz, cell.get(hz) - its.db[2] * (above<0>(cell, ey) - above<1>(cell, ex)));
  }

  template <class Cell>
  HEADRACE_HD HEADRACE_INLINED void advance_e(Cell cell, const FdtdElectric<V>& its) const {
    using enum fdtd3d::Fields;
    set_e(cell, ex, its.ca[0] * cell.get(ex) + its.cb[0] * (below<1>(cell, hz) - below<2>(cell, hy)));
    set_e(cell, ey, its.ca[1] * cell.get(ey) + its.cb[1] * (below<2>(cell, hx) - below<0>(cell, hz)));
    set_e(cell, ez, its.ca[2] * cell.get(ez) + its.cb[2] * (below<0>(cell, hy) - below<1>(cell, hx)));
  }

  template <int Axis, class Cell>
  HEADRACE_HD HEADRACE_INLINED void absorb_h(Cell cell, std::int32_t place, const FdtdMagnetic<V>& its) const {
    constexpr fdtd3d::AbsorbedPair kPair = fdtd3d::kAbsorbedH[Axis];
    constexpr int kPlus = kPair.plus.component - fdtd3d::hx;
    constexpr int kMinus = kPair.minus.component - fdtd3d::hx;
    const CpmlFactors<V>& factors = tables.magnetic[Axis];
    const V added = cpml_term(cell, kPair.plus.psi, factors, place, above<Axis>(cell, kPair.plus.other));
    const V taken = cpml_term(cell, kPair.minus.psi, factors, place, above<Axis>(cell, kPair.minus.other));
    cell.set(kPair.plus.component, cell.get(kPair.plus.component) + its.db[kPlus] * added);
    cell.set(kPair.minus.component, cell.get(kPair.minus.component) - its.db[kMinus] * taken);
  }

  template <int Axis, class Cell>
  HEADRACE_HD HEADRACE_INLINED void absorb_e(Cell cell, std::int32_t place, const FdtdElectric<V>& its) const {
    constexpr fdtd3d::AbsorbedPair kPair = fdtd3d::kAbsorbedE[Axis];
    constexpr int kPlus = kPair.plus.component - fdtd3d::ex;
    constexpr int kMinus = kPair.minus.component - fdtd3d::ex;
    const CpmlFactors<V>& factors = tables.electric[Axis];
    const V added = cpml_term(cell, kPair.plus.psi, factors, place, below<Axis>(cell, kPair.plus.other));
    const V taken = cpml_term(cell, kPair.minus.psi, factors, place, below<Axis>(cell, kPair.minus.other));
    set_e(cell, kPair.plus.component, cell.get(kPair.plus.component) + its.cb[kPlus] * added);
    set_e(cell, kPair.minus.component, cell.get(kPair.minus.component) - its.cb[kMinus] * taken);
  }

  /// Keeps E along the low walls that conduct at 0.
  template <class Cell>
  HEADRACE_HD HEADRACE_INLINED void set_e(Cell cell, int component, V value) const {
    using enum fdtd3d::Fields;
    const std::uint32_t across_x = component != ex ? tables.conducting & 1U : 0;
    const std::uint32_t across_y = component != ey ? tables.conducting >> 1U & 1U : 0;
    const std::uint32_t across_z = component != ez ? tables.conducting >> 2U & 1U : 0;
    const std::uint32_t wall =
        (across_x & at_wall(cell.x())) | (across_y & at_wall(cell.y())) | (across_z & at_wall(cell.z()));
    cell.set(component, unless_wall(wall, value));
  }
};

}  // namespace headrace::grid
