#pragma once

#include "headrace/device/device.hpp"

namespace headrace::operators {

/// Bytes per second at which a kernel on `reader` copies data on pages of `owner` to its own memory: the upper limit
/// for a product whose x is there. The median of several copies of 256 MiB (CPU devices: 32 MiB), whose results are
/// checked. Throws as Span does, and DeviceError if the copied bytes are wrong.
[[nodiscard]] double measure_gather(Device reader, Device owner);

}  // namespace headrace::operators
