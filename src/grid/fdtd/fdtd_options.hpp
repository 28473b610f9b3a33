#pragma once

#include "headrace/grid/fdtd.hpp"

namespace headrace::grid {

/// The options, unchanged. Throws UsageError for those that are out of range without regard to devices and layers.
[[nodiscard]] FdtdOptions checked(FdtdOptions options);

}  // namespace headrace::grid
