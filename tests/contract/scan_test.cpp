#include "headrace/fetch/scan.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "devices.hpp"

namespace headrace::testing {

namespace {

using fetch::Aggregate;
using fetch::DataType;
using fetch::Expression;
using fetch::Operation;
using fetch::Query;
using fetch::ResultColumn;
using fetch::ScanResult;
using fetch::TableView;
using fetch::Type;

constexpr DataType kInt32{.id = Type::int32};
constexpr DataType kInt64{.id = Type::int64};
constexpr DataType kFloat64{.id = Type::float64};

/// Columns on a device, together with the memory that holds them.
class DeviceTable {
 public:
  explicit DeviceTable(Device device) : stream_(device) {}

  /// Adds a column of one fragment; the values that `missing` marks are missing.
  template <class T>
  void add(const char* name, const DataType& type, const std::vector<T>& values, T missing) {
    std::vector<std::uint8_t> validity((values.size() + 7) / 8, 0);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] != missing) validity[i / 8] |= static_cast<std::uint8_t>(1U << (i % 8));
    }
    const fetch::ColumnView view{.type = type,
                                 .values = upload(values.data(), values.size() * sizeof(T)),
                                 .validity = static_cast<const std::uint8_t*>(upload(validity.data(), validity.size())),
                                 .length = static_cast<std::int64_t>(values.size())};
    table_.columns.push_back({.name = name, .type = type, .nullable = true, .range = {}});
    table_.fragments.resize(1);
    table_.fragments[0].push_back(view);
  }

  [[nodiscard]] ScanResult scan(const Query& query) { return fetch::scan(stream_, table_, query); }
  [[nodiscard]] TableView& table() { return table_; }
  [[nodiscard]] Stream& stream() { return stream_; }

 private:
  const void* upload(const void* from, std::size_t bytes) {
    buffers_.emplace_back(stream_.device(), MemoryKind::device, bytes);
    if (bytes > 0) {
      EXPECT_OK(stream_.copy(buffers_.back().data(), from, bytes));
    }
    EXPECT_OK(stream_.wait());
    return buffers_.back().data();
  }

  Stream stream_;
  TableView table_;
  std::vector<Buffer> buffers_;
};

template <class T>
[[nodiscard]] T value_of(const ResultColumn& column, std::int64_t row) {
  T value;
  std::memcpy(&value, column.values.data() + static_cast<std::size_t>(row) * sizeof(T), sizeof(T));
  return value;
}

[[nodiscard]] bool has_value(const ResultColumn& column, std::int64_t row) {
  const auto at = static_cast<std::size_t>(row);
  return column.validity.empty() || ((column.validity[at / 8] >> (at % 8)) & 1) != 0;
}

class ScanTest : public DeviceTest {};

constexpr std::int32_t kNone = -1;
constexpr std::size_t kRows = 100'000;

/// Keys 0 to 16 and missing keys; the values follow from the row's number.
DeviceTable numbers(Device device) {
  DeviceTable table(device);
  std::vector<std::int32_t> keys(kRows);
  std::vector<std::int64_t> values(kRows);
  for (std::size_t i = 0; i < kRows; ++i) {
    keys[i] = i % 23 == 5 ? kNone : static_cast<std::int32_t>(i % 17);
    values[i] = i % 29 == 7 ? INT64_MIN : static_cast<std::int64_t>(i * 2'654'435'761 % 1'000'003) - 500'000;
  }
  table.add("key", kInt32, keys, kNone);
  table.add("value", kInt64, values, INT64_MIN);
  return table;
}

TEST_P(ScanTest, GroupsAreTheSameHoweverTheyAreFound) {
  struct Group {
    std::int64_t rows = 0;
    std::int64_t values = 0;
    std::int64_t sum = 0;
    std::int64_t least = INT64_MAX;
  };
  std::map<std::int32_t, Group> expected;
  for (std::size_t i = 0; i < kRows; ++i) {
    Group& group = expected[i % 23 == 5 ? kNone : static_cast<std::int32_t>(i % 17)];
    ++group.rows;
    if (i % 29 == 7) continue;
    const std::int64_t value = static_cast<std::int64_t>(i * 2'654'435'761 % 1'000'003) - 500'000;
    ++group.values;
    group.sum += value;
    group.least = std::min(group.least, value);
  }
  DeviceTable table = numbers(device());
  const Expression value = Expression::column(1);
  const Query query{.keys = {Expression::column(0)},
                    .aggregates = {{.function = Aggregate::count_rows},
                                   {.function = Aggregate::count, .value = value},
                                   {.function = Aggregate::sum, .value = value},
                                   {.function = Aggregate::min, .value = value}}};
  std::vector<std::string> ways;
  for (const bool looked : {false, true}) {
    if (looked) fetch::look(table.stream(), table.table());
    const ScanResult result = table.scan(query);
    ways.push_back(result.report.groups);
    ASSERT_EQ(result.columns[0].length, static_cast<std::int64_t>(expected.size()));
    for (std::int64_t row = 0; row < result.columns[0].length; ++row) {
      const std::int32_t key =
          has_value(result.columns[0], row) ? value_of<std::int32_t>(result.columns[0], row) : kNone;
      const Group& group = expected.at(key);
      EXPECT_EQ(value_of<std::int64_t>(result.columns[1], row), group.rows);
      EXPECT_EQ(value_of<std::int64_t>(result.columns[2], row), group.values);
      EXPECT_EQ(static_cast<std::int64_t>(value_of<__int128>(result.columns[3], row)), group.sum);
      EXPECT_EQ(value_of<std::int64_t>(result.columns[4], row), group.least);
    }
  }
  EXPECT_THAT(ways[0], ::testing::HasSubstr("hashed"));
  EXPECT_THAT(ways[1], ::testing::HasSubstr("addressed directly in a block's memory"));
}

TEST_P(ScanTest, SumsAreExactBeyond64Bits) {
  DeviceTable table(device());
  table.add("x", kInt64, std::vector<std::int64_t>(5000, INT64_MAX - 1), std::int64_t{0});
  const ScanResult result = table.scan({.aggregates = {{.function = Aggregate::sum, .value = Expression::column(0)}}});
  EXPECT_TRUE(value_of<__int128>(result.columns[0], 0) == __int128{INT64_MAX - 1} * 5000);
}

TEST_P(ScanTest, RowsKeepTheirOrderAndLimit) {
  DeviceTable table = numbers(device());
  const Expression key = Expression::column(0);
  const Query query{.filter = Expression::call(Operation::equal, {key, Expression::literal(kInt64, 3)}),
                    .values = {key, Expression::column(1)},
                    .limit = 1500};
  const ScanResult result = table.scan(query);
  ASSERT_EQ(result.columns[0].length, 1500);
  std::int64_t row = 0;
  for (std::size_t i = 0; i < kRows && row < 1500; ++i) {
    if (i % 23 == 5 || i % 17 != 3) continue;
    EXPECT_EQ(value_of<std::int32_t>(result.columns[0], row), 3);
    EXPECT_EQ(has_value(result.columns[1], row), i % 29 != 7);
    ++row;
  }
}

/// Row numbers in the order of a query's result, which has them as its last value.
std::vector<std::int64_t> rows_of(const ScanResult& result) {
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < result.columns.back().length; ++row) {
    rows.push_back(value_of<std::int64_t>(result.columns.back(), row));
  }
  return rows;
}

TEST_P(ScanTest, RowsAreOrderedOnTheDeviceMissingOnesLast) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  DeviceTable table(device());
  std::vector<std::int64_t> wide(kRows);
  std::vector<std::int32_t> narrow(kRows);
  std::vector<float> real(kRows);
  std::vector<std::int64_t> number(kRows);
  for (std::size_t i = 0; i < kRows; ++i) {
    wide[i] = i % 31 == 3 ? 7 : static_cast<std::int64_t>(i * 0x9E37'79B9'7F4A'7C15 >> 3 << 3) - (i % 5 == 0 ? 1 : 0);
    narrow[i] = i % 23 == 5 ? kNone : static_cast<std::int32_t>(i % 17) * (i % 2 == 0 ? 100'000'000 : -100'000'000);
    real[i] = i % 19 == 4   ? kNan
              : i % 29 == 1 ? kInfinity
              : i % 37 == 2 ? 0.5F
                            : static_cast<float>(i % 101) * (i % 3 == 0 ? -1.0F : 1.0F);
    number[i] = static_cast<std::int64_t>(i);
  }
  table.add("wide", kInt64, wide, std::int64_t{7});
  table.add("narrow", kInt32, narrow, kNone);
  table.add("real", {.id = Type::float32}, real, 0.5F);
  table.add("number", kInt64, number, std::int64_t{-1});
  const std::vector<Expression> values{Expression::column(0), Expression::column(1), Expression::column(2),
                                       Expression::column(3)};
  // Numbers come first, then NaN, then missing values.
  const auto place = [](double value, bool missing, bool descending) {
    const int last = missing ? 2 : std::isnan(value) ? 1 : 0;
    return std::pair(last, last != 0 ? 0.0 : (descending ? -value : value) + 0.0);
  };
  for (const bool descending : {false, true}) {
    std::vector<std::int64_t> expected = number;
    std::ranges::stable_sort(expected, {}, [&](std::int64_t row) {
      const auto i = static_cast<std::size_t>(row);
      return std::pair(place(narrow[i], narrow[i] == kNone, !descending), place(real[i], real[i] == 0.5F, descending));
    });
    Query query{.values = values,
                .order = {{.value = 1, .descending = !descending}, {.value = 2, .descending = descending}}};
    EXPECT_EQ(rows_of(table.scan(query)), expected) << descending;
    query.limit = 1000;
    expected.resize(1000);
    EXPECT_EQ(rows_of(table.scan(query)), expected) << descending;
    query.limit = 0;
    EXPECT_EQ(table.scan(query).columns[0].length, 0);
    // Integers that need all 64 bits.
    std::vector<std::int64_t> by_wide = number;
    std::ranges::stable_sort(by_wide, [&](std::int64_t a, std::int64_t b) {
      const std::int64_t x = wide[static_cast<std::size_t>(a)];
      const std::int64_t y = wide[static_cast<std::size_t>(b)];
      if (x == 7 || y == 7) return x != 7 && y == 7;
      return descending ? x > y : x < y;
    });
    EXPECT_EQ(rows_of(table.scan({.values = values, .order = {{.value = 0, .descending = descending}}})), by_wide);
  }
}

TEST_P(ScanTest, WhatCannotBeOrderedIsRefused) {
  DeviceTable table = numbers(device());
  const Expression key = Expression::column(0);
  EXPECT_THROW(static_cast<void>(table.scan({.values = {key}, .order = {{.value = 1}}})), UsageError);
  EXPECT_THROW(static_cast<void>(table.scan({.keys = {key}, .order = {{.value = 0}}})), UsageError);
}

TEST_P(ScanTest, AnEmptyTableHasNoGroupsAndOneRowOfAggregates) {
  DeviceTable table(device());
  table.add("x", kFloat64, std::vector<double>{}, 0.0);
  EXPECT_EQ(table.scan({.keys = {Expression::column(0)}}).columns[0].length, 0);
  EXPECT_EQ(table.scan({.values = {Expression::column(0)}}).columns[0].length, 0);
  const ScanResult all = table.scan({.aggregates = {{.function = Aggregate::count_rows},
                                                    {.function = Aggregate::sum, .value = Expression::column(0)}}});
  ASSERT_EQ(all.columns[0].length, 1);
  EXPECT_EQ(value_of<std::int64_t>(all.columns[0], 0), 0);
  EXPECT_FALSE(has_value(all.columns[1], 0));
}

TEST_P(ScanTest, WhatDoesNotFitIsAnErrorAndLeavesTheStreamUsable) {
  DeviceTable table(device());
  table.add("x", kInt64, std::vector<std::int64_t>{1, INT64_MAX}, std::int64_t{0});
  const Expression x = Expression::column(0);
  EXPECT_THROW(static_cast<void>(table.scan({.values = {Expression::call(Operation::add, {x, x})}})), UsageError);
  EXPECT_THAT([&] { static_cast<void>(Expression::call(Operation::add, {x})); },
              ::testing::ThrowsMessage<UsageError>("add takes 2 arguments, not 1"));
  EXPECT_THROW(static_cast<void>(table.scan({.values = {Expression::cast(x, kInt32)}})), UsageError);
  EXPECT_EQ(table.scan({.values = {x}}).columns[0].length, 2);
}

TEST_P(ScanTest, ARangeThatIsNotTrueIsAnErrorNotAWriteElsewhere) {
  DeviceTable table = numbers(device());
  table.table().columns[0].range = fetch::ValueRange{0, 3};
  EXPECT_THROW(static_cast<void>(table.scan({.keys = {Expression::column(0)}})), UsageError);
}

TEST_P(ScanTest, AFirstLookTakesAnyNumberOfColumns) {
  DeviceTable table(device());
  constexpr std::int32_t kColumns = 15;
  for (std::int32_t c = 0; c < kColumns; ++c) {
    table.add("x", kInt32, std::vector<std::int32_t>{c, -1, 10 * c, c == 7 ? -1 : 3 * c}, -1);
  }
  const fetch::ScanReport report = fetch::look(table.stream(), table.table());
  for (std::int32_t c = 0; c < kColumns; ++c) {
    const fetch::ColumnFacts& facts = table.table().columns[static_cast<std::size_t>(c)];
    ASSERT_TRUE(facts.range);
    EXPECT_EQ(facts.range->least, c);
    EXPECT_EQ(facts.range->greatest, 10 * c);
    EXPECT_TRUE(facts.nullable);
  }
  EXPECT_EQ(report.read_bytes, kColumns * (4 * sizeof(std::int32_t) + 1));
  EXPECT_GT(report.began, Time{});
  EXPECT_GE(std::chrono::duration<double>(report.ended - report.began).count(), report.seconds * 0.999);
}

TEST_P(ScanTest, FragmentsThatDoNotFitTheTableAreRefused) {
  DeviceTable table = numbers(device());
  const Query query{.aggregates = {{.function = Aggregate::count_rows}}};
  table.table().fragments[0][1].length -= 1;
  EXPECT_THROW(static_cast<void>(table.scan(query)), UsageError);
  table.table().fragments[0].pop_back();
  EXPECT_THROW(static_cast<void>(table.scan(query)), UsageError);
}

HEADRACE_ON_EVERY_DEVICE(ScanTest);

}  // namespace

}  // namespace headrace::testing
