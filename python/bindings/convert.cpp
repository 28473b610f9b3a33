#include "convert.hpp"

#include <fmt/format.h>

namespace headrace::python {

Duration to_duration(const char* name, double seconds) {
  constexpr double kMost = 1e9;
  const bool in_range = seconds >= 0 && seconds <= kMost;  // false for NaN
  if (!in_range) {
    throw UsageError(fmt::format("{} must be 0 to {:.0e} seconds, not {}", name, kMost, seconds));
  }
  return Duration{static_cast<std::int64_t>(seconds * 1e9)};
}

Time to_deadline(std::optional<double> seconds) {
  return seconds ? SteadyClock::now() + to_duration("deadline", *seconds) : Time::max();
}

Device to_device(const DeviceOrName& device) {
  if (const auto* name = std::get_if<std::string>(&device)) return Device::parse(*name);
  return std::get<Device>(device);
}

}  // namespace headrace::python
