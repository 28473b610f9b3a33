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

/// Values that are written differently in Python: durations are seconds (float), a device may be its name.
namespace headrace::python {

[[nodiscard]] inline double to_seconds(Duration duration) noexcept {
  return std::chrono::duration<double>(duration).count();
}

/// Throws UsageError "<name> must be seconds ..., not <value>" unless 0 <= seconds <= 10^9.
[[nodiscard]] Duration to_duration(const char* name, double seconds);

/// The time so many seconds from now; the end of time where there is none.
[[nodiscard]] Time to_deadline(std::optional<double> seconds);

using DeviceOrName = std::variant<Device, std::string>;

/// The exception of Python that an exception of Headrace or of starting a thread becomes. Throws any other again.
[[nodiscard]] nanobind::object error_object(const std::exception_ptr& thrown);

/// Throws UsageError for a name that no device has.
[[nodiscard]] Device to_device(const DeviceOrName& device);

}  // namespace headrace::python
