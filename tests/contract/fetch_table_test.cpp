#include "headrace/fetch/table.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <set>
#include <tuple>

#include "devices.hpp"
#include "headrace/base/error.hpp"
#include "tests/fetch_tables.hpp"

namespace headrace::testing {
namespace {

using namespace fetch;
using ::testing::HasSubstr;

constexpr std::uint32_t kNumber = 0;
constexpr std::uint32_t kReal = 1;
constexpr std::uint32_t kFlag = 2;
constexpr std::uint32_t kPrice = 3;
constexpr std::uint32_t kName = 4;

Expression column(std::uint32_t number) { return Expression::column(number); }

/// A result row as bytes, so that results can be compared regardless of row order.
std::string row_of(const std::vector<ResultColumn>& columns, std::int64_t row) {
  std::string bytes;
  for (const ResultColumn& one : columns) {
    const auto at = static_cast<std::size_t>(row);
    if (!one.validity.empty() && ((one.validity[at / 8] >> (at % 8)) & 1) == 0) {
      bytes += "|none";
      continue;
    }
    const std::size_t width = value_bits(one.type) / 8;
    bytes += '|';
    if (width == 0) {
      bytes += ((one.values[at / 8] >> static_cast<int>(at % 8)) & std::byte{1}) == std::byte{0} ? '0' : '1';
    } else {
      for (std::size_t i = 0; i < width; ++i) bytes += static_cast<char>(one.values[at * width + i]);
    }
  }
  return bytes;
}

std::multiset<std::string> rows_of(const std::vector<ResultColumn>& columns) {
  std::multiset<std::string> rows;
  for (std::int64_t row = 0; row < columns.at(0).length; ++row) rows.insert(row_of(columns, row));
  return rows;
}

template <class T>
T value(const ResultColumn& from, std::int64_t row = 0) {
  T read;
  std::memcpy(&read, from.values.data() + static_cast<std::size_t>(row) * sizeof(T), sizeof(T));
  return read;
}

class Tables : public DeviceTest {
 protected:
  static Levels levels(std::size_t device_bytes = 64 * kMiB) {
    return Levels(device(), {.cpu_bytes = 64 * kMiB, .device_bytes = device_bytes, .slab_bytes = 16 * kKiB});
  }
  /// The string in a row of a result.
  static std::string text(const Table& table, const ResultColumn& from, std::int64_t row = 0) {
    const auto index = static_cast<std::size_t>(value<std::int32_t>(from, row));
    return std::string(table.source()->dictionary(kName)->entry(index));
  }
};

/// Every kind of aggregate with exact numbers.
std::vector<AggregateCall> every_aggregate() {
  return {{.function = Aggregate::count_rows},
          {.function = Aggregate::count, .value = column(kPrice)},
          {.function = Aggregate::sum, .value = column(kPrice)},
          {.function = Aggregate::sum, .value = column(kNumber)},
          {.function = Aggregate::average, .value = column(kPrice)},
          {.function = Aggregate::average, .value = column(kNumber)},
          {.function = Aggregate::min, .value = column(kReal)},
          {.function = Aggregate::max, .value = column(kReal)},
          {.function = Aggregate::min, .value = column(kName)},
          {.function = Aggregate::max, .value = column(kName)},
          {.function = Aggregate::max, .value = column(kFlag)}};
}

TEST_P(Tables, WindowsGiveWhatTheWholeTableGives) {
  const auto source = table_of({.rows = 1500, .fragments = 13});
  const Expression some = Expression::call(Operation::greater, {column(kNumber), Expression::literal({}, 100)});
  const std::vector<Query> queries{
      {.aggregates = every_aggregate()},
      {.filter = some, .keys = {column(kName), column(kFlag)}, .aggregates = every_aggregate()},
      {.keys = {column(kReal)}, .aggregates = every_aggregate()},
      {.keys = {column(kNumber), column(kPrice)}, .aggregates = {{.function = Aggregate::count_rows}}},
      {.keys = {column(kName)}},
      {.filter = some, .values = {column(kNumber), column(kName), column(kFlag), column(kPrice), column(kReal)}},
      {.values = {column(kFlag), column(kReal)}, .limit = 7000}};
  Table whole(levels(), source);
  // Two windows of a few fragments; or a single fragment that fills the budget.
  for (const std::size_t budget : {256 * kKiB, 112 * kKiB}) {
    const Levels small = levels(budget);
    Table streamed(small, source, {.threads = 2});
    for (std::size_t q = 0; q < queries.size(); ++q) {
      SCOPED_TRACE(::testing::Message() << "query " << q << ", budget " << budget);
      const TableResult expected = whole.scan(queries[q]);
      const TableResult result = streamed.scan(queries[q]);
      EXPECT_EQ(expected.report.streamed, "");
      EXPECT_EQ(expected.report.windows, 1U);
      if (!result.report.streamed.empty()) {
        EXPECT_GT(result.report.windows, 1U);
      }
      ASSERT_EQ(result.columns.size(), expected.columns.size());
      for (std::size_t c = 0; c < expected.columns.size(); ++c) {
        EXPECT_EQ(result.columns[c].type, expected.columns[c].type);
        EXPECT_EQ(result.columns[c].null_count, expected.columns[c].null_count);
      }
      EXPECT_EQ(rows_of(result.columns), rows_of(expected.columns));
    }
    EXPECT_LE(small.statistics(Level::device).most_bytes, budget);
    EXPECT_EQ(small.statistics(Level::device).pinned, 0U);
  }
}

TEST_P(Tables, RowsOfWindowsKeepTheirOrder) {
  const auto source = table_of({.rows = 2000, .fragments = 6});
  Table streamed(levels(64 * kKiB), source);
  const TableResult result = streamed.scan({.values = {column(kNumber), column(kReal)}});
  EXPECT_THAT(result.report.streamed, HasSubstr("the device level's budget is"));
  ASSERT_EQ(result.columns[1].length, 12'000);
  for (std::int64_t row = 0; row < 12'000; ++row) {
    ASSERT_EQ(value<std::int64_t>(result.columns[1], row), value_of(kReal, row % 2000)) << row;
  }
}

TEST_P(Tables, OrderedRowsOfWindowsAreInOneOrder) {
  constexpr std::int64_t kRows = 2000;
  constexpr std::int64_t kFragments = 6;
  const auto source = table_of({.rows = kRows, .fragments = kFragments});
  // The second fragment comes first, and its strings are reversed: indices are not in the order of the strings.
  Fetch(levels(), source, {.columns = {kName}, .fragments = {1}}).wait();
  const auto dictionary = source->dictionary(kName);
  ASSERT_EQ(dictionary->size(), 5U);
  for (std::size_t i = 0; i < 5; ++i) ASSERT_EQ(dictionary->entry(i), fmt::format("s{}", 4 - i));
  for (const bool descending : {false, true}) {
    std::vector<std::int64_t> expected;
    for (std::int64_t i = 0; i < kRows * kFragments; ++i) expected.push_back(i % kRows);
    std::ranges::stable_sort(expected, {}, [&](std::int64_t row) {
      const auto name = value_of(kName, row);
      const auto price = value_of(kPrice, row);
      return std::tuple(!name, name.value_or(0) * (descending ? -1 : 1), !price, price.value_or(0));
    });
    Query query{.values = {column(kReal), column(kName), column(kPrice)},
                .order = {{.value = 1, .descending = descending}, {.value = 2}}};
    for (const std::int64_t limit : {kRows * kFragments, std::int64_t{700}, std::int64_t{0}}) {
      query.limit = limit;
      for (const std::size_t budget : {64 * kMiB, 128 * kKiB}) {
        SCOPED_TRACE(::testing::Message() << descending << ", " << limit << ", " << budget);
        Table table(levels(budget), source);
        const TableResult result = table.scan(query);
        EXPECT_EQ(result.report.windows > 1, budget < kMiB);
        ASSERT_EQ(result.columns[0].length, limit);
        for (std::int64_t i = 0; i < limit; ++i) {
          const std::int64_t row = expected[static_cast<std::size_t>(i)];
          ASSERT_EQ(value<std::int64_t>(result.columns[0], i), value_of(kReal, row)) << i;
          if (const auto name = value_of(kName, row)) {
            ASSERT_EQ(text(table, result.columns[1], i), fmt::format("s{}", *name)) << i;
          }
        }
      }
    }
  }
}

TEST_P(Tables, SumsOfFloatsAddUpOverWindows) {
  const auto source = table_of({.rows = 2000, .fragments = 6});
  Table streamed(levels(64 * kKiB), source);
  const TableResult result = streamed.scan({.aggregates = {{.function = Aggregate::sum, .value = column(kReal)},
                                                           {.function = Aggregate::average, .value = column(kReal)}}});
  EXPECT_GT(result.report.windows, 1U);
  EXPECT_NEAR(value<double>(result.columns[0]), 6 * 1999.0 * 1000 / 3, 1e-6);
  EXPECT_NEAR(value<double>(result.columns[1]), 1999.0 / 6, 1e-9);
}

TEST_P(Tables, OnlyTheColumnsThatAQueryNamesAreFetched) {
  const Levels shared = levels();
  Table table(shared, table_of({.rows = 1024, .fragments = 4}));
  const TableResult first = table.scan({.aggregates = {{.function = Aggregate::max, .value = column(kReal)}}});
  EXPECT_EQ(first.report.levels[2].chunks, 4U);
  EXPECT_EQ(first.report.levels[2].bytes, 4U * 1024 * 8);
  EXPECT_EQ(first.report.scan.read_bytes, 4U * 1024 * 8);
  const TableResult again = table.scan({.aggregates = {{.function = Aggregate::min, .value = column(kReal)}}});
  EXPECT_EQ(again.report.levels[2].chunks, 0U);
  EXPECT_EQ(again.report.levels[2].hits, 4U);
  // Rows are counted in the narrowest column.
  EXPECT_EQ(value<std::int64_t>(table.scan({.aggregates = {{}}}).columns[0]), 4096);
  EXPECT_EQ(shared.statistics(Level::device).chunks, 8U);
}

TEST_P(Tables, TheFirstRowsComeFromTheFirstFragments) {
  const Levels shared = levels();
  Table table(shared, table_of({.rows = 1000, .fragments = 4}));
  EXPECT_EQ(table.scan({.values = {column(kReal)}, .limit = 1001}).columns[0].length, 1001);
  EXPECT_EQ(shared.statistics(Level::device).chunks, 2U);
  EXPECT_EQ(table.scan({.values = {column(kReal)}, .limit = 0}).columns[0].length, 0);
}

TEST_P(Tables, StringsCompareByTheirBytesWhateverTheirIndices) {
  // Every second fragment has its strings in another order, and the first begins with neither the smallest nor the
  // largest.
  const auto source = table_of({.rows = 1000, .fragments = 4, .first = 3});
  Table table(levels(), source);
  const auto count = [&](Operation operation, const char* text, bool mirrored = false) {
    std::vector<Expression> sides{column(kName), Expression::text(text)};
    if (mirrored) std::swap(sides[0], sides[1]);
    return value<std::int64_t>(
        table.scan({.filter = Expression::call(operation, sides), .aggregates = {{}}}).columns[0]);
  };
  std::map<std::string, std::int64_t> rows;
  for (std::int64_t row = 3; row < 1000; ++row) {
    if (const auto number = value_of(kName, row)) rows[fmt::format("s{}", *number)] += 4;
  }
  ASSERT_EQ(rows.size(), 3U);  // squares modulo 5 are 0, 1 and 4
  EXPECT_EQ(count(Operation::equal, "s1"), rows["s1"]);
  EXPECT_EQ(count(Operation::not_equal, "s1"), rows["s0"] + rows["s4"]);
  EXPECT_EQ(count(Operation::less, "s1"), rows["s0"]);
  EXPECT_EQ(count(Operation::less_equal, "s1"), rows["s0"] + rows["s1"]);
  EXPECT_EQ(count(Operation::greater, "s1"), rows["s4"]);
  EXPECT_EQ(count(Operation::greater_equal, "s1"), rows["s1"] + rows["s4"]);
  EXPECT_EQ(count(Operation::less, "s1", true), rows["s4"]);
  EXPECT_EQ(count(Operation::equal, "none"), 0);
  EXPECT_EQ(count(Operation::not_equal, "none"), rows["s0"] + rows["s1"] + rows["s4"]);
  EXPECT_EQ(count(Operation::less, "s00"), rows["s0"]);
  EXPECT_EQ(count(Operation::greater_equal, "zz"), 0);
  const Query among{.filter = Expression::call(Operation::is_in, {column(kName), Expression::text("s4"),
                                                                  Expression::text("x"), Expression::text("s0")}),
                    .aggregates = {{},
                                   {.function = Aggregate::min, .value = column(kName)},
                                   {.function = Aggregate::max, .value = column(kName)}}};
  const TableResult result = table.scan(among);
  EXPECT_EQ(value<std::int64_t>(result.columns[0]), rows["s0"] + rows["s4"]);
  EXPECT_EQ(text(table, result.columns[1]), "s0");
  EXPECT_EQ(text(table, result.columns[2]), "s4");
  const Query itself{.filter = Expression::call(Operation::less_equal, {column(kName), column(kName)}),
                     .aggregates = {{}}};
  EXPECT_EQ(value<std::int64_t>(table.scan(itself).columns[0]), rows["s0"] + rows["s1"] + rows["s4"]);
}

TEST_P(Tables, WhatStringsAreNotComparedWithIsRefused) {
  Table table(levels(), table_of({.rows = 10, .fragments = 1}));
  const auto refused = [&](const Expression& filter) {
    EXPECT_THROW(static_cast<void>(table.scan({.filter = filter, .aggregates = {{}}})), UsageError);
  };
  const Expression one = Expression::text("s1");
  refused(Expression::call(Operation::equal, {one, one}));
  refused(Expression::call(Operation::equal, {column(kNumber), one}));
  refused(Expression::call(Operation::is_in, {column(kNumber), one}));
  refused(Expression::call(Operation::add, {column(kName), one}));
  refused(one);
  EXPECT_THROW(static_cast<void>(table.scan({.values = {one}})), UsageError);
  EXPECT_THROW(static_cast<void>(table.scan({.values = {column(5)}})), UsageError);
  EXPECT_THROW(static_cast<void>(table.windows({5})), UsageError);
}

TEST_P(Tables, AFragmentThatDoesNotFitTheDeviceIsAnError) {
  const auto source = table_of({.rows = 4096, .fragments = 3});
  Table table(levels(40 * kKiB), source);
  try {
    static_cast<void>(table.scan({.values = {column(kReal), column(kNumber)}}));
    FAIL() << "48 KiB exceed 40 KiB";
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.code(), Errc::out_of_memory);
    EXPECT_THAT(error.what(), HasSubstr("column"));
  }
  EXPECT_EQ(table.levels().statistics(Level::device).pinned, 0U);
  EXPECT_EQ(table.scan({.values = {column(kNumber)}}).columns[0].length, 3 * 4096);
}

TEST_P(Tables, RoomThatAnotherFetchTakesIsDoneWithout) {
  // The columns fit the budget, but not together with what others hold.
  const auto source = table_of({.rows = 2048, .fragments = 8});
  const Levels shared = levels(160 * kKiB);
  Fetch held(shared, source, {.columns = {kReal}, .fragments = {0, 1, 2, 3}});
  held.wait();
  Table table(shared, table_of({.rows = 2048, .fragments = 8}));
  const TableResult result = table.scan({.values = {column(kReal)}});
  EXPECT_THAT(result.report.streamed, HasSubstr("no memory"));
  EXPECT_GT(result.report.windows, 1U);
  EXPECT_EQ(result.columns[0].length, 8 * 2048);
}

TEST_P(Tables, AnEmptyTableAnswers) {
  for (const TableOf& of : {TableOf{.rows = 0, .fragments = 3}, TableOf{.fragments = 0}}) {
    Table table(levels(), table_of(of));
    EXPECT_EQ(table.scan({.keys = {column(kName)}}).columns[0].length, 0);
    EXPECT_EQ(table.scan({.values = {column(kNumber)}}).columns[0].length, 0);
    EXPECT_EQ(value<std::int64_t>(table.scan({.aggregates = {{}}}).columns[0]), 0);
  }
}

TEST_P(Tables, ExplainSaysWhatIsFetchedAndHow) {
  const auto source = table_of({.rows = 2000, .fragments = 6});
  const Query query{.keys = {column(kFlag)}, .aggregates = {{.function = Aggregate::max, .value = column(kReal)}}};
  Table table(levels(), source);
  const std::string text = table.explain(query);
  EXPECT_THAT(text, HasSubstr("fetches real, flag: 2 of 5 columns, 6 of 6 fragments"));
  EXPECT_THAT(text, HasSubstr("reads flag, real"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("streams")));
  Table streamed(levels(64 * kKiB), source);
  EXPECT_THAT(streamed.explain(query), HasSubstr("streams them through the device in 6 windows"));
  EXPECT_EQ(streamed.windows({kReal, kFlag}).size(), 6U);
}

TEST_P(Tables, AWatchIsToldAndEndsTheQuery) {
  const auto inner = table_of({.rows = 100, .fragments = 2});
  std::atomic<bool> go{false};
  const auto slow = std::make_shared<ReaderSource>(inner->columns(), inner->fragments(),
                                                   std::vector<ReaderSource::ChunkPlace>(2 * kTableColumns),
                                                   [&](std::uint32_t fragment, std::span<const std::uint32_t> columns) {
                                                     go.wait(false);
                                                     return inner->read_columns(fragment, columns);
                                                   });
  const Levels shared = levels();
  Table table(shared, slow);
  const Query query{.aggregates = {{.function = Aggregate::max, .value = column(kReal)}}};
  const auto stop = [&](const FetchProgress& progress) {
    EXPECT_EQ(progress.chunks, 2U);
    go = true;
    go.notify_all();
    throw UsageError("enough");
  };
  EXPECT_THROW(static_cast<void>(table.scan(query, stop)), UsageError);
  EXPECT_EQ(shared.statistics(Level::device).pinned, 0U);
  EXPECT_EQ(table.scan(query).columns[0].length, 1);
}

HEADRACE_ON_EVERY_DEVICE(Tables);

}  // namespace
}  // namespace headrace::testing
