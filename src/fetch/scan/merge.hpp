#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "headrace/fetch/scan.hpp"

/// Results of scans of parts of a table, as the result of a scan of it all.
namespace headrace::fetch {

/// Groups that are gathered part by part. What is gathered of a part is such that parts add up: an average is a sum and
/// a count until the end.
class PartialGroups {
 public:
  explicit PartialGroups(const Query& query);

  /// What each part is scanned with.
  [[nodiscard]] const Query& query() const noexcept { return partial_; }
  /// Takes over the result of one part, which is of `table`.
  void add(const TableView& table, const std::vector<ResultColumn>& part);
  /// The groups of all parts: at least one has been added.
  [[nodiscard]] std::vector<ResultColumn> finish() const;

 private:
  /// What becomes of a column of a part's result.
  enum class Role : std::uint8_t { count, sum, least, greatest };
  struct Cell {
    __int128 value = 0;
    bool valid = false;
  };
  /// Where an aggregate of the query is among the columns of a part's result, after the keys.
  struct Place {
    Aggregate function = Aggregate::count_rows;
    std::size_t column = 0;
  };

  [[nodiscard]] std::size_t group_of(const std::vector<ResultColumn>& part, std::int64_t row);
  void merge(Cell& into, const ResultColumn& column, std::int64_t row, Role role, const DictionaryOrder* order) const;

  std::size_t keys_;
  Query partial_;
  std::vector<Role> roles_;  ///< The roles of the columns of a part's result that are no keys.
  std::vector<Place> places_;
  std::vector<DataType> types_;                          ///< The types of the columns of a part's result.
  std::unordered_map<std::string, std::size_t> groups_;  ///< By the bytes of their keys.
  std::vector<Cell> cells_;  ///< The cells of one group after another, within a group as the columns.
};

/// The rows of several results, one after the other. Types are those of the first, of which there is one.
[[nodiscard]] std::vector<ResultColumn> concatenate(const std::vector<std::vector<ResultColumn>>& parts);
/// The first rows of several results, each of which is in the order of the query, in that order; rows that are equal in
/// it by part. `table` has the dictionaries of the query's columns.
[[nodiscard]] std::vector<ResultColumn> merge_ordered(const std::vector<std::vector<ResultColumn>>& parts,
                                                      const TableView& table, const Query& query);

}  // namespace headrace::fetch
