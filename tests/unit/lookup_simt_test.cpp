#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

#include "headrace/device/span.hpp"
#include "headrace/operators/lookup.hpp"
#include "operators/elements/stored.hpp"
#include "tests/unit/thread_group.hpp"

/// The pooling of a Lookup as CUDA runs it: threads share parts and units, with several loads before the first sum.
namespace headrace::operators {
namespace {

class PoolingGroup : public test_groups::ThreadGroup {
 public:
  explicit PoolingGroup(const ThreadGroup& group) : ThreadGroup(group) {}
  [[nodiscard]] bool any(bool value) const { return sum(std::uint64_t{value ? 1U : 0U}) > 0; }
};

std::vector<float> fractions(std::size_t count) {
  std::mt19937 random(1);
  std::vector<float> values(count);
  for (float& value : values) value = std::uniform_real_distribution<float>(-1, 1)(random);
  return values;
}

void expect_the_hosts_answers(const LookupOptions& options, std::uint32_t columns) {
  const std::vector<float> values = fractions(std::size_t{77} * columns);
  const serve::Operator op = lookup({.data = values.data(), .row_count = 77, .column_count = columns}, options);
  const serve::LoadedState loaded = op.load(Device::parse("cpu"));
  LookupState state;
  std::memcpy(&state, loaded.bytes.data(), sizeof(state));
  std::vector<std::uint32_t> query(op.query_bytes / sizeof(std::uint32_t));
  op.sample(3, reinterpret_cast<std::byte*>(query.data()));
  for (std::uint32_t count = 0; count <= options.most + 1; count += 3) {
    query[0] = count;
    std::vector<float> expected(columns);
    Lookup::answer(CpuGroup{}, state, query.data(), expected.data());
    for (const std::uint32_t threads : {1U, 7U, 32U}) {
      std::vector<float> answer(columns);
      test_groups::run_block(threads, [&](const test_groups::ThreadGroup& group) {
        Lookup::answer(PoolingGroup(group), state, query.data(), answer.data());
      });
      EXPECT_EQ(std::memcmp(answer.data(), expected.data(), columns * sizeof(float)), 0)
          << threads << " threads, " << count << " rows of " << columns;
    }
  }
}

TEST(LookupSimt, BlocksOfAnyNumberOfThreadsGiveTheBitsOfTheHost) {
  for (const std::uint32_t columns : {5U, 64U, 300U}) {
    expect_the_hosts_answers({.most = 50, .weighted = true}, columns);
    expect_the_hosts_answers({.most = 50, .element = ElementType::float32}, columns);
    expect_the_hosts_answers({.most = 50, .pooling = Pooling::mean}, columns);
    expect_the_hosts_answers({.most = 50, .pooling = Pooling::max}, columns);
  }
}

TEST(Stored, FirstPagesWithinTheBudgetGoToTheDevice) {
  const Device cpu = Device::parse("cpu");
  std::vector<std::byte> bytes(4 * kPageBytes + 100);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 31 >> 8);
  for (const std::size_t pages : {std::size_t{0}, std::size_t{2}}) {
    const Placed placed = place_within(cpu, bytes, pages * kPageBytes + 5, "copying");
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), placed.data));
    const auto& span = *static_cast<const Span*>(placed.owner.get());
    ASSERT_EQ(span.page_count(), 5U);
    for (std::size_t page = 0; page < 5; ++page) EXPECT_EQ(span.place(page).is_host(), page >= pages) << page;
  }
}

}  // namespace
}  // namespace headrace::operators
