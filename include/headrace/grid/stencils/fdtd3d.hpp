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

// psi_abc belongs to component b of field a, and to the absorbing layers across axis c.
enum Fields : int {
  hx,
  hy,
  hz,
  ex,
  ey,
  ez,
  e_medium,  ///< The number of a cell's coefficients in FdtdTables::electric_media,
  h_medium,  ///< and in magnetic_media.
  psi_hyx,
  psi_hzx,
  psi_hzy,
  psi_hxy,
  psi_hxz,
  psi_hyz,
  psi_ezx,
  psi_eyx,
  psi_exy,
  psi_ezy,
  psi_eyz,
  psi_exz,
  field_count
};

/// A component that layers correct, the component whose difference they read for it, and the memory they keep.
struct Absorbed {
  int component;
  int other;
  int psi;
};

/// Along an axis: the component whose curl takes the difference with a plus, and the one with a minus.
struct AbsorbedPair {
  Absorbed plus;
  Absorbed minus;
};

inline constexpr AbsorbedPair kAbsorbedH[3] = {{{hy, ez, psi_hyx}, {hz, ey, psi_hzx}},
                                               {{hz, ex, psi_hzy}, {hx, ez, psi_hxy}},
                                               {{hx, ey, psi_hxz}, {hy, ex, psi_hyz}}};
inline constexpr AbsorbedPair kAbsorbedE[3] = {{{ez, hy, psi_ezx}, {ey, hz, psi_eyx}},
                                               {{ex, hz, psi_exy}, {ez, hx, psi_ezy}},
                                               {{ey, hx, psi_eyz}, {ex, hy, psi_exz}}};

[[nodiscard]] constexpr Phase describe_absorbing(const AbsorbedPair& pair, int medium, const Layers& reach) {
  const FieldSet changed = fields(pair.plus.component, pair.plus.psi, pair.minus.component, pair.minus.psi);
  const FieldSet read = fields(pair.plus.other, pair.minus.other);
  return {changed, changed | read | fields(medium), read, reach};
}

/// Where there are dispersive media: the field of the first memory of a pole of ex. Those of ey and ez follow, then the
/// second ones.
[[nodiscard]] constexpr int first_memory(bool absorbing) noexcept { return absorbing ? field_count : psi_hyx; }

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
/// walls of the domain conduct perfectly: E along a wall stays 0 at index 0, and is 0 beyond the last cell. Without
/// absorbing layers there are neither their fields nor their phases, and without Dispersive media none of poles.
template <class V, bool Absorbing, bool Dispersive = false>
struct Fdtd3d {
  static constexpr const char* kName = sizeof(V) == sizeof(float) ? "fdtd3d_single" : "fdtd3d_double";
  using Value = V;
  static constexpr int kMemory = fdtd3d::first_memory(Absorbing);
  static constexpr int kFields = kMemory + (Dispersive ? 3 * kPoleValuesMax : 0);
  static constexpr auto kOrder = fdtd_order<3, Absorbing, Dispersive>();
  static constexpr auto kPhases = describe_phases(kOrder, fdtd3d::describe<kMemory>);
  static constexpr auto kVectored = phases_that_are<FdtdPhase::update_h, FdtdPhase::update_e>(kOrder);

  FdtdTables<V> tables;

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

  /// Splits cells of a row where coefficients change, for phases that need them; see PhaseKernel. Most rows have one
  /// combination for long: its coefficients are then constants, and no cell is asked for its number.
  template <int PhaseNumber, class Row, class Visit>
  HEADRACE_HD void for_each_run(const Row& row, std::int32_t begin, std::int32_t end, const Visit& visit) const {
    constexpr FdtdPhase kDo = kOrder[PhaseNumber];
    if constexpr (is_magnetic(kDo)) {
      runs_in(tables.magnetic_media, row, begin, end, visit);
    } else if constexpr (is_electric(kDo)) {
      runs_in(tables.electric_media, row, begin, end, visit);
    } else {
      visit(*this, begin, end);
    }
  }

 private:
  [[nodiscard]] static constexpr bool is_magnetic(FdtdPhase phase) noexcept {
    return phase == FdtdPhase::update_h || phase == FdtdPhase::absorb_h_x || phase == FdtdPhase::absorb_h_y ||
           phase == FdtdPhase::absorb_h_z;
  }
  [[nodiscard]] static constexpr bool is_electric(FdtdPhase phase) noexcept {
    return phase == FdtdPhase::update_e || phase == FdtdPhase::absorb_e_x || phase == FdtdPhase::absorb_e_y ||
           phase == FdtdPhase::absorb_e_z;
  }

  template <int Field, class Cell>
  [[nodiscard]] HEADRACE_HD HEADRACE_INLINED static std::uint32_t number_in(Cell cell) {
    return combination_number(cell.get(Field));
  }

  /// The stencil where all cells have the same coefficients.
  template <class Combination>
  struct InOneMedium {
    const Fdtd3d& stencil;
    Combination its;

    template <int PhaseNumber, class Cell>
    HEADRACE_HD HEADRACE_INLINED void update(Cell cell) const {
      stencil.template update_in<PhaseNumber>(cell, its);
    }
  };

  template <class Combination, class Row, class Visit>
  HEADRACE_HD void runs_in(const FdtdMedia<Combination>& media, const Row& row, std::int32_t begin, std::int32_t end,
                           const Visit& visit) const {
    visit_runs(media, row, begin, end, [&](std::int32_t first, std::int32_t after, std::uint32_t number) {
      if (number == FdtdMedia<Combination>::kMixed) {
        visit(*this, first, after);
      } else {
        visit(InOneMedium<Combination>{*this, media.table[number]}, first, after);
      }
    });
  }

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
  HEADRACE_HD HEADRACE_INLINED static void advance_e(Cell cell, const FdtdElectric<V>& its) {
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

  /// Keeps E along the low walls at 0.
  template <class Cell>
  HEADRACE_HD HEADRACE_INLINED static void set_e(Cell cell, int component, V value) {
    using enum fdtd3d::Fields;
    const std::uint32_t across_x = component != ex ? 1 : 0;
    const std::uint32_t across_y = component != ey ? 1 : 0;
    const std::uint32_t across_z = component != ez ? 1 : 0;
    const std::uint32_t wall =
        (across_x & at_wall(cell.x())) | (across_y & at_wall(cell.y())) | (across_z & at_wall(cell.z()));
    cell.set(component, unless_wall(wall, value));
  }
};

}  // namespace headrace::grid
