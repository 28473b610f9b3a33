#pragma once

// advise() chooses where the data of a kernel should lie when it may not fit the device: in device memory, on the host,
// or spread over both. It predicts from how the kernel uses the data and from the rates of the machine.
//
//     headrace::Device device = headrace::Device::parse("best");
//     headrace::AccessProfile profile;
//     profile.pattern = headrace::AccessPattern::zipf_rows;
//     profile.bytes = std::size_t{100} << 30;
//     profile.budget_bytes = std::size_t{60} << 30;
//     headrace::Advice advice = headrace::advise(device, profile, headrace::memory_rates_of(device));
//     std::printf("%s\n%s\n", advice.because.c_str(), advice.cpp.c_str());

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/device/detail/access.hpp"
#include "headrace/device/detail/memory_rates.hpp"
#include "headrace/device/device.hpp"
#include "headrace/device/placement.hpp"

namespace headrace {

/// How a kernel uses its data, as far as that determines where the data should lie.
struct AccessProfile {
  /// How the kernel goes through the data. With `heat`, only whether the order is sequential or random matters.
  AccessPattern pattern = AccessPattern::grid_stride;
  AccessOperation operation = AccessOperation::read;  ///< What the kernel does with each element.
  std::size_t bytes = 0;                              ///< Bytes of data.
  std::size_t budget_bytes = 0;        ///< Device memory for it. The factor of NVIDIA 2021 is bytes / budget_bytes.
  double reuse = 100;                  ///< Passes over the data; infinity ignores the cost of preparation.
  double exponent = 1.0;               ///< zipf_rows: row of rank r is drawn with probability 1 / r^exponent.
  std::size_t row_bytes = 512;         ///< zipf_rows: bytes of a row.
  RowOrder order = RowOrder::ordered;  ///< zipf_rows: how ranks are assigned to rows.
  double hot_sweeps = 10;              ///< hot_tenth: sweeps of the hot tenth for each sweep of everything.
  /// Accesses to each page as counted by PageHeat; empty for those that the pattern implies.
  std::vector<std::uint64_t> heat;
  /// The data is in pinned host memory already, so zero-copy needs no preparation.
  bool pinned_already = true;

  /// The oversubscription factor, bytes / budget_bytes.
  [[nodiscard]] double factor() const noexcept {
    return static_cast<double>(bytes) / static_cast<double>(budget_bytes);
  }
  /// The pages of kPageBytes that the data takes.
  [[nodiscard]] std::size_t page_count() const noexcept { return bytes / kPageBytes + (bytes % kPageBytes != 0); }
  /// Throws UsageError that names the first value out of range.
  void check() const;
};

/// What the model assumes besides the rates: numbers that no single measurement yields, fitted to whole grids of
/// measurements (bench/advice_grid.py --fit).
struct AdviceConstants {
  double dealt_overlap = 1;        ///< Share of the shorter of device and link time that dealt pages hide.
  double front_overlap = 0;        ///< The same if pages of equal heat are one piece on each side.
  double span_link = 1;            ///< Rate of a span's host pages, as a share of that of plain pinned memory.
  double managed_link = 0.97;      ///< The same for managed memory that is kept on the host.
  double managed_device = 1;       ///< Rate of managed memory on the device, as a share of that of a span.
  double eviction = 0.5;           ///< Share of the fault rate that is left if every arriving page evicts one.
  double fault_bytes = 2097152;    ///< Bytes moved for a random access that faults.
  double device_cache_hits = 0.8;  ///< Share of accesses to rows that fit in the cache which the cache serves.
  double host_cache_hits = 0;      ///< The same for rows in host memory.
  double simpler = 0.01;           ///< A simpler strategy is chosen if it is this close to the best.
};

/// The predicted performance of one strategy.
struct StrategyForecast {
  Strategy strategy = Strategy::zero_copy;  ///< The strategy that is predicted.
  std::string refused;                      ///< Why it cannot be used here; empty if it can.
  double pass_seconds = 0;                  ///< Once through the data.
  double prepare_seconds = 0;   ///< Before the first pass, beyond what all strategies need, and first touches.
  double host_share = 0;        ///< The share of the bytes of a pass that cross the link.
  double bytes_per_second = 0;  ///< Bytes touched per second over all passes, including preparation.
  /// The roof as a rate, from max(device bytes / memory bandwidth, host bytes / link bandwidth), or their sum if both
  /// are one memory.
  double roof_per_second = 0;
};

/// Where to put the data.
struct Advice {
  Strategy strategy = Strategy::zero_copy;              ///< The choice.
  Placement placement = Placement::all(Place::host());  ///< For a Span; the nearest one if the strategy uses none.
  std::vector<StrategyForecast> forecasts;  ///< The forecast of every strategy, the best first; refused ones last.
  std::string because;                      ///< The reason, in words.
  std::string cpp;                          ///< The choice as C++ code.
  std::string python;                       ///< The choice as Python code.
};

/// Chooses strategy and placement for data on `device` with the use that `profile` describes, by a model of each
/// strategy at these rates (src/device/advice/advice_model.hpp has its formulas). Uses no device. Throws as
/// AccessProfile::check() does.
[[nodiscard]] Advice advise(Device device, const AccessProfile& profile, const MemoryRates& rates,
                            const AdviceConstants& constants = {});

}  // namespace headrace
