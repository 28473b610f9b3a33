#include "headrace/grid/stencils/heat.hpp"

#include <fmt/format.h>

#include "grid/stencils/programs.hpp"
#include "headrace/base/error.hpp"

namespace headrace::grid {

template <class T>
StencilProgram heat(int dimensions, T factor) {
  if (dimensions < 1 || dimensions > 3) {
    throw UsageError(fmt::format("heat spreads in 1 to 3 dimensions, not in {}", dimensions));
  }
  const T most = T{1} / static_cast<T>(2 * dimensions);
  if (!(factor >= T{0} && factor <= most)) {
    throw UsageError(
        fmt::format("a factor (diffusivity * time step / spacing^2) of {} is not stable in {} dimensions: "
                    "at most {}; make the time step shorter",
                    factor, dimensions, most));
  }
  return detail::heat_program(dimensions, factor);
}

template StencilProgram heat(int, float);
template StencilProgram heat(int, double);

}  // namespace headrace::grid
