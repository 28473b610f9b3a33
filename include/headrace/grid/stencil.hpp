#pragma once

// A stencil says how each cell of a grid is computed from itself and its neighbours. make_stencil() makes of it what a
// Simulation runs; where nvcc compiles the call, on CUDA devices as well.
//
//     struct Spread {
//       static constexpr const char* kName = "spread";
//       using Value = float;
//       enum Fields : int { now, next };
//       static constexpr int kFields = 2;
//       static constexpr std::array kPhases{headrace::grid::Phase{.writes = headrace::grid::fields(next),
//                                                                 .reads = {},
//                                                                 .neighbours = headrace::grid::fields(now),
//                                                                 .reach = headrace::grid::layers(1, 1)}};
//       static constexpr std::array kSwaps{headrace::grid::Swap{now, next}};
//       template <int PhaseNumber, class Cell>
//       HEADRACE_HD void update(Cell cell) const {
//         cell.set(next, (cell.get(now, -1, 0, 0) + cell.get(now, 1, 0, 0)) / 2);
//       }
//     };
//     headrace::grid::StencilProgram spread = headrace::grid::make_stencil(Spread{});

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "headrace/base/detail/type_key.hpp"
#include "headrace/device/kernel.hpp"
#include "headrace/grid/detail/cell.hpp"
#include "headrace/grid/detail/phase.hpp"
#include "headrace/grid/detail/phase_kernel.hpp"
#include "headrace/grid/detail/region.hpp"
#include "headrace/grid/detail/stencil_checks.hpp"
#include "headrace/grid/detail/steps_kernel.hpp"
#include "headrace/grid/detail/sweep.hpp"
#include "headrace/grid/detail/sweep_kernel.hpp"
#include "headrace/grid/detail/swept_by.hpp"

namespace headrace::grid {

/// The kernels of a pass that does several steps over memory; see sweep.hpp. Made by make_stencil().
struct SweepProgram {
  int steps = 1;                ///< Steps that a pass does.
  Kernel kernel;                ///< Arguments: the stencil, SweepPlaces, a SweepRegion.
  Kernel watched;               ///< The same, with a SweepWatch; only where the stencil has a watched field.
  std::vector<Swap> redirects;  ///< Fields that it stores in another's memory.
  std::vector<Swap> renamed;    ///< Fields that the kernel knows by each other's number.
  FieldSet loaded;              ///< Fields that the pass reads from memory.
  FieldSet stored;              ///< Fields that the pass writes to memory.
  Layers halo;                  ///< How far beyond what it stores it reads.
  /// The boxes of the domain that the pass leaves to single phases, because phases that are not swept have cells there
  /// or close by; without a value the pass cannot be used. A Simulation fills it in.
  std::optional<std::vector<Box>> patches;
};

/// A stencil with its type erased: what a Simulation runs. Made by make_stencil().
struct StencilProgram {
  std::string name;                          ///< Stencil::kName.
  TypeKey value_type = TypeKey::of<void>();  ///< The type of values in fields.
  std::size_t value_bytes = 0;               ///< Size of a value: 4 or 8.
  int field_count = 0;                       ///< Fields of the stencil.
  std::vector<Phase> phases;                 ///< The phases of a step, in order.
  std::vector<Swap> swaps;                   ///< Fields that swap after each step.
  /// The boxes that each phase is restricted to, see Simulation::restrict(); without a value the phase runs everywhere.
  std::vector<std::optional<std::vector<Box>>> only;
  std::vector<Kernel> kernels;                 ///< One for each phase; arguments: the stencil, a FieldTable, a Region.
  Kernel resident;                             ///< Many steps of a part; arguments: the stencil, a ResidentView.
  std::vector<int> vectored;                   ///< The phases whose kernels take Region::vectors.
  std::vector<int> swept;                      ///< The phases that passes do; empty without passes.
  std::vector<SweepProgram> sweeps;            ///< The sweeps of 1, 2, ... steps.
  FieldSet overwritten;                        ///< Fields in which passes leave values of an earlier step.
  int spare_fields = 0;                        ///< Memory that passes need, in fields.
  std::optional<Swap> watched;                 ///< The watched field, and the field that it was before a step.
  TypeKey stencil_type = TypeKey::of<void>();  ///< The type of the stencil.
  /// The bytes of the stencil: one for all parts, or one for each part.
  std::vector<std::vector<std::byte>> stencils;
};

namespace detail {

/// The declarations of a stencil, and the bytes of one or several stencils in sequence.
struct StencilFacts {
  const char* name;
  TypeKey value_type;
  std::size_t value_bytes;
  int field_count;
  std::span<const Phase> phases;
  std::span<const Swap> swaps;
  std::span<const Kernel> kernels;
  Kernel resident;
  std::vector<int> vectored;
  std::vector<int> swept;
  std::vector<SweepProgram> sweeps;
  FieldSet overwritten;
  std::optional<Swap> watched;
  TypeKey stencil_type;
  std::span<const std::byte> stencils;
  std::size_t stencil_bytes;
};

/// Throws UsageError if there is no stencil, or if a phase or swap names a field that does not exist.
[[nodiscard]] StencilProgram make_program(const StencilFacts& facts);

template <class Stencil>
[[nodiscard]] constexpr std::span<const Swap> swaps_of() {
  if constexpr (requires { Stencil::kSwaps; }) {
    return Stencil::kSwaps;
  } else {
    return {};
  }
}

template <class Stencil, int... PhaseNumber>
[[nodiscard]] static std::array<Kernel, sizeof...(PhaseNumber)> phase_kernels(
    std::integer_sequence<int, PhaseNumber...>) {
  return {make_kernel<PhaseKernel<Stencil, PhaseNumber>, Stencil, FieldTable, Region>()...};
}

template <class Stencil>
[[nodiscard]] std::vector<int> vectored_phases() {
  std::vector<int> found;
  for (int phase = 0; phase < static_cast<int>(Stencil::kPhases.size()); ++phase) {
    if (is_vectored<Stencil>(phase)) found.push_back(phase);
  }
  return found;
}

template <class Stencil, int Steps>
[[nodiscard]] static SweepProgram sweep_of() {
  using Plan = Sweep<Stencil, Steps>;
  using By = SweptBy<Stencil>;
  static_assert(is_swept_alike<Stencil, Steps>(), "the passes of SweptBy differ from those of the stencil");
  constexpr auto kRedirects = Plan::redirects();
  SweepProgram made{.steps = Steps,
                    .kernel = make_kernel<SweepKernel<By, Steps>, By, SweepPlaces, SweepRegion, SweepChain>(),
                    .watched = {},
                    .redirects = {},
                    .renamed = {swept_fields<Stencil>().begin(), swept_fields<Stencil>().end()},
                    .loaded = Plan::loaded(),
                    .stored = Plan::stored(),
                    .halo = Plan::halo(),
                    .patches = {}};
  if constexpr (requires { Stencil::kWatched; }) {
    made.watched = make_kernel<SweepKernel<By, Steps, true>, By, SweepPlaces, SweepRegion, SweepChain, SweepWatch>();
  }
  made.redirects.assign(kRedirects.swaps.begin(), kRedirects.swaps.begin() + kRedirects.count);
  return made;
}

template <class Stencil>
[[nodiscard]] constexpr std::optional<Swap> watched_of() {
  if constexpr (requires { Stencil::kWatched; }) {
    for (const Swap& swap : Stencil::kSwaps) {
      if (swap.first == Stencil::kWatched) return swap;
      if (swap.second == Stencil::kWatched) return Swap{swap.second, swap.first};
    }
  }
  return std::nullopt;
}

/// More than four steps take more registers than a thread has.
template <class Stencil>
static void add_sweeps(StencilFacts& facts) {
  if constexpr (sweepable<Stencil>()) {
    facts.swept.assign(Stencil::kSwept.begin(), Stencil::kSwept.end());
    facts.sweeps = {sweep_of<Stencil, 1>(), sweep_of<Stencil, 2>(), sweep_of<Stencil, 4>()};
    facts.overwritten = Sweep<Stencil, 1>::overwritten();
  }
}

template <class Stencil>
[[nodiscard]] static StencilProgram program_of(std::span<const Stencil> one_or_one_a_part) {
  const auto kernels =
      phase_kernels<Stencil>(std::make_integer_sequence<int, static_cast<int>(Stencil::kPhases.size())>{});
  StencilFacts facts{
      .name = Stencil::kName,
      .value_type = TypeKey::of<typename Stencil::Value>(),
      .value_bytes = sizeof(typename Stencil::Value),
      .field_count = Stencil::kFields,
      .phases = Stencil::kPhases,
      .swaps = swaps_of<Stencil>(),
      .kernels = kernels,
      .resident = make_kernel<StepsKernel<Stencil>, Stencil, ResidentView>(),
      .vectored = vectored_phases<Stencil>(),
      .swept = {},
      .sweeps = {},
      .overwritten = {},
      .watched = watched_of<Stencil>(),
      .stencil_type = TypeKey::of<Stencil>(),
      .stencils = std::as_bytes(one_or_one_a_part),
      .stencil_bytes = sizeof(Stencil),
  };
  add_sweeps<Stencil>(facts);
  return make_program(facts);
}

}  // namespace detail

/// Erases the type of a stencil: one for all parts, or one for each part if stencils point to memory of a part's
/// device. The user writes (see docs/grid.md):
///
///     template <class T> struct Blur {
///       static constexpr const char* kName = "blur";
///       using Value = T;                               // of 4 or 8 bytes
///       enum Fields : int { now, next };
///       static constexpr int kFields = 2;  // how many those are
///       static constexpr std::array kPhases{
///           Phase{.writes = fields(next), .reads = fields(now), .neighbours = fields(now), .reach = layers(1, 1)}};
///       static constexpr std::array kSwaps{Swap{now, next}};  // optional
///       T share;  // whatever else it needs, trivially copyable
///       template <int PhaseNumber, class Cell> HEADRACE_HD void update(Cell cell) const {
///         cell.set(next, cell.get(now) + share * (cell.get(now, -1, 0, 0) + cell.get(now, 1, 0, 0)));
///       }
///     };
///
/// A call that nvcc compiles (in a .cu file) adds kernels for CUDA devices. `static` for the reason that make_kernel()
/// is.
template <class Stencil>
[[nodiscard]] static StencilProgram make_stencil(std::span<const Stencil> one_or_one_a_part) {
  if constexpr (detail::is_stencil<Stencil>()) {
    return detail::program_of(one_or_one_a_part);
  } else {
    return {};
  }
}

/// The same with one stencil for all parts.
template <class Stencil>
[[nodiscard]] static StencilProgram make_stencil(const Stencil& stencil) {
  return make_stencil(std::span<const Stencil>(&stencil, 1));
}

}  // namespace headrace::grid
