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

/// What a table has learnt of its columns' values from the scans so far: whether any is missing, and their range, which
/// decides how a scan finds its groups.
class KnownColumns {
 public:
  explicit KnownColumns(std::shared_ptr<Source> source)
      : source_(std::move(source)), known_(2 * source_->columns().size()) {}

  /// The columns that a query needs, of the fragments that have been fetched; of none where `fetch` is null.
  [[nodiscard]] TableView view_of(const Need& need, const Fetch* fetch) const;
  /// Looks at the columns of which nothing is known. Those of strings are learnt each time: dictionaries grow.
  void learn(StreamRef stream, const Need& need, TableView& view);

 private:
  /// What is known of a column's values once all of them have been looked at.
  struct Known {
    bool nullable = true;
    std::optional<ValueRange> range;
  };

  /// What holds for every fragment of the table is known from now on.
  void keep(const Need& need, const TableView& view);

  std::shared_ptr<Source> source_;
  std::vector<std::optional<Known>> known_;  ///< By column of the source, then by validity_of() those.
};

}  // namespace headrace::fetch
