#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "headrace/grid/detail/phase.hpp"
#include "headrace/grid/detail/sweep.hpp"

/// A stencil may leave its passes to the kernels of another one of the same bytes, whose phases do the same with the
/// same fields. Kernels of passes take longer to compile than all others, and are then compiled once for both.
///
///   using SweptBy = Other;
///   static constexpr std::array kSweptFields{Swap{9, 4}};  // optional: its field 9 is the other's field 4
namespace headrace::grid {

template <class Stencil>
struct SweptByItself {
  using Type = Stencil;
};
template <class Stencil>
  requires requires { typename Stencil::SweptBy; }
struct SweptByItself<Stencil> {
  using Type = typename Stencil::SweptBy;
};

/// The stencil whose kernels do the passes of Stencil.
template <class Stencil>
using SweptBy = typename SweptByItself<Stencil>::Type;

/// The fields that these kernels know by another number.
template <class Stencil>
[[nodiscard]] constexpr std::span<const Swap> swept_fields() noexcept {
  if constexpr (requires { Stencil::kSweptFields; }) {
    return Stencil::kSweptFields;
  } else {
    return {};
  }
}

/// The same fields by the numbers that these kernels know them by.
template <class Stencil>
[[nodiscard]] constexpr FieldSet as_swept(FieldSet set) noexcept {
  for (const Swap& its : swept_fields<Stencil>()) {
    const bool first = set.contains(its.first);
    const bool second = set.contains(its.second);
    set.mask &= ~fields(its.first, its.second).mask;
    if (first) set = set | fields(its.second);
    if (second) set = set | fields(its.first);
  }
  return set;
}

/// Whether the kernels of SweptBy load, change and store what the passes of Stencil do.
template <class Stencil, int Steps>
[[nodiscard]] consteval bool is_swept_alike() {
  using Own = Sweep<Stencil, Steps>;
  using Its = Sweep<SweptBy<Stencil>, Steps>;
  if (sizeof(Stencil) != sizeof(SweptBy<Stencil>) || Own::kOps != Its::kOps || Own::halo() != Its::halo()) return false;
  constexpr auto kOwn = Own::ops();
  constexpr auto kIts = Its::ops();
  for (std::size_t i = 0; i < kOwn.size(); ++i) {
    if (kOwn[i].lag != kIts[i].lag || kOwn[i].reach != kIts[i].reach) return false;
    if (as_swept<Stencil>(kOwn[i].writes) != kIts[i].writes) return false;
    if (as_swept<Stencil>(kOwn[i].neighbours) != kIts[i].neighbours) return false;
  }
  return as_swept<Stencil>(Own::loaded()) == Its::loaded() && as_swept<Stencil>(Own::stored()) == Its::stored() &&
         as_swept<Stencil>(Own::overwritten()) == Its::overwritten();
}

}  // namespace headrace::grid
