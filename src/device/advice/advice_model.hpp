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
///   Blocks that wait for the link leave the multiprocessors to those that do not, so the shorter time hides behind the
///   longer one (overlap 1) where pages are dealt evenly. Placed by heat, pages of the same heat lie in one piece on
///   the device and one on the host, and a grid that goes through them together uses first the one, then the other
///   (overlap 0). With one memory for both the times add up.
/// At random, a span:  max(D / device_random, H / link_random, requests in flight)
///   Each warp waits for one piece at a time: a closed network of two stations, the device's memory and the link, which
///   with many warps runs at its bottleneck (Denning and Buzen, "The Operational Analysis of Queueing Network Models",
///   1978), and with few is bound by latency: (D * device_latency + H * link_latency) / in_flight_bytes.
///   Beyond the host bytes that address translation holds, link_random falls to a share of itself: accesses within
///   its reach come at link_random, the others at link_beyond_reach of that.
///   Accesses to rows that fit in the cache are served at the cache's rate, for the share that it hits.
/// On demand, fits:    as a span on the device; first touches cost bytes / faults once.
/// On demand, beyond:  in order, least-recently-used pages leave just before they are needed again, so every page
///   faults in every pass: distinct bytes / (faults * eviction); sweeps of a part that fits find it there after that.
///   At random, the share of accesses that the budget's pages do not take faults, and brings fault_bytes each time.
/// Preparation:        pages of the device are taken, mapped and filled over the link; host pages of a span are taken
///   and filled by the host, and so is all managed memory before any of it moves; zero-copy needs nothing where data
///   lies in pinned memory already. Data that the kernel overwrites is not filled. It is divided by reuse.
namespace headrace::detail {

/// For each page, whether it lies on the device or on the host.
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
