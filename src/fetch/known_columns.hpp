#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fetch/query/need.hpp"
#include "headrace/device/stream.hpp"
#include "headrace/fetch/fetch.hpp"
#include "headrace/fetch/scan.hpp"
#include "headrace/fetch/source.hpp"

namespace headrace::fetch {

/// Facts about a table's columns that earlier scans have found: whether values are missing, and their range, which
/// decides how a scan addresses its groups.
class KnownColumns {
 public:
  explicit KnownColumns(std::shared_ptr<Source> source)
      : source_(std::move(source)), known_(2 * source_->columns().size()) {}

  /// A view of the columns that a query needs, with the fetched fragments; without fragments if `fetch` is null.
  [[nodiscard]] TableView view_of(const Need& need, const Fetch* fetch) const;
  /// Takes a look() at the columns that are not known yet. Updates columns of strings each time, because dictionaries
  /// grow.
  void learn(StreamRef stream, const Need& need, TableView& view);

 private:
  /// Facts about a column, found from all of its values.
  struct Known {
    bool nullable = true;
    std::optional<ValueRange> range;
  };

  /// Keeps the facts if they hold for every fragment of the table.
  void keep(const Need& need, const TableView& view);

  std::shared_ptr<Source> source_;
  std::vector<std::optional<Known>> known_;  ///< By column of the source, then by validity_of() each column.
};

}  // namespace headrace::fetch
