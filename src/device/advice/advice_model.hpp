#pragma once

#include <vector>

#include "advice_traffic.hpp"
#include "headrace/device/advice.hpp"

/// The model behind advise(): for each strategy, the seconds of a pass and of the preparation before the first one.
///
/// A pass consists of one or more parts (advice_traffic.hpp), processed in sequence. Of a part's B bytes, D lie on the
/// device and H on the host, B = D + H, from the shares of its pages and their places.
///
/// In order, a span:   max(D / device, H / link) + (1 - overlap) * min(D / device, H / link)
///   Blocks that wait for the link leave the multiprocessors to other blocks, so the shorter time hides behind the
///   longer one (overlap 1) if pages are dealt evenly. If pages are placed by heat, pages of equal heat form one run on
///   the device and one on the host, and a grid that traverses them together uses first one, then the other (overlap
///   0). If both are one memory, the times add up.
/// At random, a span:  max(D / device_random, H / link_random, requests in flight)
///   Each warp waits for one piece at a time. That is a closed network of two stations, device memory and link. With
///   many warps it runs at its bottleneck (Denning and Buzen, "The Operational Analysis of Queueing Network Models",
///   1978). With few it is bound by latency: (D * device_latency + H * link_latency) / in_flight_bytes.
///   Beyond the host bytes that address translation covers, link_random drops: accesses within its reach come at
///   link_random, the others at link_beyond_reach of that.
///   The cache serves its share of hits of accesses to rows that fit in it, at the cache's rate.
/// On demand, fits:    as a span on the device; first touches cost bytes / faults once.
/// On demand, beyond:  in order, the driver evicts least-recently-used pages just before they are needed again, so
/// every
///   page faults in every pass: distinct bytes / (faults * eviction). Later sweeps of a part that fits find it there.
///   At random, every access outside the budget's pages faults and brings fault_bytes.
/// Preparation:        the device's pages are allocated, mapped and filled over the link. The host allocates and fills
///   host pages of a span, and all managed memory before any of it moves. Zero-copy needs nothing if the data already
///   lies in pinned memory. Data that the kernel overwrites is not filled. The time is divided by reuse.
namespace headrace::detail {

/// Whether each page lies on the device; otherwise it lies on the host.
using OnDevice = std::vector<bool>;

/// The input of a forecast.
struct ModelInput {
  const AccessProfile& profile;
  const MemoryRates& rates;
  const AdviceConstants& constants;
  const std::vector<Traffic>& parts;
  bool even = true;  ///< All pages are equally hot.
};

/// Forecast of `strategy` with this placement of pages. `refused` is set if the strategy cannot be used.
[[nodiscard]] StrategyForecast forecast(Strategy strategy, const ModelInput& input, const OnDevice& on_device);

}  // namespace headrace::detail
