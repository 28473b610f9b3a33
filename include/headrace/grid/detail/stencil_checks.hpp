#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "headrace/grid/detail/cell.hpp"
#include "headrace/grid/detail/phase.hpp"

/// Checks a stencil before its kernels are compiled, so that a mistake gives one message instead of an error in each
/// kernel.
namespace headrace::grid::detail {

template <class Stencil>
concept DescribesItself = requires {
  { Stencil::kName } -> std::convertible_to<const char*>;
  sizeof(typename Stencil::Value);
  { Stencil::kFields } -> std::convertible_to<int>;
  { Stencil::kPhases.size() } -> std::convertible_to<std::size_t>;
};

template <class Stencil, int PhaseNumber>
concept UpdatesIn =
    requires(const Stencil stencil, Cell<Stencil, PhaseNumber> cell) { stencil.template update<PhaseNumber>(cell); };

template <class Stencil, int... PhaseNumber>
[[nodiscard]] consteval bool updates_in_all(std::integer_sequence<int, PhaseNumber...> /*phases*/) {
  return (UpdatesIn<Stencil, PhaseNumber> && ...);
}

/// Whether the phases name only existing fields.
template <class Stencil>
[[nodiscard]] consteval bool has_its_fields() {
  for (const Phase& phase : Stencil::kPhases) {
    const FieldSet named = phase.writes | phase.reads | phase.neighbours;
    if (!named.within(fields_from(0, Stencil::kFields))) return false;
  }
  return true;
}

template <class Stencil>
[[nodiscard]] consteval bool keeps_phases_apart() {
  for (const Phase& phase : Stencil::kPhases) {
    if (!(phase.writes & phase.neighbours).empty()) return false;
  }
  return true;
}

/// Fails to compile, with a message that says why, if Stencil is not a stencil. Returns false then.
template <class Stencil>
[[nodiscard]] consteval bool is_stencil() {
  static_assert(DescribesItself<Stencil>, "a stencil has kName, Value, kFields and kPhases; see make_stencil()");
  if constexpr (DescribesItself<Stencil>) {
    using Value = typename Stencil::Value;
    constexpr bool kFieldsFit = Stencil::kFields >= 1 && Stencil::kFields <= kFieldsMax;
    static_assert(std::is_trivially_copyable_v<Stencil>, "a stencil is a kernel argument, copied bytewise");
    static_assert(alignof(Stencil) <= alignof(std::max_align_t), "a stencil is kept at 16-byte alignment at most");
    static_assert(sizeof(Value) == 4 || sizeof(Value) == 8, "values have 4 or 8 bytes");
    static_assert(kFieldsFit, "a stencil has 1 to 64 fields (kFields)");
    if constexpr (kFieldsFit) {
      static_assert(has_its_fields<Stencil>(), "a phase names a field that kFields does not count");
      static_assert(keeps_phases_apart<Stencil>(),
                    "a phase reads at neighbours what it writes: make it two phases, or two fields that are swapped");
      constexpr bool kUpdates =
          updates_in_all<Stencil>(std::make_integer_sequence<int, static_cast<int>(Stencil::kPhases.size())>{});
      static_assert(kUpdates,
                    "a stencil updates a cell by template <int PhaseNumber, class Cell> HEADRACE_HD void "
                    "update(Cell cell) const; see make_stencil()");
      return kUpdates && std::is_trivially_copyable_v<Stencil> && has_its_fields<Stencil>() &&
             keeps_phases_apart<Stencil>();
    }
  }
  return false;
}

}  // namespace headrace::grid::detail
