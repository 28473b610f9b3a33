#include "advice_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "headrace/base/detail/bytes.hpp"

namespace headrace::detail {

namespace {

constexpr double kWarpBytes = 128;

/// Bytes of a part by location.
struct Split {
  double device = 0;
  double host = 0;
  double device_cached = 0;  ///< The bytes of `device` that the cache could serve.
  double host_cached = 0;
  double host_distinct = 0;  ///< Bytes of the host pages in use.
};

Split split(const Traffic& part, const OnDevice& on_device) {
  Split found;
  double used_pages = 0;
  double used_host_pages = 0;
  for (std::size_t page = 0; page < part.share.size(); ++page) {
    const double bytes = part.share[page] * part.bytes;
    const double cached = part.cached.empty() ? 0 : part.cached[page] * part.bytes;
    (on_device[page] ? found.device : found.host) += bytes;
    (on_device[page] ? found.device_cached : found.host_cached) += cached;
    if (bytes > 0) {
      used_pages += 1;
      used_host_pages += on_device[page] ? 0 : 1;
    }
  }
  if (used_pages > 0) found.host_distinct = part.distinct_bytes * used_host_pages / used_pages;
  return found;
}

/// How a strategy differs from a span whose pages are dealt evenly.
struct Manner {
  double overlap = 1;
  double device = 1;  ///< Share of the device's rates.
  double link = 1;    ///< Share of the link's rates.
};

Manner manner(Strategy strategy, const ModelInput& input) {
  const AdviceConstants& constants = input.constants;
  switch (strategy) {
    case Strategy::zero_copy: return {.overlap = 1, .device = 1, .link = 1};
    case Strategy::interleaved: return {.overlap = constants.dealt_overlap, .device = 1, .link = constants.span_link};
    case Strategy::by_budget: {
      const bool together = !input.even && input.profile.pattern != AccessPattern::block_stride;
      return {.overlap = together ? constants.front_overlap : constants.dealt_overlap,
              .device = 1,
              .link = constants.span_link};
    }
    case Strategy::on_demand:
    case Strategy::prefetched: break;
  }
  return {.overlap = constants.dealt_overlap, .device = constants.managed_device, .link = constants.managed_link};
}

double in_order_seconds(const Split& bytes, const ModelInput& input, const Manner& how) {
  const AccessOperation operation = input.profile.operation;
  const double device = bytes.device / (input.rates.device.of(operation) * how.device);
  const double link = bytes.host / (input.rates.link.of(operation) * how.link);
  if (input.rates.one_memory) return device + link;
  return std::max(device, link) + (1 - how.overlap) * std::min(device, link);
}

double random_seconds(const Split& bytes, const ModelInput& input, const Manner& how) {
  const MemoryRates& rates = input.rates;
  const AccessOperation operation = input.profile.operation;
  const double device_hits = bytes.device_cached * input.constants.device_cache_hits;
  const double host_hits = bytes.host_cached * input.constants.host_cache_hits;
  const double device_bytes = bytes.device - device_hits;
  const double host_bytes = bytes.host - host_hits;
  const double within = bytes.host_distinct > rates.link_reach_bytes ? rates.link_reach_bytes / bytes.host_distinct : 1;
  const double slowness = within + (1 - within) / rates.link_beyond_reach;
  const double device = device_bytes / (rates.device_random.of(operation) * how.device) +
                        (device_hits + host_hits) / std::max(rates.cache, rates.device_random.of(operation));
  const double link = host_bytes * slowness / (rates.link_random.of(operation) * how.link);
  if (rates.one_memory) return device + link;
  const double waiting =
      (device_bytes * rates.device_latency + host_bytes * rates.link_latency) / rates.in_flight_bytes;
  return std::max({device, link, waiting});
}

double part_seconds(const Traffic& part, const Split& bytes, const ModelInput& input, const Manner& how) {
  return part.random ? random_seconds(bytes, input, how) : in_order_seconds(bytes, input, how);
}

double fault_rate(const ModelInput& input) {
  if (is_random(input.profile.pattern)) return input.rates.faults.random;
  return input.profile.pattern == AccessPattern::block_stride ? input.rates.faults.block_stride
                                                              : input.rates.faults.grid_stride;
}

/// Bytes of one random access.
double piece_bytes(const AccessProfile& profile) {
  if (profile.pattern == AccessPattern::zipf_rows) return static_cast<double>(profile.row_bytes);
  return kWarpBytes;
}

/// Time on demand when the data exceeds the budget: `resident` are the pages that the budget keeps at best.
double thrashing_seconds(const ModelInput& input, const OnDevice& resident) {
  const OnDevice all(resident.size(), true);
  const double rate = fault_rate(input) * input.constants.eviction;
  const Manner how = manner(Strategy::on_demand, input);
  double seconds = 0;
  for (const Traffic& part : input.parts) {
    const double device = part_seconds(part, split(part, all), input, how);
    if (part.random) {
      const Split bytes = split(part, resident);
      const double moved = std::max(1.0, input.constants.fault_bytes / piece_bytes(input.profile));
      seconds += device + bytes.host * moved / rate;
    } else {
      const bool stays = part.distinct_bytes <= static_cast<double>(input.profile.budget_bytes);
      const double faulting = stays ? std::min(part.bytes, part.distinct_bytes) : part.bytes;
      seconds += faulting / rate + device * (1 - faulting / part.bytes);
    }
  }
  return seconds;
}

double preparation_seconds(Strategy strategy, const ModelInput& input, const OnDevice& on_device) {
  const AccessProfile& profile = input.profile;
  const MemoryRates& rates = input.rates;
  const auto pages = static_cast<double>(profile.page_count());
  const auto near = static_cast<double>(std::count(on_device.begin(), on_device.end(), true));
  const bool fill = profile.operation != AccessOperation::write;
  const double over_link = fill ? kPage / rates.prefetch : 0;
  const double by_host = fill ? kPage / rates.host_copy : 0;
  switch (strategy) {
    case Strategy::zero_copy: return profile.pinned_already ? 0 : pages * (rates.host_page + by_host);
    case Strategy::interleaved:
    case Strategy::by_budget:
      return near * (rates.device_page + over_link) + (pages - near) * (rates.host_page + by_host);
    case Strategy::prefetched: return pages * (rates.host_page + by_host) + near * over_link;
    case Strategy::on_demand: break;
  }
  const double first_touch = profile.bytes <= profile.budget_bytes ? pages * kPage / fault_rate(input) : 0;
  return pages * (rates.host_page + by_host) + first_touch;
}

std::string refusal(Strategy strategy, const ModelInput& input) {
  if (strategy != Strategy::on_demand && strategy != Strategy::prefetched) return {};
  if (!input.rates.managed) return "no managed memory with concurrent access";
  const auto& most = input.rates.managed_bytes;
  if (most && input.profile.bytes > *most) {
    return fmt::format("managed memory beyond the {} that are free could hang the device", format_bytes(*most));
  }
  return {};
}

}  // namespace

StrategyForecast forecast(Strategy strategy, const ModelInput& input, const OnDevice& on_device) {
  StrategyForecast found{.strategy = strategy, .refused = refusal(strategy, input)};
  const Manner how = manner(strategy, input);
  const AccessOperation operation = input.profile.operation;
  double touched = 0;
  double device = 0;
  double host = 0;
  for (const Traffic& part : input.parts) {
    const Split bytes = split(part, on_device);
    found.pass_seconds += part_seconds(part, bytes, input, how);
    touched += part.bytes;
    device += bytes.device;
    host += bytes.host;
  }
  if (strategy == Strategy::on_demand && input.profile.bytes > input.profile.budget_bytes) {
    found.pass_seconds = thrashing_seconds(input, on_device);
  }
  found.prepare_seconds = preparation_seconds(strategy, input, on_device);
  found.host_share = host / touched;
  const double prepare = std::isinf(input.profile.reuse) ? 0 : found.prepare_seconds / input.profile.reuse;
  found.bytes_per_second = touched / (found.pass_seconds + prepare);
  const double device_seconds = device / input.rates.device.of(operation);
  const double link_seconds = host / input.rates.link.of(operation);
  const double roof_seconds =
      input.rates.one_memory ? device_seconds + link_seconds : std::max(device_seconds, link_seconds);
  found.roof_per_second = touched / roof_seconds;
  return found;
}

}  // namespace headrace::detail
