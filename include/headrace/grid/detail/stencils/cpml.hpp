#pragma once

#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/grid/detail/stencils/inlined.hpp"

/// The part of an absorbing layer that runs in each of its cells (convolutional perfectly matched layer; Roden and
/// Gedney, Microwave and Optical Technology Letters 27, 2000). fdtd_coefficients.hpp defines the numbers.
namespace headrace::grid {

/// One axis of a layer at either the electric or the magnetic positions: tables over that axis of the whole domain, in
/// device memory.
template <class Value>
struct CpmlFactors {
  const Value* b = nullptr;
  const Value* c = nullptr;
  const Value* k = nullptr;
};

/// Advances psi by one difference of neighbours at `place` of the axis, and returns what the layer adds to it.
template <class Value, class Cell>
[[nodiscard]] HEADRACE_HD HEADRACE_INLINED Value cpml_term(Cell cell, int psi, const CpmlFactors<Value>& factors,
                                                           std::int64_t place, Value difference) {
  const Value advanced = factors.b[place] * cell.get(psi) + factors.c[place] * difference;
  cell.set(psi, advanced);
  return factors.k[place] * difference + advanced;
}

}  // namespace headrace::grid
