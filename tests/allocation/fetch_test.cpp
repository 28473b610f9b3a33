#include <memory>
#include <vector>

#include "failing_new.hpp"
#include "headrace/fetch/table.hpp"
#include "tests/fetch_tables.hpp"

namespace headrace::testing {
namespace {

using namespace fetch;

Expression column(std::uint32_t number) { return Expression::column(number); }

Levels levels(std::size_t device_bytes) {
  return Levels(Device::parse("cpu:41"),
                {.cpu_bytes = 64 * kMiB, .device_bytes = device_bytes, .slab_bytes = 16 * kKiB});
}

std::vector<Query> queries() {
  const Expression some = Expression::call(Operation::greater, {column(0), Expression::literal({}, 100)});
  return {{.filter = some,
           .keys = {column(4)},
           .aggregates = {{.function = Aggregate::count_rows}, {.function = Aggregate::sum, .value = column(0)}}},
          {.values = {column(0), column(1)}, .order = {{.value = 1, .descending = true}}, .limit = 10}};
}

/// oneTBB ends the program if one of its threads has no memory, so a single thread makes chunks here.
constexpr FetchOptions kOneThread{.threads = 1};

TEST(AllocationFailuresOfTables, AreExceptions) {
  const std::vector<Query> asked = queries();
  fail_each_allocation("a table", [&] {
    Table table(levels(64 * kMiB), table_of({.rows = 300, .fragments = 2}), kOneThread);
    for (const Query& query : asked) EXPECT_GT(table.scan(query).columns.at(0).length, 0);
  });
}

TEST(AllocationFailuresOfTables, InWindowsAreExceptions) {
  const std::vector<Query> asked = queries();
  fail_each_allocation("a table in windows", [&] {
    Table table(levels(112 * kKiB), table_of({.rows = 1500, .fragments = 5}), kOneThread);
    EXPECT_GT(table.scan(asked.front()).columns.at(0).length, 0);
  });
}

TEST(AllocationFailuresOfFetches, AreExceptions) {
  for (const Level to : {Level::device, Level::cpu}) {
    fail_each_allocation("a fetch", [&] {
      const auto source = table_of({.rows = 300, .fragments = 3});
      Fetch fetch(levels(64 * kMiB), source, {.columns = {0, 1, 4}, .to = to, .options = kOneThread});
      fetch.wait();
      EXPECT_EQ(value_at(fetch.view(0, 2), 299), value_of(0, 299));
    });
  }
}

}  // namespace
}  // namespace headrace::testing
