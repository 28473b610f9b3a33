#pragma once

#include "headrace/device/detail/memory_rates.hpp"

namespace headrace::measure {

/// Measures the rates of a device's and its host's memory for kernels: in order and at random, reading, writing and
/// both, in device memory and in mapped host memory; the copy engine; page faults if there is managed memory;
/// allocating and moving pages. Medians of several runs over data that does not fit in a cache. Rates that it does not
/// measure (latency, translation, cache) come from memory_rates_of(). Takes some tenths of a second. Throws DeviceError
/// if there is no room for 64 MiB on a CPU device, or 256 MiB on a CUDA device, twice.
[[nodiscard]] MemoryRates measure_memory_rates(Device device);

}  // namespace headrace::measure
