#pragma once

#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/grid/detail/stencils/fdtd_media.hpp"

/// Dispersive media as the stencils see them. Each pole of a component of E has a memory, which the step advances
/// before it updates E; docs/decisions/0101-keep-one-value-for-each-pole-of-a-dispersive-medium.md derives the scheme.
namespace headrace::grid {

/// The most values of memory of a component of E: one for a real pole, two for a pair of complex ones.
inline constexpr int kPoleValuesMax = 14;

/// A pole: memory <- memory + decay * memory + gain * E. A real pole uses only the first entries; for a pair of complex
/// poles the entries are real and imaginary parts.
template <class Value>
struct alignas(16) FdtdPoleFactors {
  Value decay[2] = {};  ///< exp(-rate * time step) - 1.
  Value gain[2] = {};
};

/// The poles of the components of E that share a number, along x, y and z. A component without poles uses none of it.
template <class Value>
struct alignas(16) FdtdDispersive {
  std::int32_t first[3] = {};  ///< The first pole in FdtdDispersion::poles: real ones, then pairs.
  std::int32_t real[3] = {};   ///< The number of real poles.
  std::int32_t pairs[3] = {};  ///< The number of pairs of complex poles.
  Value change[3] = {};        ///< E <- E + change * E - memory before the curl of H is added.
};

/// The poles of a domain, indexed by each cell's number of the coefficients of E.
template <class Value>
struct FdtdDispersion {
  const FdtdDispersive<Value>* media = nullptr;
  const FdtdPoleFactors<Value>* poles = nullptr;
};

/// Advances the memories of one component in a cell, and subtracts from the component the part of the coming step's
/// polarisation current that does not follow from the change of E.
/// @param memory  the field of the component's first memory; the others follow `stride` fields apart
template <class Value, class Cell>
HEADRACE_HD inline void advance_poles(Cell cell, const FdtdDispersion<Value>& dispersion, std::uint32_t number,
                                      int along, int component, int memory, int stride) {
  const FdtdDispersive<Value>& its = dispersion.media[number];
  const std::int32_t real = its.real[along];
  const std::int32_t pairs = its.pairs[along];
  if (real + pairs == 0) return;
  const FdtdPoleFactors<Value>* pole = dispersion.poles + its.first[along];
  const Value e = cell.get(component);
  Value taken = 0;
  int field = memory;
  for (std::int32_t i = 0; i < real; ++i, ++pole, field += stride) {
    const Value before = cell.get(field);
    taken += before;
    cell.set(field, before + (pole->decay[0] * before + pole->gain[0] * e));
  }
  for (std::int32_t i = 0; i < pairs; ++i, ++pole, field += 2 * stride) {
    const Value re = cell.get(field);
    const Value im = cell.get(field + stride);
    taken += re;
    cell.set(field, re + (pole->decay[0] * re - pole->decay[1] * im + pole->gain[0] * e));
    cell.set(field + stride, im + (pole->decay[0] * im + pole->decay[1] * re + pole->gain[1] * e));
  }
  cell.set(component, e + (its.change[along] * e - taken));
}

}  // namespace headrace::grid
