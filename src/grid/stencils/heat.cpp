#include "headrace/grid/stencils/heat.hpp"

#include <fmt/format.h>

#include "grid/stencils/programs.hpp"
#include "headrace/base/error.hpp"

namespace headrace::grid {

template <class T>
StencilProgram heat(int dimensions, T factor) {
  if (dimensions < 1 || dimensions > 3) {
    throw UsageError(fmt::format("a heat stencil has 1 to 3 dimensions, not {}", dimensions));
  }
  const T most = T{1} / static_cast<T>(2 * dimensions);
  if (!(factor >= T{0} && factor <= most)) {
    throw UsageError(
        fmt::format("a factor (diffusivity * time step / spacing^2) of {} is not stable in {} dimensions: it must be 0 "
                    "to {}; use a shorter time step",
                    factor, dimensions, most));
  }
  return detail::heat_program(dimensions, factor);
}

template StencilProgram heat(int, float);
template StencilProgram heat(int, double);

}  // namespace headrace::grid
