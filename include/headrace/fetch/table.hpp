#pragma once

// A Table answers queries over the columns of a Source: it fetches the columns that a query names and scans them on the
// device.
//
//     auto mean = [](std::shared_ptr<headrace::fetch::Source> source) {
//       headrace::fetch::Levels levels(headrace::Device::parse("best"));
//       headrace::fetch::Table table(levels, std::move(source));
//       headrace::fetch::Query query;
//       query.aggregates = {{headrace::fetch::Aggregate::average, headrace::fetch::Expression::column(1)}};
//       return table.scan(query).columns;
//     };

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "headrace/fetch/fetch.hpp"
#include "headrace/fetch/levels.hpp"
#include "headrace/fetch/scan.hpp"
#include "headrace/fetch/source.hpp"

namespace headrace::fetch {

/// How a table answered a query.
struct TableReport {
  ScanReport scan;            ///< Sums over all windows; `groups` is that of the last.
  std::uint64_t windows = 1;  ///< Windows of fragments in which the columns went through the device.
  std::uint64_t pruned = 0;   ///< Fragments that were skipped, because no row of them could pass the filter.
  std::string streamed;       ///< Why there were windows; empty if the columns were on the device together.
  std::array<LevelProgress, kLevelCount> levels{};  ///< Traffic through each level, by Level.
  Duration fetching{};                              ///< Time of the fetches, including what scans hid.
  Duration waited{};                                ///< Time that scans waited for columns.
};

/// The answer to a query, and how it was found.
struct TableResult {
  std::vector<ResultColumn> columns;  ///< As ScanResult::columns.
  TableReport report;                 ///< How the table answered.
};

/// Called a few times a second with the progress of a query's fetch; while the query waits for others, with an empty
/// progress. An exception that it throws ends the query.
using Watch = std::function<void(const FetchProgress&)>;

/// A table, in any kind of storage, that is scanned on the device of its levels. A query names columns by their number
/// in the source. The table brings these columns to the device through the levels, and they stay there while there is
/// room. If they exceed the device's budget together, they pass through it in windows of fragments, each in flight
/// while the previous one is scanned. Queries on one table from several threads take turns. Queries on tables that
/// share levels run side by side; a query that finds no memory left waits until the others have ended, and only a query
/// that does not fit alone is refused.
class Table {
 public:
  /// Makes a stream and takes no memory yet. Throws UsageError for options out of range, DeviceError if the device
  /// refuses.
  Table(Levels levels, std::shared_ptr<Source> source, FetchOptions options = {});
  Table(Table&&) noexcept;
  Table& operator=(Table&&) noexcept;
  ~Table();

  /// The caches that chunks go through.
  [[nodiscard]] const Levels& levels() const noexcept;
  /// Where the table is stored.
  [[nodiscard]] const std::shared_ptr<Source>& source() const noexcept;
  /// How its columns are fetched.
  [[nodiscard]] const FetchOptions& options() const noexcept;

  /// Runs a query, and waits for it. Throws as scan() and Fetch::wait() do; DeviceError (Errc::out_of_memory) only if
  /// the columns of a single fragment do not fit the device.
  [[nodiscard]] TableResult scan(const Query& query, const Watch& watch = {});
  /// Describes what a query fetches and how it runs, as lines of text. Fetches the columns if they fit the device,
  /// because the choice of grouping depends on their values.
  [[nodiscard]] std::string explain(const Query& query, const Watch& watch = {});
  /// The fragments of the windows in which the columns would go through the device: two of them fit its budget, unless
  /// one fragment alone takes more than half of it.
  [[nodiscard]] std::vector<std::vector<std::uint32_t>> windows(const std::vector<std::uint32_t>& columns) const;
  /// Releases the table's chunks and dictionaries on every level; those still in use are released afterwards. Every
  /// later call on the table throws UsageError.
  void close();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::fetch
