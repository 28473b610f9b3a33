#include "serve/schedules/handoff.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace headrace::serve::detail {
namespace {

TEST(Handoff, GivesOutInOrderAndThenNothing) {
  Handoff<int> handoff(3);
  EXPECT_FALSE(handoff.try_pop());
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 3; ++i) handoff.push(10 * round + i);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(handoff.try_pop(), 10 * round + i);
    EXPECT_FALSE(handoff.try_pop());
  }
}

TEST(Handoff, WhatWasPushedBeforeTheEndIsStillGivenOut) {
  Handoff<int> handoff(2);
  handoff.push(1);
  handoff.push(2);
  handoff.close();
  EXPECT_EQ(handoff.pop(Duration::zero()), 1);
  EXPECT_EQ(handoff.pop(Duration::zero()), 2);
  EXPECT_FALSE(handoff.pop(Duration::zero()));
  EXPECT_FALSE(handoff.pop(std::chrono::hours(1)));
}

TEST(Handoff, WaitingEndsByItself) {
  Handoff<int> handoff(1);
  const Time until = SteadyClock::now() + std::chrono::milliseconds(5);
  handoff.wait_until(until);
  EXPECT_GE(SteadyClock::now(), until);
}

// A few items circulate between two threads. Each sees what the other writes, whether the threads sleep or poll.
TEST(Handoff, ItemsGoRoundBetweenTwoThreads) {
  constexpr std::uint64_t kRounds = 3000;
  constexpr std::size_t kItems = 3;
  for (const Duration spin : {Duration::zero(), Duration(std::chrono::milliseconds(1))}) {
    std::vector<std::uint64_t> visits(kItems, 0);
    Handoff<std::uint64_t*> there(kItems);
    Handoff<std::uint64_t*> back(kItems);
    for (auto& item : visits) back.push(&item);
    std::jthread echo([&] {
      while (const auto item = there.pop(spin)) {
        **item += 1;
        back.push(*item);
      }
      back.close();
    });
    for (std::uint64_t i = 0; i < kRounds; ++i) {
      const auto item = back.pop(spin);
      ASSERT_TRUE(item);
      **item += 1;
      there.push(*item);
    }
    there.close();
    std::size_t left = 0;
    while (back.pop(spin)) ++left;
    EXPECT_EQ(left, kItems);
    std::uint64_t total = 0;
    for (const std::uint64_t item : visits) total += item;
    EXPECT_EQ(total, 2 * kRounds);
  }
}

}  // namespace
}  // namespace headrace::serve::detail
