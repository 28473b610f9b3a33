#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>

#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <variant>

#include "headrace/base/detail/clock.hpp"
#include "headrace/base/error.hpp"
#include "headrace/device/device.hpp"

/// Converts values that Python writes differently: durations are seconds (float), and a device may be given by name.
namespace headrace::python {

[[nodiscard]] inline double to_seconds(Duration duration) noexcept {
  return std::chrono::duration<double>(duration).count();
}

/// Throws UsageError "<name> must be seconds ..., not <value>" unless 0 <= seconds <= 10^9.
[[nodiscard]] Duration to_duration(const char* name, double seconds);

/// The time `seconds` from now, or the end of time without a value.
[[nodiscard]] Time to_deadline(std::optional<double> seconds);

using DeviceOrName = std::variant<Device, std::string>;

/// The Python exception for an exception of Headrace or of starting a thread. Rethrows any other.
[[nodiscard]] nanobind::object error_object(const std::exception_ptr& thrown);

/// Throws UsageError if no device has this name.
[[nodiscard]] Device to_device(const DeviceOrName& device);

}  // namespace headrace::python
