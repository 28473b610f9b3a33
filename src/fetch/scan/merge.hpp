#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "headrace/fetch/scan.hpp"

/// Combines the results of scans of parts of a table into the result for the whole table.
namespace headrace::fetch {

/// Groups that are aggregated part by part, by aggregates that can be combined: an average is a sum and a count until
/// the end.
class PartialGroups {
 public:
  explicit PartialGroups(const Query& query);

  /// The query to scan each part with.
  [[nodiscard]] const Query& query() const noexcept { return partial_; }
  /// Adds the result of scanning one part, `table`.
  void add(const TableView& table, const std::vector<ResultColumn>& part);
  /// The groups of all parts. At least one part must have been added.
  [[nodiscard]] std::vector<ResultColumn> finish() const;

 private:
  /// How a column of a part's result is combined.
  enum class Role : std::uint8_t { count, sum, least, greatest };
  struct Cell {
    __int128 value = 0;
    bool valid = false;
  };
  /// The position of an aggregate of the query among the columns of a part's result, after the keys.
  struct Place {
    Aggregate function = Aggregate::count_rows;
    std::size_t column = 0;
  };

  [[nodiscard]] std::size_t group_of(const std::vector<ResultColumn>& part, std::int64_t row);
  void merge(Cell& into, const ResultColumn& column, std::int64_t row, Role role, const DictionaryOrder* order) const;

  std::size_t keys_;
  Query partial_;
  std::vector<Role> roles_;  ///< The roles of the columns of a part's result after the keys.
  std::vector<Place> places_;
  std::vector<DataType> types_;                          ///< The types of the columns of a part's result.
  std::unordered_map<std::string, std::size_t> groups_;  ///< By the bytes of their keys.
  std::vector<Cell> cells_;                              ///< By group, then by column.
};

/// Concatenates the rows of several results, at least one. The types are those of the first.
[[nodiscard]] std::vector<ResultColumn> concatenate(const std::vector<std::vector<ResultColumn>>& parts);
/// Merges several results, each in the order of the query, into the first rows in that order. Equal rows keep the order
/// of the parts. `table` has the dictionaries of the query's columns.
[[nodiscard]] std::vector<ResultColumn> merge_ordered(const std::vector<std::vector<ResultColumn>>& parts,
                                                      const TableView& table, const Query& query);

}  // namespace headrace::fetch
