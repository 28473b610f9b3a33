#pragma once

// A Table answers queries over the columns of a Source: it fetches those that a query names, and scans them on the
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
  ScanReport scan;            ///< The sums over all windows; how groups were found is the last one's.
  std::uint64_t windows = 1;  ///< In how many pieces the columns went through the device.
  std::uint64_t pruned = 0;   ///< Fragments that were left out, because no row of them could pass the filter.
  std::string streamed;       ///< Why there were windows; empty where the columns lay on the device together.
  std::array<LevelProgress, kLevelCount> levels{};  ///< What came through each level, by Level.
  Duration fetching{};                              ///< The time of the fetches, the part that scans hid among it.
  Duration waited{};                                ///< For columns.
};

struct TableResult {
  std::vector<ResultColumn> columns;
  TableReport report;
};

/// Is told how far a fetch is, a few times a second, and while a query waits for others, of a fetch of no chunks; what
/// it throws ends the query.
using Watch = std::function<void(const FetchProgress&)>;

/// A table that is scanned on the device of its levels, whatever it is stored in. A query names columns by their number
/// in the source; those come to the device, through the levels, and stay there while there is room. Where they do not
/// fit the device's budget together, they go through it in windows of fragments, one on its way while the one before it
/// is scanned. Queries of several threads take turns. Queries of tables that share levels run beside each other; one
/// for which the others leave no memory waits until they have ended, and only what does not fit alone is refused.
class Table {
 public:
  /// Takes no memory yet, but a stream. Throws UsageError for options out of range, DeviceError.
  Table(Levels levels, std::shared_ptr<Source> source, FetchOptions options = {});
  Table(Table&&) noexcept;
  Table& operator=(Table&&) noexcept;
  ~Table();

  [[nodiscard]] const Levels& levels() const noexcept;
  [[nodiscard]] const std::shared_ptr<Source>& source() const noexcept;
  [[nodiscard]] const FetchOptions& options() const noexcept;

  /// Runs a query, and waits for it. Throws as scan() and Fetch::wait() do; DeviceError (Errc::out_of_memory) only
  /// where not even one fragment's columns fit the device.
  [[nodiscard]] TableResult scan(const Query& query, const Watch& watch = {});
  /// What is fetched for a query and how it runs, as lines of text. Columns that fit the device are brought there: how
  /// groups are found depends on their values.
  [[nodiscard]] std::string explain(const Query& query, const Watch& watch = {});
  /// The fragments of the windows in which the columns would go through the device: two of them fit its budget, unless
  /// one fragment alone takes more than half of it.
  [[nodiscard]] std::vector<std::vector<std::uint32_t>> windows(const std::vector<std::uint32_t>& columns) const;
  /// Gives back what the table's chunks and dictionaries take, on every level. What has been fetched, and is still
  /// held, stays until it is let go. Whatever is asked of the table from now on is a UsageError.
  void close();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::fetch
