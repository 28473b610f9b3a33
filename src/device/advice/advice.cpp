#include "headrace/device/advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "advice_model.hpp"
#include "advice_words.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"

namespace headrace {

namespace {

using detail::ModelInput;
using detail::OnDevice;

/// No machine holds more data than this, nor the list of its pages.
constexpr std::size_t kMostBytes = 16384 * kGiB;

/// The strategies, simplest first; a tie goes to the simpler one.
constexpr std::array kSimplestFirst{Strategy::zero_copy, Strategy::interleaved, Strategy::by_budget,
                                    Strategy::prefetched, Strategy::on_demand};

/// The placement that a Span would use for a strategy.
Placement placement_of(Strategy strategy, Device device, const ModelInput& input,
                       const std::vector<std::uint64_t>& heat) {
  const std::size_t budget = input.profile.budget_bytes;
  if (strategy == Strategy::zero_copy) return Placement::all(Place::host());
  if (input.profile.bytes <= budget) return Placement::all(Place::on(device));
  const bool by_heat = (strategy == Strategy::by_budget || strategy == Strategy::on_demand) && !input.even;
  return by_heat ? Placement::budget(device, budget, heat) : Placement::budget(device, budget);
}

OnDevice on_device(const Placement& placement, std::size_t page_count) {
  OnDevice near(page_count);
  const std::vector<Place> places = placement.pages(page_count);
  std::transform(places.begin(), places.end(), near.begin(), [](const Place& place) { return !place.is_host(); });
  return near;
}

bool better(const StrategyForecast& a, const StrategyForecast& b) {
  if (a.refused.empty() != b.refused.empty()) return a.refused.empty();
  return a.bytes_per_second > b.bytes_per_second;
}

/// Sorts the best first, but puts a simpler strategy that is as good before it.
void order(std::vector<StrategyForecast>& forecasts, double simpler) {
  std::stable_sort(forecasts.begin(), forecasts.end(), better);
  const double enough = forecasts.front().bytes_per_second * (1 - simpler);
  for (const Strategy strategy : kSimplestFirst) {
    const auto found = std::find_if(forecasts.begin(), forecasts.end(), [&](const StrategyForecast& one) {
      return one.strategy == strategy && one.refused.empty() && one.bytes_per_second >= enough;
    });
    if (found == forecasts.end()) continue;
    std::rotate(forecasts.begin(), found, found + 1);
    return;
  }
}

void require(bool holds, const std::string& message) {
  if (!holds) throw UsageError("access profile: " + message);
}

}  // namespace

void AccessProfile::check() const {
  require(bytes > 0, "bytes must be above 0");
  require(bytes <= kMostBytes,
          fmt::format("{} of data exceed the limit of {}", format_bytes(bytes), format_bytes(kMostBytes)));
  require(budget_bytes > 0, "budget_bytes must be above 0");
  require(reuse > 0, fmt::format("reuse must be above 0, not {}", reuse));
  require(std::isfinite(exponent) && exponent >= 0 && exponent <= 16,
          fmt::format("exponent must be 0 to 16, not {}", exponent));
  require(row_bytes > 0, "row_bytes must be above 0");
  require(std::isfinite(hot_sweeps) && hot_sweeps >= 0,
          fmt::format("hot_sweeps must be finite and at least 0, not {}", hot_sweeps));
  require(heat.empty() || heat.size() == page_count(),
          fmt::format("{} of data have {} pages, but heat has counts for {}", format_bytes(bytes), page_count(),
                      heat.size()));
}

Advice advise(Device device, const AccessProfile& profile, const MemoryRates& rates, const AdviceConstants& constants) {
  profile.check();
  const std::vector<detail::Traffic> parts = detail::traffic_of(profile, rates.cache_bytes);
  const std::vector<std::uint64_t> heat = profile.heat.empty() ? detail::heat_of(parts) : profile.heat;
  const bool even = std::adjacent_find(heat.begin(), heat.end(), std::not_equal_to<>()) == heat.end();
  const ModelInput input{.profile = profile, .rates = rates, .constants = constants, .parts = parts, .even = even};
  Advice advice;
  for (const Strategy strategy : kSimplestFirst) {
    const Placement placement = placement_of(strategy, device, input, heat);
    advice.forecasts.push_back(detail::forecast(strategy, input, on_device(placement, profile.page_count())));
  }
  order(advice.forecasts, constants.simpler);
  advice.strategy = advice.forecasts.front().strategy;
  advice.placement = placement_of(advice.strategy, device, input, heat);
  advice.because = detail::because(profile, rates, advice.forecasts);
  advice.cpp = detail::cpp_code(profile, advice.strategy, device);
  advice.python = detail::python_code(profile, advice.strategy, device);
  return advice;
}

}  // namespace headrace
