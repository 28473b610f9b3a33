#include "measure/oversubscription.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <tuple>

#include "headrace/base/error.hpp"
#include "headrace/measure/detail/roofs.hpp"
#include "measure/access_bench.hpp"
#include "measure/strategy_memory.hpp"

namespace headrace::measure {

namespace {

constexpr std::uint32_t kRunsMin = 3;
constexpr Duration kLongCell = std::chrono::seconds(6);
/// The share of the machine's memory that the host part may take. The rest is for other processes.
constexpr double kHostShareMax = 0.75;

AccessWork work_of(const OversubscriptionCell& cell, std::uint32_t blocks_per_multiprocessor) noexcept {
  return {.pattern = cell.pattern,
          .operation = cell.operation,
          .rows = cell.rows,
          .page_bytes = cell.page_bytes,
          .threads = cell.threads,
          .synchronised = cell.synchronised,
          .blocks_per_multiprocessor = blocks_per_multiprocessor};
}

/// The heat by which by_budget places pages; cells of one kind share a span. Swept data has none: its pages are alike,
/// and if they are dealt evenly, both parts stream at the same time. The pages of random_warp are alike, too, but heat
/// keeps its host pages contiguous, so that fewer address translations cover them.
enum class HeatKind : std::uint8_t { none, even, hot_tenth, ordered, scattered };

HeatKind heat_kind(const OversubscriptionCell& cell) noexcept {
  if (cell.strategy != Strategy::by_budget) return HeatKind::none;
  switch (cell.pattern) {
    case AccessPattern::grid_stride:
    case AccessPattern::block_stride: return HeatKind::none;
    case AccessPattern::random_warp: return HeatKind::even;
    case AccessPattern::hot_tenth: return HeatKind::hot_tenth;
    case AccessPattern::zipf_rows: break;
  }
  return cell.rows == RowOrder::ordered ? HeatKind::ordered : HeatKind::scattered;
}

/// Bytes that are placed as one. For random_warp, page_bytes is the size of the drawn page.
std::size_t piece_bytes(const OversubscriptionCell& cell) noexcept {
  const bool by_heat = cell.strategy == Strategy::by_budget && cell.pattern != AccessPattern::random_warp;
  return by_heat || cell.strategy == Strategy::prefetched ? cell.page_bytes : kPageBytes;
}

bool is_managed(const OversubscriptionCell& cell) noexcept {
  return cell.strategy == Strategy::on_demand || cell.strategy == Strategy::prefetched ||
         piece_bytes(cell) < kPageBytes;
}

/// The key of a cell's memory, which also orders the measurements: cells with the same memory come together, reads
/// first.
auto memory_key(const OversubscriptionCell& cell) noexcept {
  return std::tuple(cell.factor, cell.strategy, piece_bytes(cell), heat_kind(cell));
}

double median_seconds(std::vector<Duration> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return std::chrono::duration<double>(*middle).count();
}

/// Pages of an interleaved span are alike for all patterns but this one: chance decides on which pages the most popular
/// rows lie. Such a cell is therefore measured with pages dealt forwards and backwards.
bool is_dealt_twice(const OversubscriptionCell& cell) noexcept {
  return cell.strategy == Strategy::interleaved && cell.pattern == AccessPattern::zipf_rows;
}

/// Whether device and host part stream at the same time, so that the cell can reach its roof.
bool can_reach_roof(const OversubscriptionCell& cell) noexcept {
  const bool sequential = cell.pattern == AccessPattern::grid_stride || cell.pattern == AccessPattern::block_stride;
  return sequential && (cell.strategy == Strategy::interleaved || cell.strategy == Strategy::by_budget);
}

/// Whether a cell could reach its roof but did not, so that its runs may have been disturbed.
bool falls_short(const OversubscriptionResult& result) noexcept {
  constexpr double kReached = 0.97;
  return can_reach_roof(result.cell) && !result.times.empty() && result.bytes_per_second < kReached * result.roof;
}

/// Combines two results of a cell as if each run had used one half of each.
void combine(OversubscriptionResult& one, OversubscriptionResult other) {
  std::ranges::sort(one.times);
  std::ranges::sort(other.times);
  one.times.resize(std::min(one.times.size(), other.times.size()));
  for (std::size_t i = 0; i < one.times.size(); ++i) one.times[i] = (one.times[i] + other.times[i]) / 2;
  one.device_bytes = (one.device_bytes + other.device_bytes) / 2;
  one.host_bytes = (one.host_bytes + other.host_bytes) / 2;
  one.verified = one.verified && other.verified;
  one.roof = 2 / (1 / one.roof + 1 / other.roof);
  one.bytes_per_second = static_cast<double>(one.touched_bytes) / median_seconds(one.times);
}

/// Measures cells in sequence, and keeps memory from one to the next if both can use it.
class Oversubscription {
 public:
  Oversubscription(Device device, const OversubscriptionOptions& options)
      : options_(options), bench_(device), budget_bytes_(budget(device, options)) {}

  [[nodiscard]] std::size_t budget_bytes() const noexcept { return budget_bytes_; }

  void measure_roofs(OversubscriptionReport& report) const {
    for (const AccessOperation operation : options_.operations) {
      const auto known = std::find_if(report.roofs.begin(), report.roofs.end(),
                                      [&](const AccessRoofs& roofs) { return roofs.operation == operation; });
      if (known != report.roofs.end()) continue;
      report.roofs.push_back(measure_access_roofs(bench_.device(), operation, budget_bytes_));
    }
    const auto& strategies = options_.strategies;
    if (std::find(strategies.begin(), strategies.end(), Strategy::on_demand) != strategies.end()) {
      report.copy_to_device = measure_memory_roofs(bench_.device()).to_device;
    }
  }

  /// @param runs  number of timed runs
  [[nodiscard]] OversubscriptionResult measure(const OversubscriptionCell& cell, const OversubscriptionReport& roofs,
                                               std::uint32_t runs) {
    OversubscriptionResult result;
    result.cell = cell;
    const std::size_t page_count = pages(cell);
    result.data_bytes = page_count * kPageBytes;
    result.note = refusal(cell, result.data_bytes);
    if (!result.note.empty()) return result;
    try {
      prepare(cell, page_count, false);
      run(result, page_count, roofs, runs);
      if (is_dealt_twice(cell) && result.host_bytes > 0) {
        OversubscriptionResult backwards = result;
        backwards.times.clear();
        prepare(cell, page_count, true);
        run(backwards, page_count, roofs, runs);
        combine(result, std::move(backwards));
      }
    } catch (const DeviceError& error) {
      if (error.code() != Errc::out_of_memory && error.code() != Errc::not_supported) throw;
      forget();
      result = {};
      result.cell = cell;
      result.data_bytes = page_count * kPageBytes;
      result.note = error.what();
    }
    return result;
  }

  /// Adds twice as many runs; all runs count.
  void measure_again(OversubscriptionResult& result, const OversubscriptionReport& roofs) {
    OversubscriptionResult more = measure(result.cell, roofs, 2 * options_.runs);
    if (more.times.empty()) return;
    more.times.insert(more.times.end(), result.times.begin(), result.times.end());
    more.verified = more.verified && result.verified;
    more.bytes_per_second = static_cast<double>(more.touched_bytes) / median_seconds(more.times);
    result = std::move(more);
  }

 private:
  [[nodiscard]] static std::size_t budget(Device device, const OversubscriptionOptions& options) {
    const std::size_t bytes = options.budget_bytes == 0 ? oversubscription_budget(device) : options.budget_bytes;
    return bytes / kPageBytes * kPageBytes;
  }

  [[nodiscard]] std::size_t pages(const OversubscriptionCell& cell) const noexcept {
    const std::size_t budget_pages = budget_bytes_ / kPageBytes;
    const auto wanted = std::llround(cell.factor * static_cast<double>(budget_pages));
    return std::max<std::size_t>(1, static_cast<std::size_t>(wanted));
  }

  /// Why a cell is not tried; empty if it is.
  [[nodiscard]] std::string refusal(const OversubscriptionCell& cell, std::size_t data_bytes) {
    if (cell.strategy == Strategy::on_demand && data_bytes > budget_bytes_) {
      return "with a budget below the GPU's memory nothing is evicted, so the figure would not show oversubscription; "
             "managed memory beyond the GPU's memory can hang it";
    }
    const std::size_t held = memory_ && memory_key(cell) == key_ && !backwards_ ? data_bytes : 0;
    if (!held) forget();
    const std::size_t free_bytes = bench_.device().memory().free_bytes;
    if (is_managed(cell) && !held && data_bytes > free_bytes) {
      return fmt::format("{} of managed memory would exceed the {} that are free, which can hang a GPU",
                         format_bytes(data_bytes), format_bytes(free_bytes));
    }
    const std::size_t all_on_host = cell.strategy == Strategy::zero_copy ? data_bytes : 0;
    const std::size_t on_host = std::max(all_on_host, data_bytes - std::min(data_bytes, budget_bytes_));
    const double most = kHostShareMax * static_cast<double>(Device::parse("cpu").memory().total_bytes);
    if (static_cast<double>(on_host) > most) {
      return fmt::format("{} on the host would exceed three quarters of its memory", format_bytes(on_host));
    }
    return {};
  }

  void forget() noexcept {
    memory_.reset();
    key_.reset();
  }

  /// Prepares and fills the memory that the cell needs.
  void prepare(const OversubscriptionCell& cell, std::size_t page_count, bool backwards) {
    if (!memory_ || memory_key(cell) != key_ || backwards != backwards_) {
      forget();
      StrategyPlan plan{.strategy = cell.strategy,
                        .page_count = page_count,
                        .budget_bytes = budget_bytes_,
                        .piece_bytes = piece_bytes(cell)};
      plan.backwards = backwards;
      if (heat_kind(cell) != HeatKind::none) {
        plan.heat = bench_.touches(work_of(cell, 0), page_count, plan.piece_bytes, DrawSeed::learnt).bytes;
      }
      memory_.emplace(bench_.stream(), plan);
      key_ = memory_key(cell);
      backwards_ = backwards;
      filled_ = false;
    }
    if (!filled_) bench_.fill(memory_->data(), page_count);
    filled_ = cell.operation == AccessOperation::read;
  }

  void run(OversubscriptionResult& result, std::size_t page_count, const OversubscriptionReport& roofs,
           std::uint32_t runs) {
    const AccessWork work = work_of(result.cell, options_.blocks_per_multiprocessor);
    const bool reads = work.operation == AccessOperation::read;
    const std::uint64_t expected = reads ? bench_.expected_sum(work, page_count) : 0;
    result.verified = true;
    result.blocks = bench_.blocks(work);
    Duration spent{};
    std::uint32_t number = 0;
    for (; number <= runs; ++number) {  // the first run warms up
      memory_->before_run(bench_.stream());
      const Duration time = bench_.time(work, memory_->data(), page_count, number + 1);
      if (reads && bench_.sum() != expected) result.verified = false;
      if (number > 0) result.times.push_back(time);
      spent += time;
      if (spent > kLongCell && result.times.size() >= kRunsMin) break;
    }
    const std::uint32_t last = std::min(number, runs) + 1;
    if (!reads) result.verified = bench_.wrong_units(work, memory_->data(), page_count, last) == 0;
    rate(result, work, page_count, roofs);
  }

  void rate(OversubscriptionResult& result, const AccessWork& work, std::size_t page_count,
            const OversubscriptionReport& roofs) {
    const Touches touches = bench_.touches(work, page_count, memory_->granule_bytes(), DrawSeed::timed);
    result.touched_bytes = std::accumulate(touches.bytes.begin(), touches.bytes.end(), std::uint64_t{0});
    const auto touched = static_cast<double>(result.touched_bytes);
    const Traffic traffic = memory_->traffic(touches);
    result.device_bytes = traffic.device_bytes;
    result.host_bytes = traffic.host_bytes;
    const AccessRoofs& of = *std::find_if(roofs.roofs.begin(), roofs.roofs.end(),
                                          [&](const AccessRoofs& one) { return one.operation == work.operation; });
    // The copy engine migrates pages, and may be faster than a kernel.
    const bool migrates = result.cell.strategy == Strategy::on_demand;
    const double link = migrates ? std::max(of.over_link, roofs.copy_to_device) : of.over_link;
    const double least_seconds = std::max(static_cast<double>(traffic.device_bytes) / of.on_device,
                                          static_cast<double>(traffic.host_bytes) / link);
    result.roof = touched / least_seconds;
    const double seconds = median_seconds(result.times);
    result.bytes_per_second = seconds > 0 ? touched / seconds : 0;
  }

  const OversubscriptionOptions& options_;
  AccessBench bench_;
  std::size_t budget_bytes_;
  std::optional<StrategyMemory> memory_;
  std::optional<decltype(memory_key(OversubscriptionCell{}))> key_;
  bool backwards_ = false;
  bool filled_ = false;
};

}  // namespace

std::size_t oversubscription_budget(Device device) {
  constexpr std::size_t kOfDevice = 8;
  constexpr std::size_t kOfHost = 32;
  const std::size_t of_device = device.memory().free_bytes / kOfDevice;
  const std::size_t of_host = Device::parse("cpu").memory().total_bytes / kOfHost;
  return std::max(kPageBytes, std::min(of_device, of_host) / kPageBytes * kPageBytes);
}

OversubscriptionReport measure_oversubscription(Device device, const OversubscriptionOptions& options,
                                                const std::function<void(const OversubscriptionProgress&)>& progress) {
  const std::vector<OversubscriptionCell> cells = oversubscription_cells(options);
  Oversubscription measuring(device, options);
  OversubscriptionReport report;
  report.budget_bytes = measuring.budget_bytes();
  if (progress) progress({});
  measuring.measure_roofs(report);

  std::vector<std::size_t> order(cells.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tuple(memory_key(cells[a]), cells[a].operation) < std::tuple(memory_key(cells[b]), cells[b].operation);
  });
  std::vector<std::optional<OversubscriptionResult>> results(cells.size());
  for (std::size_t done = 0; done < order.size() && !report.interrupted; ++done) {
    if (progress) progress({.done = done, .of = order.size(), .cell = cells[order[done]]});
    report.interrupted = options.stop.stop_requested();
    if (!report.interrupted) results[order[done]] = measuring.measure(cells[order[done]], report, options.runs);
  }
  // Other programs on the machine may slow the link down for a second or two, and with it the cells measured at that
  // time.
  for (const std::size_t at : order) {
    if (report.interrupted || !falls_short(*results[at])) continue;
    report.interrupted = options.stop.stop_requested();
    if (!report.interrupted) measuring.measure_again(*results[at], report);
  }
  for (auto& result : results) {
    if (result) report.cells.push_back(*std::move(result));
  }
  return report;
}

}  // namespace headrace::measure
