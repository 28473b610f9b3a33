#include "headrace/grid/detail/box.hpp"

#include <fmt/format.h>

namespace headrace::grid {

std::string to_string(const Box& box) {
  return fmt::format("[{}, {}) x [{}, {}) x [{}, {})", box.low[0], box.high[0], box.low[1], box.high[1], box.low[2],
                     box.high[2]);
}

std::string to_string(const Extent& extent) { return fmt::format("{} x {} x {}", extent.nx, extent.ny, extent.nz); }

}  // namespace headrace::grid
