#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "ingest/builder/gather_body.hpp"
#include "ingest/builder/kernels.hpp"

/// The gather as a warp runs it, on host threads, against the plain copy.
namespace headrace::ingest {

namespace {

/// A team with fewer threads than a warp: the code is the same for any power of two.
class TeamGroup {
 public:
  static constexpr std::uint32_t kTeam = 8;
  struct Shared {
    std::barrier<> barrier{kTeam};
    std::array<std::uint32_t, kTeam> words{};
    std::array<Part, kTeam> parts{};
  };
  TeamGroup(Shared& shared, std::uint32_t rank) : shared_(&shared), rank_(rank) {}

  [[nodiscard]] std::uint32_t team_rank() const { return rank_; }
  [[nodiscard]] std::uint32_t team_sum_before(std::uint32_t value, std::uint32_t& total) const {
    const auto all = exchange(shared_->words, value);
    std::uint32_t before = 0;
    total = 0;
    for (std::uint32_t i = 0; i < kTeam; ++i) {
      if (i == rank_) before = total;
      total += all[i];
    }
    return before;
  }
  [[nodiscard]] std::uint32_t team_or(std::uint32_t value) const {
    std::uint32_t any = 0;
    for (const std::uint32_t one : exchange(shared_->words, value)) any |= one;
    return any;
  }
  [[nodiscard]] std::uint32_t team_from(std::uint32_t value, std::uint32_t rank) const {
    return exchange(shared_->words, value).at(rank);
  }
  [[nodiscard]] Part team_from(const Part& value, std::uint32_t rank) const {
    return exchange(shared_->parts, value).at(rank);
  }

 private:
  template <class T>
  [[nodiscard]] std::array<T, kTeam> exchange(std::array<T, kTeam>& all, const T& value) const {
    all[rank_] = value;
    shared_->barrier.arrive_and_wait();
    const std::array<T, kTeam> seen = all;
    shared_->barrier.arrive_and_wait();
    return seen;
  }

  Shared* shared_;
  std::uint32_t rank_;
};

void run_team(const std::vector<Part>& parts) {
  TeamGroup::Shared shared;
  std::vector<std::jthread> threads;
  for (std::uint32_t rank = 0; rank < TeamGroup::kTeam; ++rank) {
    threads.emplace_back([&, rank] {
      const TeamGroup group(shared, rank);
      for (std::size_t first = 0; first < parts.size(); first += TeamGroup::kTeam) {
        const std::size_t here = std::min<std::size_t>(parts.size() - first, TeamGroup::kTeam);
        gather_team<3>(group, parts.data() + first, static_cast<std::uint32_t>(here));
      }
    });
  }
}

/// Memory that begins at an aligned address, like that of a ring or a frame.
class Memory {
 public:
  explicit Memory(std::size_t bytes) : lines_((bytes + sizeof(Line) - 1) / sizeof(Line)) {}
  [[nodiscard]] std::byte* data() { return reinterpret_cast<std::byte*>(lines_.data()); }
  [[nodiscard]] std::size_t bytes() const { return lines_.size() * sizeof(Line); }
  void fill(std::uint64_t seed) {
    std::mt19937 random(static_cast<std::uint32_t>(seed));
    for (Line& line : lines_) {
      for (std::uint32_t& word : line.words) word = static_cast<std::uint32_t>(random());
    }
  }
  friend bool operator==(const Memory& a, const Memory& b) {
    return std::memcmp(a.lines_.data(), b.lines_.data(), a.bytes()) == 0;
  }

 private:
  std::vector<Line> lines_;
};

/// A team makes the copies in `where`, {to, from, bytes}; compares the whole target with a plain copy.
void expect_like_plain_copy(const std::vector<std::array<std::size_t, 3>>& where, std::size_t to_bytes,
                            std::size_t from_bytes) {
  Memory from(from_bytes);
  from.fill(1);
  Memory to(to_bytes);
  to.fill(2);
  Memory expected = to;
  std::vector<Part> parts;
  for (const auto& [target, source, bytes] : where) {
    parts.emplace_back(to.data() + target, from.data() + source, static_cast<std::uint32_t>(bytes));
    copy_plainly(Part(expected.data() + target, from.data() + source, static_cast<std::uint32_t>(bytes)));
  }
  run_team(parts);
  EXPECT_TRUE(to == expected);
}

}  // namespace

TEST(IngestGather, EveryAlignmentOfBothSides) {
  std::vector<std::array<std::size_t, 3>> where;
  std::size_t slot = 0;
  for (std::size_t to = 0; to < 16; ++to) {
    for (std::size_t from = 0; from < 16; ++from, ++slot) where.push_back({slot * 96 + to, slot * 96 + from, 61});
  }
  expect_like_plain_copy(where, slot * 96, slot * 96);
}

TEST(IngestGather, EveryLengthUpToSomeLines) {
  std::vector<std::array<std::size_t, 3>> where;
  for (std::size_t bytes = 1; bytes <= 150; ++bytes) {
    where.push_back({bytes * 192 + bytes % 13, bytes * 192 + bytes % 11, bytes});
  }
  expect_like_plain_copy(where, 152 * 192, 152 * 192);
}

TEST(IngestGather, NeighboursShareLines) {
  std::vector<std::array<std::size_t, 3>> where;
  std::mt19937 random(5);
  std::size_t to = 3;
  for (std::size_t i = 0; i < 200; ++i) {
    const std::size_t bytes = 1 + random() % 70;
    where.push_back({to, i * 128 + 54, bytes});
    to += bytes;
  }
  expect_like_plain_copy(where, to + 5, 200 * 128);
}

TEST(IngestGather, LongPartsTakeManyRounds) {
  expect_like_plain_copy({{0, 54, 4096}, {4103, 5000, 3333}, {7500, 9066, 1}}, 8000, 10000);
  expect_like_plain_copy({{1, 0, 4095}}, 4096, 4096);
}

TEST(IngestGather, ReadsNoLineThatHoldsNoneOfItsBytes) {
  // One part ends with the last byte of its memory, and one starts with the first: reading another line would be out of
  // bounds, which the address sanitizer detects.
  for (std::size_t bytes = 1; bytes <= 33; ++bytes) {
    const auto memory = std::make_unique<Line[]>(3);
    std::memset(memory.get(), 0, 3 * sizeof(Line));
    auto* const from = reinterpret_cast<std::byte*>(memory.get()) + 3 * sizeof(Line) - bytes;
    Memory to(64);
    run_team({Part(to.data() + 7, from, static_cast<std::uint32_t>(bytes)),
              Part(to.data() + 41, reinterpret_cast<const std::byte*>(memory.get()), 5)});
  }
}

TEST(IngestKernels, TeamsTakeSeveralRoundsOfWhateverSizeAndOneOfShortBursts) {
  EXPECT_EQ(parts_per_team(std::uint64_t{4096} * 1000, 1000), 2U);
  EXPECT_EQ(parts_per_team(std::uint64_t{64} * 1000, 1000), 32U);
  EXPECT_EQ(parts_per_team(std::uint64_t{1460} * 1000, 1000), 6U);
  EXPECT_EQ(parts_per_team(std::uint64_t{4096} * 100, 100), 1U);
  EXPECT_EQ(parts_per_team(std::uint64_t{1460} * 100, 100), 1U);
  EXPECT_EQ(parts_per_team(std::uint64_t{64} * 100, 100), 32U);
  EXPECT_EQ(parts_per_team(0, 0), 1U);
}

}  // namespace headrace::ingest
