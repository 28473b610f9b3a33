#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "fetch/program/calendar.hpp"
#include "fetch/scan/result.hpp"
#include "fetch/scan/tiles.hpp"
#include "thread_group.hpp"

/// The scan as CUDA runs it, with a few rows per thread and many threads per block, on host threads.
namespace headrace::fetch {

namespace {

constexpr std::uint32_t kThreads = 32;
constexpr std::uint32_t kRows = kTileRows / kThreads;

/// A ThreadGroup with what a scan also needs. Its atomics are those of a CPU.
class BlockGroup : public test_groups::ThreadGroup {
 public:
  static constexpr std::uint32_t kTeam = 32;
  struct Memory {
    alignas(64) std::byte program[sizeof(SharedProgram)];
    alignas(64) std::byte states[sizeof(LocalStates<kBlockWords>)];
  };
  BlockGroup(Block& block, Memory& memory, std::uint32_t rank, std::uint32_t number, std::uint32_t count)
      : ThreadGroup(block, rank), memory_(&memory), number_(number), count_(count) {}

  [[nodiscard]] std::uint32_t block() const { return number_; }
  [[nodiscard]] std::uint32_t block_count() const { return count_; }
  template <class T>
  [[nodiscard]] T& shared() const {
    return *reinterpret_cast<T*>(std::is_same_v<T, SharedProgram> ? memory_->program : memory_->states);
  }
  template <class T>
  [[nodiscard]] T load_relaxed(const T& word) const {
    return CpuGroup::load_relaxed(word);
  }
  template <class T>
  void store_relaxed_on_device(T& word, T value) const {
    CpuGroup::store_relaxed_on_device(word, value);
  }
  template <class T>
  T fetch_add_relaxed_on_device(T& word, T value) const {
    return CpuGroup::fetch_add_relaxed_on_device(word, value);
  }
  template <class T>
  T compare_exchange_relaxed_on_device(T& word, T expected, T value) const {
    return CpuGroup::compare_exchange_relaxed_on_device(word, expected, value);
  }

 private:
  Memory* memory_;
  std::uint32_t number_;
  std::uint32_t count_;
};

/// Runs the blocks one after the other, each with its own threads.
void run_blocks(const ScanWork& work, std::uint32_t blocks) {
  for (std::uint32_t number = 0; number < blocks; ++number) {
    test_groups::ThreadGroup::Block block(kThreads);
    const auto memory = std::make_unique<BlockGroup::Memory>();
    std::vector<std::jthread> threads;
    for (std::uint32_t rank = 0; rank < kThreads; ++rank) {
      threads.emplace_back([&, rank] { scan_tiles<kRows>(BlockGroup(block, *memory, rank, number, blocks), work); });
    }
  }
}

/// As in a chunk, the memory continues after the last value up to a multiple of 16 bytes.
struct Rides {
  explicit Rides(std::size_t count)
      : rows(count), passengers(padded(count)), fares(padded(count)), validity((count + 7) / 8, 0) {
    std::mt19937_64 random(7);
    for (std::size_t i = 0; i < count; ++i) {
      passengers[i] = static_cast<std::int16_t>(random() % 7);
      fares[i] = static_cast<std::int64_t>(random() % 100'000) - 500;
      if (random() % 5 != 0) validity[i / 8] |= static_cast<std::uint8_t>(1U << (i % 8));
    }
  }
  [[nodiscard]] static std::size_t padded(std::size_t count) { return (count + 7) / 8 * 8; }
  [[nodiscard]] bool has_passengers(std::size_t i) const { return ((validity[i / 8] >> (i % 8)) & 1) != 0; }

  [[nodiscard]] TableView table(bool with_range) const {
    const DataType small{.id = Type::int16};
    const DataType fare{.id = Type::int64};
    TableView table;
    table.columns = {{.name = "passengers", .type = small, .nullable = true, .range = ValueRange{0, 6}},
                     {.name = "fare", .type = fare, .nullable = false, .range = ValueRange{-500, 100'000}}};
    if (!with_range) table.columns[0].range = table.columns[1].range = std::nullopt;
    const auto count = static_cast<std::int64_t>(rows);
    const std::int64_t first = count / 3;
    for (const auto& [from, length] : {std::pair{std::int64_t{0}, first}, {first, count - first}}) {
      table.fragments.push_back(
          {ColumnView{.type = small,
                      .values = passengers.data(),
                      .validity = validity.data(),
                      .length = length,
                      .offset = from},
           ColumnView{.type = fare, .values = fares.data(), .length = length, .offset = from, .null_count = 0}});
    }
    return table;
  }

  std::size_t rows;
  std::vector<std::int16_t> passengers;
  std::vector<std::int64_t> fares;
  std::vector<std::uint8_t> validity;
};

/// Arguments of a scan in host memory.
struct HostWork {
  HostWork(const TableView& table, const Compiled& compiled_query) : compiled(compiled_query) {
    for (const auto& fragment : table.fragments) {
      const auto rows = static_cast<std::uint32_t>(fragment[0].length);
      places.push_back({.rows = rows, .first_tile = work.tiles});
      work.tiles += (rows + kTileRows - 1) / kTileRows;
      for (const std::uint32_t column : compiled.columns) columns.push_back(place_of(fragment[column]));
    }
    places.push_back({.rows = 0, .first_tile = work.tiles});
    const Program& program = compiled.program;
    if (program.state_count > 0) {
      const State& last = program.states[program.state_count - 1];
      states.resize((last.block + state_words(last.op)) * program.groups);
      for (std::uint32_t s = 0; s < program.state_count; ++s) {
        if (program.states[s].op == Op::least) {
          std::fill_n(states.begin() + static_cast<std::ptrdiff_t>(program.states[s].block * program.groups),
                      program.groups, ~0ULL);
        }
      }
    }
    tables.assign(compiled.tables, std::vector<std::uint64_t>(compiled.places, kEmptyKey));
    for (std::uint32_t t = 0; t < compiled.tables; ++t) work.tables[t] = {tables[t].data(), compiled.places - 1};
    work.program = &compiled.program;
    work.fragments = places.data();
    work.columns = columns.data();
    work.column_count = static_cast<std::uint32_t>(compiled.columns.size());
    work.states = states.data();
    work.faults = faults;
  }

  Compiled compiled;
  ScanWork work;
  std::vector<FragmentPlace> places;
  std::vector<ColumnPlace> columns;
  std::vector<std::uint64_t> states;
  std::vector<std::vector<std::uint64_t>> tables;
  std::uint32_t faults[kFaults]{};
};

struct Sums {
  std::int64_t count = 0;
  std::int64_t sum = 0;
  std::int64_t least = INT64_MAX;
};

Query by_passengers() {
  const Expression fare = Expression::column(1);
  return {.filter = Expression::call(Operation::less, {fare, Expression::literal({.id = Type::int64}, 90'000)}),
          .keys = {Expression::column(0)},
          .aggregates = {{.function = Aggregate::count_rows},
                         {.function = Aggregate::sum, .value = fare},
                         {.function = Aggregate::min, .value = fare}}};
}

class ScanSimtTest : public ::testing::TestWithParam<CompileOptions> {};

TEST_P(ScanSimtTest, ThreadsOfABlockGatherGroupsTogether) {
  // The second fragment starts at each of these bits of a byte: 3, 7 (a run crosses it) and 0.
  for (const auto& [with_range, rows] : {std::pair{true, 5003}, {false, 5003}, {true, 4101}, {true, 4106}}) {
    const Rides rides(static_cast<std::size_t>(rows));
    const TableView table = rides.table(with_range);
    HostWork host(table, compile(table, by_passengers(), GetParam()));
    run_blocks(host.work, 3);
    const std::vector<ResultColumn> found = group_columns(host.compiled, host.states, host.tables);

    std::map<std::int64_t, Sums> expected;  // -1: missing
    for (std::size_t i = 0; i < rides.rows; ++i) {
      if (rides.fares[i] >= 90'000) continue;
      Sums& sums = expected[rides.has_passengers(i) ? rides.passengers[i] : -1];
      ++sums.count;
      sums.sum += rides.fares[i];
      sums.least = std::min(sums.least, rides.fares[i]);
    }
    ASSERT_EQ(found[0].length, static_cast<std::int64_t>(expected.size()));
    for (std::size_t row = 0; row < expected.size(); ++row) {
      const bool missing = !found[0].validity.empty() && ((found[0].validity[row / 8] >> (row % 8)) & 1) == 0;
      const std::int64_t key = missing ? -1 : reinterpret_cast<const std::int16_t*>(found[0].values.data())[row];
      const Sums& sums = expected.at(key);
      EXPECT_EQ(reinterpret_cast<const std::int64_t*>(found[1].values.data())[row], sums.count);
      EXPECT_EQ(reinterpret_cast<const std::int64_t*>(found[2].values.data())[2 * row], sums.sum);
      EXPECT_EQ(reinterpret_cast<const std::int64_t*>(found[3].values.data())[row], sums.least);
    }
    for (const std::uint32_t fault : host.faults) EXPECT_EQ(fault, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Memory, ScanSimtTest,
                         ::testing::Values(CompileOptions{},                   // a copy per thread
                                           CompileOptions{.copies_max = 4},    // shared copies
                                           CompileOptions{.local_words = 8},   // device memory
                                           CompileOptions{.local_words = 32},  // some groups in the block's memory
                                           CompileOptions{.local_words = 32, .holds_groups = false},
                                           CompileOptions{.places = 64, .local_words = kBlockWords}  // small tables
                                           ));

TEST(ScanSimt, RowsAreWrittenInTheTablesOrder) {
  const Rides rides(4100);
  const TableView table = rides.table(true);
  const Query query{.filter = by_passengers().filter, .values = {Expression::column(1)}};
  HostWork host(table, compile(table, query, {}));
  std::vector<std::int64_t> expected;
  std::vector<std::int64_t> tile_first;
  const auto first_rows = static_cast<std::size_t>(table.fragments[0][0].length);
  for (std::size_t i = 0; i < rides.rows; ++i) {
    const std::size_t in_fragment = i < first_rows ? i : i - first_rows;
    if (in_fragment % kTileRows == 0) tile_first.push_back(static_cast<std::int64_t>(expected.size()));
    if (rides.fares[i] < 90'000) expected.push_back(rides.fares[i]);
  }
  std::vector<std::int64_t> values(expected.size());
  std::vector<std::uint8_t> valid(expected.size());
  const Output output{values.data(), valid.data()};
  host.work.outputs = &output;
  host.work.tile_rows = tile_first.data();
  host.work.limit = static_cast<std::int64_t>(expected.size()) - 10;
  run_blocks(host.work, 2);
  std::fill_n(expected.end() - 10, 10, 0);  // beyond the limit
  EXPECT_EQ(values, expected);
}

/// The years of stamps of microseconds, counted; -1: missing.
std::map<std::int64_t, std::int64_t> years_of(const std::vector<std::int64_t>& stamps,
                                              const std::vector<std::uint8_t>& validity, bool skip_2010) {
  std::map<std::int64_t, std::int64_t> years;
  for (std::size_t i = 0; i < stamps.size(); ++i) {
    const bool there = ((validity[i / 8] >> (i % 8)) & 1) != 0;
    const std::int64_t year = year_of(floor_divide(stamps[i], units_per_day(TimeUnit::microsecond)));
    if (!skip_2010 || (there && year != 2010)) ++years[there ? year : -1];
  }
  return years;
}

TEST(ScanSimt, YearsAreThoseOfTheCalendarWhateverRangeIsClaimed) {
  constexpr std::int64_t kYear2008 = 1'199'145'600'000'000;
  constexpr std::int64_t kYear2013 = 1'356'998'400'000'000;
  std::mt19937_64 random(3);
  std::vector<std::int64_t> stamps(5000);
  std::vector<std::uint8_t> validity(stamps.size() / 8);
  for (std::size_t i = 0; i < stamps.size(); ++i) {
    stamps[i] = kYear2008 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(kYear2013 - kYear2008));
    if (random() % 50 == 0) {
      stamps[i] = -stamps[i];  // missing values may hold anything
    } else {
      validity[i / 8] |= static_cast<std::uint8_t>(1U << (i % 8));
    }
  }
  const DataType type{.id = Type::timestamp, .unit = TimeUnit::microsecond};
  TableView table;
  table.columns = {{.name = "at", .type = type, .nullable = true, .range = ValueRange{kYear2008, kYear2013 - 1}}};
  table.fragments = {{ColumnView{.type = type,
                                 .values = stamps.data(),
                                 .validity = validity.data(),
                                 .length = static_cast<std::int64_t>(stamps.size())}}};
  const Expression year = Expression::call(Operation::year, {Expression::column(0)});
  const auto count = [&](const Query& query) {
    const Compiled compiled = compile(table, query, {});
    HostWork host(table, compiled);
    run_blocks(host.work, 2);
    const std::vector<ResultColumn> found = group_columns(host.compiled, host.states, host.tables);
    std::map<std::int64_t, std::int64_t> years;
    for (std::int64_t row = 0; row < found[0].length; ++row) {
      years[has_value(found[0], row) ? bits_at(found[0], row) : -1] = bits_at(found[1], row);
    }
    for (const std::uint32_t fault : host.faults) EXPECT_EQ(fault, 0U);
    return years;
  };
  EXPECT_EQ(count({.keys = {year}, .aggregates = {{}}}), years_of(stamps, validity, false));
  // A false range is no error if it determines no group's number: the key has its own range.
  table.columns[0].range = ValueRange{kYear2008, kYear2008 + 1};
  const Expression other =
      Expression::call(Operation::not_equal, {year, Expression::literal({.id = Type::int64}, 2010)});
  const Compiled compiled = compile(table, {.filter = other, .aggregates = {{}}}, {});
  HostWork host(table, compiled);
  run_blocks(host.work, 2);
  std::int64_t expected = 0;
  for (const auto& [_, rows] : years_of(stamps, validity, true)) expected += rows;
  EXPECT_EQ(bits_at(group_columns(host.compiled, host.states, host.tables)[0], 0), expected);
}

/// 128-bit decimals, every third of which is missing and holds anything.
struct WideDecimals {
  explicit WideDecimals(std::size_t count) : values(count), validity((count + 7) / 8, 0) {
    std::mt19937_64 random(11);
    for (std::size_t i = 0; i < count; ++i) {
      values[i] =
          static_cast<__int128>(static_cast<std::int64_t>(random())) * 1'000'003 + static_cast<int>(random() % 9);
      if (i % 3 == 0) continue;
      validity[i / 8] |= static_cast<std::uint8_t>(1U << (i % 8));
      sum += values[i];
      ++there;
    }
  }
  [[nodiscard]] TableView table() const {
    const DataType type{.id = Type::decimal128, .precision = 38, .scale = 0};
    TableView table;
    table.columns = {{.name = "wide", .type = type, .nullable = true, .range = {}}};
    table.fragments = {{ColumnView{.type = type,
                                   .values = values.data(),
                                   .validity = validity.data(),
                                   .length = static_cast<std::int64_t>(values.size())}}};
    return table;
  }

  std::vector<__int128> values;
  std::vector<std::uint8_t> validity;
  __int128 sum = 0;
  std::int64_t there = 0;
};

TEST(ScanSimt, WideDecimalsAreSummedInTwoHalves) {
  const WideDecimals wide(5003);
  const TableView table = wide.table();
  const Expression column = Expression::column(0);
  const Query query{.aggregates = {{.function = Aggregate::sum, .value = column},
                                   {.function = Aggregate::count, .value = column},
                                   {.function = Aggregate::average, .value = column}}};
  HostWork narrow(table, compile(table, query, {}));
  run_blocks(narrow.work, 2);
  EXPECT_TRUE(narrow.compiled.narrow_sums);
  EXPECT_NE(narrow.faults[static_cast<std::size_t>(Fault::wide_decimal)], 0U);
  HostWork host(table, compile(table, query, {.wide_sums = true}));
  run_blocks(host.work, 2);
  for (const std::uint32_t fault : host.faults) EXPECT_EQ(fault, 0U);
  const std::vector<ResultColumn> found = group_columns(host.compiled, host.states, host.tables);
  EXPECT_TRUE(wide_at(found[0], 0) == wide.sum);
  EXPECT_EQ(bits_at(found[1], 0), wide.there);
  EXPECT_DOUBLE_EQ(as_double(bits_at(found[2], 0)),
                   static_cast<double>(static_cast<long double>(wide.sum) / static_cast<long double>(wide.there)));
}

TEST(ScanSimt, WideDecimalsAreWrittenInTwoHalves) {
  const WideDecimals wide(2100);
  const TableView table = wide.table();
  const Expression column = Expression::column(0);
  const Expression present = Expression::call(Operation::logical_not, {Expression::call(Operation::is_null, {column})});
  HostWork host(table, compile(table, {.filter = present, .values = {column}}, {}));
  ASSERT_EQ(host.compiled.output_count, 2U);
  std::vector<__int128> expected;
  std::vector<std::int64_t> tile_first;
  for (std::size_t i = 0; i < wide.values.size(); ++i) {
    if (i % kTileRows == 0) tile_first.push_back(static_cast<std::int64_t>(expected.size()));
    if (i % 3 != 0) expected.push_back(wide.values[i]);
  }
  std::vector<std::int64_t> low(expected.size());
  std::vector<std::int64_t> high(expected.size());
  std::vector<std::uint8_t> valid(expected.size());
  const std::array outputs{Output{low.data(), valid.data()}, Output{high.data(), valid.data()}};
  host.work.outputs = outputs.data();
  host.work.tile_rows = tile_first.data();
  host.work.limit = static_cast<std::int64_t>(expected.size());
  run_blocks(host.work, 2);
  for (const std::uint32_t fault : host.faults) EXPECT_EQ(fault, 0U);
  const ResultColumn column_of = emitted_column(table.columns[0].type, low, high, valid);
  EXPECT_EQ(column_of.null_count, 0);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_TRUE(wide_at(column_of, static_cast<std::int64_t>(i)) == expected[i]) << i;
  }
}

TEST(ScanSimt, AFullKeyTableIsAFault) {
  const Rides rides(3000);
  const TableView table = rides.table(false);
  Query query = by_passengers();
  query.keys = {Expression::column(1)};
  HostWork host(table, compile(table, query, {.places = 16}));
  run_blocks(host.work, 1);
  EXPECT_NE(host.faults[static_cast<std::size_t>(Fault::table_full)], 0U);
}

}  // namespace

}  // namespace headrace::fetch
