#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/detail/clock.hpp"
#include "headrace/device/detail/access.hpp"
#include "headrace/device/device.hpp"
#include "headrace/device/placement.hpp"

namespace headrace::measure {

/// Bytes per second at which a kernel goes through memory in order, touching each byte once with one operation: the
/// best of several launch shapes. A byte that is read and written counts once, here and in all counts of touched bytes.
struct AccessRoofs {
  AccessOperation operation = AccessOperation::read;
  double on_device = 0;  ///< Memory of the device.
  double over_link = 0;  ///< Mapped host memory.
};

/// Measures the roofs now, over at most `bytes` bytes of each memory. Throws DeviceError if there is no room.
[[nodiscard]] AccessRoofs measure_access_roofs(Device device, AccessOperation operation, std::size_t bytes = kGiB);

/// One measurement.
struct OversubscriptionCell {
  AccessPattern pattern = AccessPattern::grid_stride;
  RowOrder rows = RowOrder::ordered;  ///< Only for zipf_rows.
  AccessOperation operation = AccessOperation::read;
  Strategy strategy = Strategy::interleaved;
  double factor = 1.0;  ///< Bytes of data over bytes of the budget.
  /// The size of the page that random_warp draws. Otherwise the size of the pages that prefetched splits and by_budget
  /// places by heat: a page of a span, or a smaller one of managed memory.
  std::size_t page_bytes = kPageBytes;
  std::uint32_t threads = 256;  ///< Threads per block.
  bool synchronised = false;    ///< Threads of a block synchronise after every iteration of the loop.
  friend bool operator==(const OversubscriptionCell&, const OversubscriptionCell&) = default;
};

/// The cells to measure: every meaningful combination. Page sizes vary where they apply (random_warp, prefetched, and
/// by_budget where there is heat), row orders with zipf_rows.
struct OversubscriptionOptions {
  std::vector<AccessPattern> patterns{AccessPattern::grid_stride, AccessPattern::block_stride,
                                      AccessPattern::random_warp, AccessPattern::zipf_rows, AccessPattern::hot_tenth};
  std::vector<RowOrder> rows{RowOrder::ordered, RowOrder::scattered};
  std::vector<AccessOperation> operations{AccessOperation::read};
  std::vector<Strategy> strategies{Strategy::on_demand, Strategy::zero_copy, Strategy::interleaved,
                                   Strategy::prefetched, Strategy::by_budget};
  std::vector<double> factors{0.5, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0};
  std::vector<std::size_t> page_bytes{kPageBytes};  ///< Any of 4 KiB, 64 KiB and 2 MiB.
  std::vector<std::uint32_t> threads{256};          ///< Multiples of 32, up to 1,024.
  std::vector<bool> synchronised{false};
  /// Bytes that stand in for the device's memory, in whole pages; 0 means oversubscription_budget().
  std::size_t budget_bytes = 0;
  /// Blocks on each multiprocessor; 0 means as many as it holds, so that no block waits for another to end.
  std::uint32_t blocks_per_multiprocessor = 0;
  std::uint32_t runs = 5;  ///< Timed runs after a warm-up run; at least 3 for a cell that takes seconds.
  std::stop_token stop{};  ///< Ends the measurement after the current cell.
};

struct OversubscriptionResult {
  OversubscriptionCell cell;
  std::size_t data_bytes = 0;
  std::uint64_t touched_bytes = 0;  ///< Bytes touched by one run; every touch of a byte counts.
  std::uint64_t device_bytes = 0;   ///< The touched bytes that lie on the device,
  std::uint64_t host_bytes = 0;     ///< and those on the host. For on_demand, all cross the link and count on both.
  std::uint32_t blocks = 0;
  std::vector<Duration> times;  ///< The time of the kernel, on the device's clock. Empty if the cell was not run.
  double bytes_per_second = 0;  ///< Touched, at the median time.
  /// Touched over max(device bytes / memory bandwidth, host bytes / link bandwidth). Caches may beat it if rows are
  /// touched repeatedly.
  double roof = 0;
  /// Reads: the sum of all touched words was correct in every run. Writes: after the last run every touched word had
  /// the expected value, and every other word was unchanged.
  bool verified = false;
  std::string note;  ///< Why the cell was not run.
};

struct OversubscriptionReport {
  std::size_t budget_bytes = 0;
  std::vector<AccessRoofs> roofs;  ///< One per operation.
  double copy_to_device = 0;       ///< Bytes per second of the copy engine, which migrates pages; 0 if not needed.
  std::vector<OversubscriptionResult> cells;
  bool interrupted = false;
};

struct OversubscriptionProgress {
  std::size_t done = 0;  ///< Cells.
  std::size_t of = 0;
  OversubscriptionCell cell;  ///< The current cell; none while roofs are measured (done and of are 0).
};

/// The default budget: an eighth of the device's free memory, but at most a thirty-second of the host's, because a
/// factor of 4 takes three times as much host memory.
[[nodiscard]] std::size_t oversubscription_budget(Device device);

/// The cells that `options` describes, in the order in which they are reported. Throws UsageError that names an option
/// that is empty, out of range, or not finite.
[[nodiscard]] std::vector<OversubscriptionCell> oversubscription_cells(const OversubscriptionOptions& options);

/// Measures every cell, and its roofs in the same run. A cell that cannot run says why: on_demand beyond factor 1,
/// managed memory beyond what is free, or not enough memory. Throws UsageError as above, and for a budget below a page;
/// DeviceError if the device fails. `progress` is called from the calling thread.
[[nodiscard]] OversubscriptionReport measure_oversubscription(
    Device device, const OversubscriptionOptions& options,
    const std::function<void(const OversubscriptionProgress&)>& progress = {});

}  // namespace headrace::measure
