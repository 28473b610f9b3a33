#pragma once

#include "headrace/grid/fdtd.hpp"

namespace headrace::grid {

/// The options, unchanged. Throws UsageError for those that are out of range without regard to devices and layers.
[[nodiscard]] FdtdOptions checked(FdtdOptions options);

/// The options with all cores of a CPU device (see over_cores()), if that is the only device and they leave the parts
/// and the steps between exchanges open.
[[nodiscard]] FdtdOptions with_all_cores(FdtdOptions options);

}  // namespace headrace::grid
