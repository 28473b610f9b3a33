#pragma once

#include <string>

#include "headrace/device/advice.hpp"

namespace headrace::detail {

/// Why the first forecast was chosen: what the data is, what the choice does, and what the next best would do.
[[nodiscard]] std::string because(const AccessProfile& profile, const MemoryRates& rates,
                                  const std::vector<StrategyForecast>& forecasts);

/// Code for users to paste, for a strategy on a device.
[[nodiscard]] std::string cpp_code(const AccessProfile& profile, Strategy strategy, Device device);
[[nodiscard]] std::string python_code(const AccessProfile& profile, Strategy strategy, Device device);

}  // namespace headrace::detail
