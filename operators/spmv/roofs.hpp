#pragma once

#include "headrace/device/device.hpp"

namespace headrace::operators {

/// Bytes per second at which a kernel on `reader` copies to its own memory what lies on pages of `owner`: the roof of a
/// product whose x lies there. The median of several copies of 256 MiB (CPU devices: 32 MiB), checked for having
/// arrived. Throws as Span does, and DeviceError when the bytes are not the ones that were there.
[[nodiscard]] double measure_gather(Device reader, Device owner);

}  // namespace headrace::operators
