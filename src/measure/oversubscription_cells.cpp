#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "headrace/base/error.hpp"
#include "measure/oversubscription.hpp"

/// Lists the cells to measure.
namespace headrace::measure {

namespace {

constexpr double kFactorMax = 1024;
constexpr std::uint32_t kRunsMax = 1000;
constexpr std::uint32_t kBlocksMax = 64;
constexpr std::uint32_t kWarp = 32;
constexpr std::uint32_t kThreadsMax = 1024;

template <class T>
void require_some(const std::vector<T>& values, std::string_view what) {
  if (values.empty()) throw UsageError(fmt::format("oversubscription needs at least one of: {}", what));
}

void check(const OversubscriptionOptions& options) {
  require_some(options.patterns, "patterns");
  require_some(options.rows, "row orders");
  require_some(options.operations, "operations");
  require_some(options.strategies, "strategies");
  require_some(options.factors, "factors");
  require_some(options.page_bytes, "page sizes");
  require_some(options.threads, "threads");
  require_some(options.synchronised, "synchronised or not");
  for (const double factor : options.factors) {
    if (!std::isfinite(factor) || factor <= 0 || factor > kFactorMax) {
      throw UsageError(fmt::format("a factor must be above 0 and at most {}, not {}", kFactorMax, factor));
    }
  }
  for (const std::size_t bytes : options.page_bytes) {
    if (bytes != 4 * kKiB && bytes != 64 * kKiB && bytes != kPageBytes) {
      throw UsageError(fmt::format("a page must be 4 KiB, 64 KiB or 2 MiB, not {}", format_bytes(bytes)));
    }
  }
  for (const std::uint32_t threads : options.threads) {
    if (threads == 0 || threads % kWarp != 0 || threads > kThreadsMax) {
      throw UsageError(fmt::format("threads must be a multiple of {} up to {}, not {}", kWarp, kThreadsMax, threads));
    }
  }
  if (options.runs == 0 || options.runs > kRunsMax) {
    throw UsageError(fmt::format("runs must be 1 to {}, not {}", kRunsMax, options.runs));
  }
  if (options.blocks_per_multiprocessor > kBlocksMax) {
    throw UsageError(fmt::format("blocks per multiprocessor must be at most {}, not {}", kBlocksMax,
                                 options.blocks_per_multiprocessor));
  }
  if (options.budget_bytes != 0 && options.budget_bytes < kPageBytes) {
    throw UsageError(fmt::format("a budget must be at least a page of {}, not {}", format_bytes(kPageBytes),
                                 format_bytes(options.budget_bytes)));
  }
}

/// The values of an option if it applies, else only `otherwise`.
template <class T>
std::vector<T> where(bool applies, const std::vector<T>& values, T otherwise) {
  return applies ? values : std::vector<T>{otherwise};
}

}  // namespace

std::vector<OversubscriptionCell> oversubscription_cells(const OversubscriptionOptions& options) {
  check(options);
  std::vector<OversubscriptionCell> cells;
  const auto add = [&](OversubscriptionCell cell) {
    const bool by_heat = cell.strategy == Strategy::by_budget &&
                         (cell.pattern == AccessPattern::zipf_rows || cell.pattern == AccessPattern::hot_tenth);
    const bool has_pages =
        cell.pattern == AccessPattern::random_warp || cell.strategy == Strategy::prefetched || by_heat;
    for (const std::size_t page_bytes : where(has_pages, options.page_bytes, kPageBytes)) {
      for (const std::uint32_t threads : options.threads) {
        for (const bool synchronised : options.synchronised) {
          cell.page_bytes = page_bytes;
          cell.threads = threads;
          cell.synchronised = synchronised;
          // A value that an option names twice is measured once.
          if (std::find(cells.begin(), cells.end(), cell) == cells.end()) cells.push_back(cell);
        }
      }
    }
  };
  for (const AccessPattern pattern : options.patterns) {
    for (const RowOrder rows : where(pattern == AccessPattern::zipf_rows, options.rows, RowOrder::ordered)) {
      for (const AccessOperation operation : options.operations) {
        for (const Strategy strategy : options.strategies) {
          for (const double factor : options.factors) {
            add({.pattern = pattern, .rows = rows, .operation = operation, .strategy = strategy, .factor = factor});
          }
        }
      }
    }
  }
  return cells;
}

}  // namespace headrace::measure
