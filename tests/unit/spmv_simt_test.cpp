#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <random>
#include <thread>
#include <vector>

#include "operators/spmv/layout.hpp"
#include "operators/spmv/spmv.hpp"

namespace headrace::operators {
namespace {

/// The threads of one block as host threads, which meet at barriers as on a GPU. With it, code that only devices with
/// teams run is tested without such a device.
class SimtBlock {
 public:
  static constexpr std::uint32_t kThreads = 64;
  static constexpr std::uint32_t kTeam = 32;

  std::barrier<> all{kThreads};
  std::array<std::barrier<>, kThreads / kTeam> teams{std::barrier<>{kTeam}, std::barrier<>{kTeam}};
  std::array<double, kThreads> exchanged{};
  alignas(64) std::array<std::byte, sizeof(double) * kSpmvChunkEntries> memory{};
};

class SimtGroup {
 public:
  static constexpr std::uint32_t kTeam = SimtBlock::kTeam;

  SimtGroup(SimtBlock& block, std::uint32_t rank) : block_(&block), rank_(rank) {}
  [[nodiscard]] std::uint32_t rank() const { return rank_; }
  [[nodiscard]] static std::uint32_t size() { return SimtBlock::kThreads; }
  [[nodiscard]] static std::uint32_t block() { return 0; }
  [[nodiscard]] static std::uint32_t block_count() { return 1; }
  [[nodiscard]] std::uint32_t team_rank() const { return rank_ % kTeam; }
  void sync() const { block_->all.arrive_and_wait(); }

  template <class T>
  [[nodiscard]] T team_from(T value, std::uint32_t rank) const {
    auto& team = block_->teams[rank_ / kTeam];
    block_->exchanged[rank_] = static_cast<double>(value);
    team.arrive_and_wait();
    const double from = block_->exchanged[rank_ / kTeam * kTeam + rank];
    team.arrive_and_wait();
    return static_cast<T>(from);
  }

  template <class T>
  [[nodiscard]] T sum(T value) const {
    block_->exchanged[rank_] = static_cast<double>(value);
    sync();
    double total = 0;
    for (const double part : block_->exchanged) total += part;
    sync();
    return static_cast<T>(total);
  }

  template <class T>
  [[nodiscard]] T& shared() const {
    static_assert(sizeof(T) <= sizeof(block_->memory));
    return *reinterpret_cast<T*>(block_->memory.data());
  }

 private:
  SimtBlock* block_;
  std::uint32_t rank_;
};

template <class Body>
void on_every_thread(const Body& body) {
  SimtBlock block;
  std::vector<std::jthread> threads;
  for (std::uint32_t rank = 0; rank < SimtBlock::kThreads; ++rank) {
    threads.emplace_back([&block, &body, rank] { body(SimtGroup(block, rank)); });
  }
}

/// y = A x by the kernels for a matrix with rows of these lengths, against a plain loop. Sums of small whole numbers
/// are exact in any order.
template <class Value>
void expect_product(const std::vector<std::int64_t>& lengths, std::uint32_t columns) {
  std::mt19937_64 random(11);
  std::vector<std::int64_t> starts{0};
  for (const std::int64_t length : lengths) starts.push_back(starts.back() + length);
  const auto entries = static_cast<std::size_t>(starts.back());
  std::vector<std::uint32_t> indices(entries);
  std::vector<Value> values(entries);
  std::vector<Value> x(columns);
  for (auto& index : indices) index = static_cast<std::uint32_t>(random() % columns);
  for (auto& value : values) value = static_cast<Value>(random() % 5) - 2;
  for (auto& value : x) value = static_cast<Value>(random() % 7) - 3;
  const PartWork work = cut_work(starts, 0, lengths.size());
  std::vector<Value> partials(work.partials);
  SpmvPart<Value> part;
  part.chunks = work.chunks.data();
  part.long_rows = work.long_rows.data();
  part.row_starts = work.row_starts.data();
  part.columns = indices.data();
  part.values = values.data();
  part.partials = partials.data();
  part.chunk_count = static_cast<std::uint32_t>(work.chunks.size());
  part.long_row_count = static_cast<std::uint32_t>(work.long_rows.size());
  std::vector<Value> y(lengths.size(), Value{99});
  on_every_thread([&](SimtGroup group) { Spmv<Value>::run(group, part, x.data(), y.data()); });
  on_every_thread([&](SimtGroup group) { SpmvLongRows<Value>::run(group, part, y.data()); });
  for (std::size_t row = 0; row < lengths.size(); ++row) {
    Value sum{};
    for (auto i = static_cast<std::size_t>(starts[row]); i < static_cast<std::size_t>(starts[row + 1]); ++i) {
      sum += values[i] * x[indices[i]];
    }
    ASSERT_EQ(y[row], sum) << "row " << row << " of " << lengths[row];
  }
}

TEST(SpmvSimt, FewLongRowsHaveManyThreadsEach) { expect_product<double>({700, 600, 500, 1, 0, 200}, 90); }
TEST(SpmvSimt, ManyShortRowsHaveOneThreadEach) { expect_product<float>(std::vector<std::int64_t>(300, 6), 90); }
TEST(SpmvSimt, RowsBetween) { expect_product<double>(std::vector<std::int64_t>(21, 50), 90); }
TEST(SpmvSimt, RowsLongerThanAChunk) { expect_product<float>({3, 2049, 0, 5000, 2048, 0, 7}, 900); }
TEST(SpmvSimt, EmptyRows) { expect_product<double>(std::vector<std::int64_t>(100, 0), 1); }

TEST(SpmvSimt, GatherCopiesAllOfIt) {
  for (const std::size_t count : {1U, 63U, 64U, 65U, 511U, 512U, 513U, 2000U}) {
    std::vector<float> from(count);
    for (std::size_t i = 0; i < count; ++i) from[i] = static_cast<float>(i + 1);
    std::vector<float> to(count + 1, -1.0F);
    on_every_thread([&](SimtGroup group) { SpmvGather<float>::run(group, to.data(), from.data(), count); });
    from.push_back(-1.0F);
    EXPECT_EQ(to, from) << count;
  }
}

TEST(SpmvSimt, ThreadsAreSharedOutInPowersOfTwo) {
  EXPECT_EQ(detail::spmv_threads_per_row(256, 1, 32), 32U);
  EXPECT_EQ(detail::spmv_threads_per_row(256, 8, 32), 32U);
  EXPECT_EQ(detail::spmv_threads_per_row(256, 9, 32), 16U);
  EXPECT_EQ(detail::spmv_threads_per_row(256, 128, 32), 2U);
  EXPECT_EQ(detail::spmv_threads_per_row(256, 129, 32), 1U);
  EXPECT_EQ(detail::spmv_threads_per_row(256, 2048, 32), 1U);
}

}  // namespace
}  // namespace headrace::operators
