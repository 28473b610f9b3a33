#include "headrace/operators/lookup.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/serve/detail/rungs.hpp"
#include "serve/load_target.hpp"
#include "tests/contract/every_plan.hpp"

namespace headrace::testing {
namespace {

using operators::ElementType;
using operators::lookup;
using operators::LookupOptions;
using operators::LookupTable;
using operators::Pooling;
using serve::Client;
using serve::Engine;
using serve::Operator;
using serve::Plan;

LookupTable table_of(const std::vector<float>& values, std::uint32_t columns) {
  return {.data = values.data(), .row_count = values.size() / columns, .column_count = columns};
}

std::vector<float> fractions(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = std::uniform_real_distribution<float>(-1, 1)(random);
  return values;
}

/// Whole numbers small enough that every sum is exact in float32, in any order.
std::vector<float> whole_numbers(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 2000) - 1000);
  return values;
}

/// Counts with popular rows all over the table.
std::vector<std::uint64_t> scattered_counts(std::size_t rows) {
  std::vector<std::uint64_t> counts(rows);
  for (std::size_t row = 0; row < rows; ++row) counts[row] = row * 7919 % 1009;
  return counts;
}

std::vector<std::uint32_t> query_for(const std::vector<std::uint32_t>& rows, std::uint32_t most) {
  std::vector<std::uint32_t> query(std::size_t{1} + most, 0xFFFFFFFFU);  // rows beyond the count are invalid
  query[0] = static_cast<std::uint32_t>(rows.size());
  std::ranges::copy(rows.begin(), rows.begin() + std::min<std::ptrdiff_t>(std::ssize(rows), most), query.begin() + 1);
  return query;
}

std::vector<float> answered(const Operator& op, std::span<const std::uint32_t> query) {
  const std::vector<std::byte> bytes = answer_of(op, std::as_bytes(query));
  std::vector<float> answer(bytes.size() / sizeof(float));
  std::memcpy(answer.data(), bytes.data(), bytes.size());
  return answer;
}

std::vector<float> by_plain_loop(const std::vector<float>& values, std::uint32_t columns,
                                 const std::vector<std::uint32_t>& rows, Pooling pooling) {
  std::vector<float> pooled(columns);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::uint32_t column = 0; column < columns; ++column) {
      const float value = values[std::size_t{rows[i]} * columns + column];
      const bool larger = i == 0 || value > pooled[column];
      pooled[column] = pooling != Pooling::max ? pooled[column] + value : larger ? value : pooled[column];
    }
  }
  if (pooling == Pooling::mean && !rows.empty()) {
    for (float& value : pooled) value /= static_cast<float>(rows.size());
  }
  return pooled;
}

bool all_quiet_nan(const std::vector<float>& answer) {
  return std::ranges::all_of(answer, [](float value) { return std::bit_cast<std::uint32_t>(value) == 0x7FC00000U; });
}

std::string lookup_refusal(const LookupTable& table, const LookupOptions& options = {}) {
  try {
    static_cast<void>(lookup(table, options));
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

class LookupOnDevice : public DeviceTest {
 protected:
  [[nodiscard]] static bool has_spans() { return device().properties().virtual_memory_management; }
};
HEADRACE_ON_EVERY_DEVICE(LookupOnDevice);

TEST_P(LookupOnDevice, EveryPlanAnswersBitForBitLikeTheHost) {
  const std::vector<float> values = fractions(std::size_t{999} * 21, 1);
  for (const ElementType element : {ElementType::float16, ElementType::float32}) {
    const Operator op = lookup(table_of(values, 21), {.most = 19, .weighted = true, .element = element});
    SCOPED_TRACE(to_string(element));
    ASSERT_NO_FATAL_FAILURE(exchange_under_every_plan(device(), op, 40));
  }
}

TEST_P(LookupOnDevice, AnyNumberOfThreadsAndBlocksAndInlineAnswersGiveTheSameBits) {
  const std::vector<float> values = fractions(std::size_t{500} * 300, 2);
  for (const Pooling pooling : {Pooling::mean, Pooling::max}) {
    const Operator op = lookup(table_of(values, 300), {.most = 70, .pooling = pooling});
    for (const std::uint32_t threads : {32U, 96U, 1024U}) {
      Plan plan = serve::find_rung("page-locked").plan;
      plan.block_threads = threads;
      plan.blocks = threads == 96 ? 2 : 1;
      Engine engine(device(), op, plan);
      Client client = engine.connect();
      ASSERT_NO_FATAL_FAILURE(exchange(client, op, 1, 20));
    }
    Plan plan = serve::find_rung("dispatched").plan;
    plan.hang_after = std::chrono::hours(1);  // the machine may be busy
    plan.answer_inline = true;
    Engine engine(device(), op, plan);
    Client client = engine.connect();
    ASSERT_NO_FATAL_FAILURE(exchange(client, op, 1, 20));
  }
}

TEST_P(LookupOnDevice, RowsOnTheHostGiveTheBitsOfRowsOnTheDevice) {
  if (!has_spans()) GTEST_SKIP() << "no virtual memory management";
  constexpr std::uint32_t kColumns = 96;
  const std::size_t rows = 4 * kPageBytes / (kColumns * sizeof(float)) + 100;  // five pages
  const std::vector<float> values = fractions(rows * kColumns, 3);
  const std::vector<std::uint64_t> counts = scattered_counts(rows);
  LookupOptions options{.most = 40, .element = ElementType::float32, .exponent = 0.5};
  const Operator whole = lookup(table_of(values, kColumns), options);
  for (const bool counted : {false, true}) {
    options.counts = counted ? std::span<const std::uint64_t>(counts) : std::span<const std::uint64_t>();
    for (const std::size_t device_bytes : {std::size_t{0}, 2 * kPageBytes + 5}) {
      options.device_bytes = device_bytes;
      const Operator split = lookup(table_of(values, kColumns), options);
      Engine engine(device(), split, plan_of(serve::Schedule::pipelined));
      Client client = engine.connect();
      ASSERT_NO_FATAL_FAILURE(exchange(client, whole, 1, 200)) << device_bytes << " bytes on the device";
    }
  }
}

TEST_P(LookupOnDevice, RowsOfASpanAreReadWhereTheyLie) {
  if (!has_spans()) GTEST_SKIP() << "no virtual memory management";
  constexpr std::uint32_t kColumns = 64;
  const std::size_t rows = 3 * kPageBytes / (kColumns * sizeof(float));
  const std::vector<float> values = fractions(rows * kColumns, 4);
  const auto span = std::make_shared<Span>(device(), rows * kColumns * sizeof(float),
                                           Placement::map({Place::on(device()), Place::host(), Place::on(device())}));
  Stream stream(device());
  stream.copy(span->data(), values.data(), span->bytes()).or_throw("copying");
  stream.wait().or_throw("copying");
  const LookupOptions options{.most = 10, .element = ElementType::float32};
  const Operator copied = lookup(table_of(values, kColumns), options);
  const Operator in_place = lookup(span, rows, kColumns, options);
  {
    Engine engine(device(), in_place, plan_of(serve::Schedule::pipelined));
    Client client = engine.connect();
    ASSERT_NO_FATAL_FAILURE(exchange(client, copied, 1, 100));
  }
  ASSERT_EQ(answer_of(in_place, query_of(copied, 3)), answer_of(copied, query_of(copied, 3)));
  const std::vector<float> changed(kColumns, 5);  // row 0 of the span itself
  stream.copy(span->data(), changed.data(), kColumns * sizeof(float)).or_throw("copying");
  stream.wait().or_throw("copying");
  EXPECT_EQ(answered(in_place, query_for({0, 0}, 10)), std::vector<float>(kColumns, 10));
}

TEST_P(LookupOnDevice, InvalidQueriesAreNanOnTheDeviceToo) {
  const std::vector<float> values(std::size_t{100} * 40, 1);
  const Operator op = lookup(table_of(values, 40), {.most = 200});
  Engine engine(device(), op, plan_of(serve::Schedule::pipelined));
  Client client = engine.connect();
  std::vector<std::uint32_t> last_is_none(200, 99);
  last_is_none.back() = 100;
  const std::vector<std::vector<std::uint32_t>> queries{query_for(last_is_none, 200), query_for({7}, 200),
                                                        query_for(std::vector<std::uint32_t>(201, 1), 200)};
  for (const auto& query : queries) ASSERT_TRUE(client.submit(std::as_bytes(std::span(query))).ok());
  std::vector<std::vector<float>> answers;
  while (answers.size() < queries.size()) {
    client.poll([&](const serve::Completion& done) {
      ASSERT_TRUE(succeeded(done.status));
      std::memcpy(answers.emplace_back(40).data(), done.answer.data(), 40 * sizeof(float));
    });
  }
  EXPECT_TRUE(all_quiet_nan(answers[0]));
  EXPECT_EQ(answers[1], std::vector<float>(40, 1)) << "the next query is answered";
  EXPECT_TRUE(all_quiet_nan(answers[2]));
}

TEST(Lookup, WholeNumbersAreWhatAPlainLoopSays) {
  for (const std::uint32_t columns : {1U, 7U, 8U, 9U, 256U, 257U, 600U}) {
    const std::vector<float> values = whole_numbers(std::size_t{50} * columns, columns);
    for (const std::uint32_t count : {0U, 1U, 7U, 8U, 9U, 31U, 64U}) {
      std::vector<std::uint32_t> rows(count);
      for (std::uint32_t i = 0; i < count; ++i) rows[i] = i * 17 % 50;
      for (const Pooling pooling : {Pooling::sum, Pooling::mean, Pooling::max}) {
        for (const ElementType element : {ElementType::float16, ElementType::float32}) {
          const Operator op = lookup(table_of(values, columns), {.most = 64, .pooling = pooling, .element = element});
          EXPECT_EQ(answered(op, query_for(rows, 64)), by_plain_loop(values, columns, rows, pooling))
              << count << " rows of " << columns;
        }
      }
    }
  }
}

TEST(Lookup, WeightsScaleTheirRows) {
  const std::vector<float> values{1, 2, 10, 20};
  const Operator op = lookup(table_of(values, 2), {.most = 3, .weighted = true});
  std::vector<std::uint32_t> query{2, 1, 0, 9, 0, 0, 0};
  const std::vector<float> weights{0.5F, -4};
  std::memcpy(query.data() + 4, weights.data(), 2 * sizeof(float));
  EXPECT_EQ(answered(op, query), (std::vector<float>{1, 2}));
}

TEST(Lookup, InvalidQueriesAreQuietNanInEveryColumn) {
  const std::vector<float> values(std::size_t{10} * 3, 1);
  const Operator op = lookup(table_of(values, 3), {.most = 4});
  EXPECT_TRUE(all_quiet_nan(answered(op, query_for({1, 10}, 4))));
  EXPECT_TRUE(all_quiet_nan(answered(op, query_for({1, 2, 3, 4, 5}, 4))));
  EXPECT_TRUE(all_quiet_nan(answered(op, std::vector<std::uint32_t>{0xFFFFFFFFU, 0, 0, 0, 0})));
  EXPECT_EQ(answered(op, query_for({}, 4)), (std::vector<float>{0, 0, 0})) << "no rows are a valid query";
}

TEST(Lookup, CountsStoreRowsByPopularityAndKeepTheirNumbers) {
  const std::vector<float> values = whole_numbers(std::size_t{300} * 8, 6);
  const std::vector<std::uint64_t> counts = scattered_counts(300);
  const Operator op = lookup(table_of(values, 8), {.most = 4, .device_bytes = 0, .counts = counts});
  const serve::LoadedState loaded = op.load(Device::parse("cpu"));
  operators::LookupState state;
  std::memcpy(&state, loaded.bytes.data(), sizeof(state));
  ASSERT_NE(state.places, nullptr);
  for (std::uint32_t row = 0; row + 1 < 300; ++row) {
    const bool before = counts[row] >= counts[row + 1];
    EXPECT_EQ(state.places[row] < state.places[row + 1], before) << row;
  }
  EXPECT_EQ(answered(op, query_for({299, 5}, 4)), by_plain_loop(values, 8, {299, 5}, Pooling::sum));
  const Operator fits = lookup(table_of(values, 8), {.device_bytes = 300 * 16, .counts = counts});
  std::memcpy(&state, fits.load(Device::parse("cpu")).bytes.data(), sizeof(state));
  EXPECT_EQ(state.places, nullptr) << "all of the table fits";
}

TEST(Lookup, SamplesFollowCountsOrZipfsLaw) {
  const std::vector<float> values(std::size_t{100}, 1);
  std::vector<std::uint64_t> counts(100, 0);
  counts[17] = 3;
  counts[60] = 1;
  const auto drawn = [](const Operator& op) {
    std::vector<std::uint32_t> seen(100, 0);
    for (std::uint64_t number = 0; number < 400; ++number) {
      std::vector<std::uint32_t> query(11);
      std::memcpy(query.data(), query_of(op, number).data(), 44);
      EXPECT_LE(query[0], 10U);
      for (std::uint32_t i = 1; i <= query[0]; ++i) ++seen.at(query[i]);
    }
    return seen;
  };
  std::vector<std::uint32_t> seen = drawn(lookup(table_of(values, 1), {.most = 10, .counts = counts}));
  EXPECT_NEAR(static_cast<double>(seen[17]) / (seen[17] + seen[60]), 0.75, 0.03);
  seen[17] = seen[60] = 0;
  EXPECT_EQ(*std::ranges::max_element(seen), 0U);
  seen = drawn(lookup(table_of(values, 1), {.most = 10, .counts = counts, .exponent = 1.05}));
  EXPECT_GT(std::ranges::count_if(seen, [](std::uint32_t count) { return count > 0; }), 90);
  std::ranges::sort(seen, std::ranges::greater{});
  EXPECT_NEAR(static_cast<double>(seen[0]) / seen[9], std::pow(10, 1.05), 3);
}

TEST(Lookup, LoadsAskMoreDifferentQueriesOfALargerTable) {
  const std::vector<float> values(100'000, 1);
  const Operator small = lookup({.data = values.data(), .row_count = 100, .column_count = 1});
  EXPECT_EQ(serve::detail::load_queries(small), (64U << 10) / small.query_bytes);
  const Operator large = lookup(table_of(values, 1));
  EXPECT_EQ(serve::detail::load_queries(large), 4U * 100'000 / 32);
  EXPECT_EQ(serve::detail::load_queries(lookup(table_of(values, 1), {.most = 1})), 65536U);
}

TEST(Lookup, NamesWhatIsWrong) {
  std::vector<float> values{1, 2, 3, 4};
  const std::vector<std::uint64_t> counts{1, 2, 3};
  const std::vector<std::uint64_t> zeros{0, 0};
  const std::vector<std::uint64_t> huge{std::numeric_limits<std::uint64_t>::max(), 1};
  EXPECT_EQ(lookup_refusal({}), "lookup: rows of the table must be 1 to 4294967295, not 0");
  EXPECT_EQ(lookup_refusal({.data = values.data(), .row_count = std::uint64_t{1} << 32, .column_count = 1}),
            "lookup: rows of the table must be 1 to 4294967295, not 4294967296");
  EXPECT_EQ(lookup_refusal({.data = values.data(), .row_count = 1, .column_count = 4097}),
            "lookup: columns of the table must be 1 to 4096, not 4097");
  EXPECT_EQ(lookup_refusal({.row_count = 1, .column_count = 1}), "lookup: a table is needed");
  EXPECT_EQ(lookup_refusal(table_of(values, 2), {.most = 1025}), "lookup: most must be 1 to 1024, not 1025");
  EXPECT_EQ(lookup_refusal(table_of(values, 2), {.threads = 0}), "lookup: threads must be 1 to 1024, not 0");
  EXPECT_EQ(lookup_refusal(table_of(values, 2), {.pooling = Pooling::mean, .weighted = true}),
            "lookup: weights are possible only with sum pooling");
  EXPECT_EQ(lookup_refusal(table_of(values, 2), {.counts = counts}),
            "lookup: there are 3 counts, but the table has 2 rows");
  EXPECT_EQ(lookup_refusal(table_of(values, 2), {.counts = zeros}), "lookup: counts are all 0");
  EXPECT_EQ(lookup_refusal(table_of(values, 2), {.counts = huge}), "lookup: counts add up to 2^64 or more");
  EXPECT_EQ(lookup_refusal(table_of(values, 2), {.exponent = -1}),
            "lookup: the exponent of Zipf's law must be finite and 0 or more, not -1");
  EXPECT_EQ(lookup_refusal(table_of(values, 2), {.exponent = std::nan("")}),
            "lookup: the exponent of Zipf's law must be finite and 0 or more, not nan");
  values[3] = 70000;
  EXPECT_EQ(lookup_refusal(table_of(values, 2)),
            "lookup: element (1, 1) of the table is 70000, which is not finite as float16");
}

TEST(Lookup, SeveralThreadsStoreALargeTable) {
  constexpr std::uint32_t kRows = 1U << 19;  // four threads
  std::vector<float> values(std::size_t{kRows} * 8);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 2003);
  const Operator op = lookup(table_of(values, 8), {.most = 2});
  const serve::LoadedState state = op.load(Device::parse("cpu"));
  for (std::uint32_t row = 0; row < kRows; row += 1009) {
    const std::array<std::uint32_t, 3> query{1, row, 0};
    std::array<float, 8> answer{};
    serve::answer_here(op, state, std::as_bytes(std::span(query)).data(),
                       std::as_writable_bytes(std::span(answer)).data());
    ASSERT_TRUE(std::equal(answer.begin(), answer.end(), values.begin() + std::ptrdiff_t{row} * 8)) << row;
  }
  values[(std::size_t{kRows} - 1) * 8 + 3] = INFINITY;
  EXPECT_EQ(lookup_refusal(table_of(values, 8)),
            "lookup: element (524287, 3) of the table is inf, which is not finite as float16");
  values[std::size_t{5} * 8 + 2] = INFINITY;
  EXPECT_EQ(lookup_refusal(table_of(values, 8)),
            "lookup: element (5, 2) of the table is inf, which is not finite as float16");
}

TEST(Lookup, NamesWhatIsWrongWithASpan) {
  const Device cpu = Device::parse("cpu");
  const auto span = std::make_shared<Span>(cpu, kPageBytes, Placement::all(Place::host()));
  const auto message = [](const std::shared_ptr<const Span>& rows, std::uint64_t row_count, std::uint32_t columns,
                          const LookupOptions& options = {}) -> std::string {
    try {
      static_cast<void>(lookup(rows, row_count, columns, options));
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message(nullptr, 1, 8), "lookup: there is no span, or it was released");
  EXPECT_EQ(message(span, 1, 12), "lookup: rows of a span must have a multiple of 8 columns, not 12");
  EXPECT_EQ(message(span, 1, 8, {.device_bytes = 0}),
            "lookup: the rows of a span are already placed; leave out the bytes on the device and the counts");
  EXPECT_EQ(message(span, 131073, 8),
            "lookup: 131073 rows of 8 columns as float16 take 2097168 bytes, but the span has 2097152");
  EXPECT_EQ(message(span, 131072, 8), "");
  EXPECT_EQ(message(span, (std::uint64_t{1} << 32) - 1, 4096),
            "lookup: 4294967295 rows of 4096 columns as float16 take 35184372080640 bytes, but the span has 2097152");
  const Operator op = lookup(span, 131072, 8);
  span->allow(cpu, Right::none);
  span->allow_host(Right::none);
  EXPECT_THROW(static_cast<void>(op.load(cpu)), UsageError);
  span->release();
  EXPECT_THROW(static_cast<void>(op.load(cpu)), UsageError);
}

}  // namespace
}  // namespace headrace::testing
