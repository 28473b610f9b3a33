#include "base/thread_budget.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

namespace headrace {
namespace {

TEST(ThreadBudget, KeepsHalfItsSpareBytesAhead) {
  Budget whole(1000);
  {
    ThreadBudget part(whole, 100);
    EXPECT_TRUE(part.try_charge(10));
    EXPECT_EQ(whole.used(), 60U);
    EXPECT_EQ(part.spare(), 50U);
    EXPECT_TRUE(part.try_charge(50));
    EXPECT_EQ(whole.used(), 60U);
    part.refund(60);
    EXPECT_EQ(whole.used(), 60U);
    part.refund(0);
    EXPECT_EQ(part.spare(), 60U);
    EXPECT_TRUE(part.try_charge(200));
    part.refund(200);
    EXPECT_EQ(part.spare(), 50U);
    EXPECT_EQ(whole.used(), 50U);
  }
  EXPECT_EQ(whole.used(), 0U);
}

TEST(ThreadBudget, GivesOutTheLastByte) {
  Budget whole(1000);
  ThreadBudget part(whole, 100);
  EXPECT_TRUE(part.try_charge(990));  // without charging ahead
  EXPECT_EQ(part.spare(), 0U);
  EXPECT_FALSE(part.try_charge(11));
  EXPECT_EQ(whole.used(), 990U);
  EXPECT_TRUE(part.try_charge(10));
  EXPECT_FALSE(part.try_charge(1));
  part.refund(1000);
  EXPECT_EQ(whole.used(), 50U);
}

TEST(ThreadBudget, WithNoSpareBytesIsTheBudgetItself) {
  Budget whole(1000);
  ThreadBudget part(whole, 0);
  EXPECT_TRUE(part.try_charge(7));
  EXPECT_EQ(whole.used(), 7U);
  part.refund(7);
  EXPECT_EQ(whole.used(), 0U);
}

/// Threads together never hold more than the whole budget, and return all of it.
TEST(ThreadBudget, PartsOfSeveralThreadsStayWithinTheWhole) {
  constexpr std::size_t kLimit = 10'000;
  Budget whole(kLimit);
  std::atomic<std::size_t> charged{0};
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      threads.emplace_back([&, seed] {
        ThreadBudget part(whole, 512);
        std::mt19937_64 random(seed);
        std::vector<std::size_t> held;
        for (int i = 0; i < 20'000; ++i) {
          const std::size_t bytes = random() % 3000;
          if (random() % 2 == 0 && part.try_charge(bytes)) {
            held.push_back(bytes);
            EXPECT_LE(charged.fetch_add(bytes) + bytes, kLimit);
          } else if (!held.empty()) {
            charged.fetch_sub(held.back());
            part.refund(held.back());
            held.pop_back();
          }
        }
        for (const std::size_t bytes : held) {
          charged.fetch_sub(bytes);
          part.refund(bytes);
        }
      });
    }
  }
  EXPECT_EQ(whole.used(), 0U);
}

}  // namespace
}  // namespace headrace
