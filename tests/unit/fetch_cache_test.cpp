#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include "base/budget.hpp"
#include "fetch/chunk_cache.hpp"
#include "fetch/slabs.hpp"
#include "headrace/base/detail/bytes.hpp"

namespace headrace::fetch {
namespace {

/// A payload charged to a budget, as chunks are.
struct Charged {
  int value = 0;
  Budget* budget = nullptr;
  std::size_t bytes = 0;

  Charged() = default;
  Charged(Charged&& other) = delete;
  Charged& operator=(Charged&&) = delete;
  ~Charged() {
    if (budget != nullptr) budget->refund(bytes);
  }
};
using Cache = ChunkCache<Charged>;

ChunkId chunk(std::uint32_t fragment, std::uint64_t table = 1) { return {table, {.fragment = fragment, .column = 0}}; }

/// Makes a chunk of `bytes` if the cache lacks it. The pin is empty when there is no room.
Cache::Pin get(Cache& cache, Budget& budget, const ChunkId& id, std::size_t bytes, int value = 0) {
  while (true) {
    auto [found, pin] = cache.look(id);
    if (found == Cache::Found::being_made) {
      cache.wait_while_made(id, {});
      continue;
    }
    if (found == Cache::Found::absent) {
      if (!cache.make_room([&] { return budget.try_charge(bytes); }, {})) return {};
      pin->budget = &budget;
      pin->bytes = bytes;
      pin->value = value;
      pin.publish();
    }
    return std::move(pin);
  }
}

bool has(Cache& cache, const ChunkId& id) { return cache.look(id).found == Cache::Found::ready; }

TEST(FetchBudget, RefusesWhatIsBeyondItAndRemembersTheMost) {
  Budget budget(100);
  EXPECT_TRUE(budget.try_charge(60));
  EXPECT_FALSE(budget.try_charge(41));
  EXPECT_TRUE(budget.try_charge(40));
  budget.refund(60);
  EXPECT_EQ(budget.used(), 40U);
  EXPECT_EQ(budget.most(), 100U);
}

TEST(FetchBudget, HoldsUnderManyThreads) {
  Budget budget(1000);
  std::atomic<bool> beyond{false};
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20000; ++i) {
        if (!budget.try_charge(300)) continue;
        if (budget.used() > 1000) beyond = true;
        budget.refund(300);
      }
    });
  }
  threads.clear();
  EXPECT_FALSE(beyond);
  EXPECT_EQ(budget.used(), 0U);
}

TEST(FetchCache, FindsWhatWasMade) {
  Budget budget(100);
  Cache cache;
  EXPECT_EQ(get(cache, budget, chunk(1), 10, 7)->value, 7);
  EXPECT_EQ(get(cache, budget, chunk(1), 10, 8)->value, 7);
  const auto counts = cache.counts();
  EXPECT_EQ(counts.hits, 1U);
  EXPECT_EQ(counts.misses, 1U);
  EXPECT_EQ(counts.chunks, 1U);
  EXPECT_EQ(counts.pinned, 0U);
}

TEST(FetchCache, ThrowsOutWhatWasUnpinnedLongestAgo) {
  Budget budget(30);
  Cache cache;
  for (std::uint32_t i = 0; i < 3; ++i) get(cache, budget, chunk(i), 10);
  get(cache, budget, chunk(0), 10);  // used again: 1 is the oldest
  get(cache, budget, chunk(3), 10);
  EXPECT_FALSE(has(cache, chunk(1)));
  EXPECT_TRUE(has(cache, chunk(0)));
  EXPECT_TRUE(has(cache, chunk(2)));
  EXPECT_TRUE(has(cache, chunk(3)));
  EXPECT_EQ(cache.counts().evictions, 1U);
}

TEST(FetchCache, NeverThrowsOutWhatIsPinned) {
  Budget budget(30);
  Cache cache;
  auto first = get(cache, budget, chunk(0), 10, 5);
  first.keep();
  auto second = get(cache, budget, chunk(1), 10);
  second.keep();
  for (std::uint32_t i = 2; i < 10; ++i) EXPECT_FALSE(get(cache, budget, chunk(i), 10).empty());
  EXPECT_EQ(first->value, 5);
  EXPECT_TRUE(has(cache, chunk(0)));
  EXPECT_TRUE(has(cache, chunk(1)));
}

TEST(FetchCache, GivesUpWhereEverythingIsKept) {
  Budget budget(20);
  Cache cache;
  auto kept = get(cache, budget, chunk(0), 20);
  kept.keep();
  EXPECT_TRUE(get(cache, budget, chunk(1), 10).empty());
  kept.reset();
  EXPECT_FALSE(get(cache, budget, chunk(1), 10).empty());
}

TEST(FetchCache, WaitsForAPinThatPasses) {
  Budget budget(20);
  Cache cache;
  auto passing = get(cache, budget, chunk(0), 20);
  std::atomic<bool> got{false};
  std::jthread other([&] {
    EXPECT_FALSE(get(cache, budget, chunk(1), 10).empty());
    got = true;
  });
  while (cache.counts().misses < 2) std::this_thread::yield();
  EXPECT_FALSE(got);
  passing.reset();
  other.join();
  EXPECT_TRUE(got);
}

TEST(FetchCache, AThreadThatIsAskedToStopDoesNotWait) {
  Budget budget(20);
  Cache cache;
  const auto passing = get(cache, budget, chunk(0), 20);
  std::stop_source stop;
  std::jthread other([&] {
    auto look = cache.look(chunk(1));
    EXPECT_FALSE(cache.make_room([&] { return budget.try_charge(10); }, stop.get_token()));
  });
  while (cache.counts().misses < 2) std::this_thread::yield();
  stop.request_stop();
  other.join();
  EXPECT_EQ(cache.counts().chunks, 1U);
}

TEST(FetchCache, OneMakesAndTheOthersWait) {
  Cache cache;
  std::atomic<int> made{0};
  std::latch all(4);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      all.arrive_and_wait();
      for (std::uint32_t i = 0; i < 200; ++i) {
        while (true) {
          auto [found, pin] = cache.look(chunk(i));
          if (found == Cache::Found::being_made) {
            cache.wait_while_made(chunk(i), {});
            continue;
          }
          if (found == Cache::Found::absent) {
            ++made;
            std::this_thread::yield();
            pin->value = static_cast<int>(i) + 1;
            pin.publish();
          }
          EXPECT_EQ(pin->value, static_cast<int>(i) + 1);
          break;
        }
      }
    });
  }
  threads.clear();
  EXPECT_EQ(made, 200);
}

TEST(FetchCache, WhatIsNotMadeIsAbandonedAndAnotherMakesIt) {
  Budget budget(100);
  Cache cache;
  auto failing = cache.look(chunk(0));
  ASSERT_EQ(failing.found, Cache::Found::absent);
  std::jthread other([&] { EXPECT_EQ(get(cache, budget, chunk(0), 10, 3)->value, 3); });
  std::this_thread::yield();
  failing.pin.reset();
  other.join();
  EXPECT_EQ(cache.counts().misses, 2U);
  EXPECT_EQ(budget.used(), 10U);
}

TEST(FetchCache, PinsAndLetsGoOfManyAtOnce) {
  Budget budget(100);
  Cache cache;
  for (std::uint32_t i = 0; i < 3; ++i) get(cache, budget, chunk(i), 10, static_cast<int>(i)).reset();
  auto made = cache.look(chunk(3)).pin;
  std::vector<Cache::Pin> pins(5);
  const std::vector<ChunkId> ids{chunk(2), chunk(3), chunk(9), chunk(0), chunk(2)};
  cache.find_ready(ids, pins);
  EXPECT_TRUE(pins[1].empty());  // another thread makes it
  EXPECT_TRUE(pins[2].empty());  // it is absent, and nothing makes it now
  EXPECT_EQ(cache.look(chunk(9)).found, Cache::Found::absent);
  EXPECT_EQ(pins[0]->value, 2);
  EXPECT_EQ(cache.counts().pinned, 3U);
  EXPECT_EQ(cache.counts().hits, 3U);
  EXPECT_TRUE(cache.evict_one());  // the only one that is not pinned
  EXPECT_FALSE(cache.evict_one());
  // make_room() does not wait for pinned chunks.
  EXPECT_FALSE(cache.make_room([&] { return budget.try_charge(90); }, {}));
  pins[1] = std::move(made);
  cache.release(pins);
  EXPECT_TRUE(std::ranges::all_of(pins, &Cache::Pin::empty));
  EXPECT_EQ(cache.counts().pinned, 0U);
  EXPECT_EQ(cache.counts().chunks, 2U);  // the unfinished chunk is abandoned
  EXPECT_TRUE(cache.evict_one());
  EXPECT_FALSE(has(cache, chunk(0)));  // released before the last pin of the other
}

TEST(FetchCache, ForgetsOneTableAndClearsAll) {
  Budget budget(100);
  Cache cache;
  get(cache, budget, chunk(0, 1), 10);
  get(cache, budget, chunk(0, 2), 10);
  auto pinned = get(cache, budget, chunk(1, 1), 10);
  cache.forget(1);
  EXPECT_FALSE(has(cache, chunk(0, 1)));
  EXPECT_TRUE(has(cache, chunk(0, 2)));
  EXPECT_TRUE(has(cache, chunk(1, 1)));
  cache.clear();
  EXPECT_FALSE(has(cache, chunk(0, 2)));
  EXPECT_EQ(cache.counts().chunks, 1U);
  EXPECT_EQ(budget.used(), 10U);
}

/// Threads take and make chunks at random in room for a few of them: no chunk is lost, and the budget is kept.
TEST(FetchCache, HoldsItsBudgetUnderManyThreads) {
  Budget budget(50);
  Cache cache;
  std::vector<std::jthread> threads;
  std::atomic<int> refused{0};
  for (std::uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::uint32_t random = t + 1;
      for (int i = 0; i < 5000; ++i) {
        random = random * 1664525 + 1013904223;
        const std::uint32_t number = random >> 28;
        const auto pin = get(cache, budget, chunk(number), 10, static_cast<int>(number));
        if (pin.empty()) {
          ++refused;
        } else {
          EXPECT_EQ(pin->value, static_cast<int>(number));
        }
      }
    });
  }
  threads.clear();
  EXPECT_EQ(refused, 0);  // four threads with a chunk each always fit
  EXPECT_LE(budget.most(), 50U);
  cache.clear();
  EXPECT_EQ(budget.used(), 0U);
}

class FetchSlabs : public ::testing::Test {
 protected:
  Budget budget_{kMiB};
  Slabs slabs_{Device::parse("cpu"), MemoryKind::pinned, 256 * kKiB, budget_};
};

TEST_F(FetchSlabs, BlocksAreApartAndAligned) {
  auto a = slabs_.try_take(1000);
  auto b = slabs_.try_take(1);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a->data()) % Slabs::kAlignment, 0U);
  EXPECT_GE(a->bytes(), 1000U);
  EXPECT_TRUE(a->data() + a->bytes() <= b->data() || b->data() + b->bytes() <= a->data());
  EXPECT_EQ(budget_.used(), 256 * kKiB);
}

TEST_F(FetchSlabs, WhatIsGivenBackIsOnePieceAgain) {
  std::vector<Slabs::Block> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(*slabs_.try_take(64 * kKiB));
  const std::byte* const first = blocks[0].data();
  for (const std::size_t i : {2U, 0U, 1U, 3U}) blocks[i] = Slabs::Block();
  const auto whole = slabs_.try_take(256 * kKiB);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->data(), first);
  EXPECT_EQ(budget_.used(), 256 * kKiB);
}

TEST_F(FetchSlabs, ABlockLargerThanASlabHasOneOfItsOwn) {
  const auto block = slabs_.try_take(700 * kKiB);
  ASSERT_TRUE(block);
  EXPECT_EQ(budget_.used(), 700 * kKiB);
}

TEST_F(FetchSlabs, StaysWithinTheBudgetAndTakesAllOfIt) {
  std::vector<Slabs::Block> blocks;
  while (auto block = slabs_.try_take(100 * kKiB)) blocks.push_back(*std::move(block));
  EXPECT_LE(budget_.most(), kMiB);
  EXPECT_EQ(blocks.size(), 8U);  // two in each of four slabs
  blocks.clear();
  EXPECT_FALSE(slabs_.try_take(700 * kKiB));
  slabs_.trim();
  EXPECT_EQ(budget_.used(), 0U);
  EXPECT_TRUE(slabs_.try_take(700 * kKiB));
}

}  // namespace
}  // namespace headrace::fetch
