#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "fetch/query_gate.hpp"

namespace headrace::fetch {
namespace {

TEST(FetchQueryGate, QueriesRunBesideEachOtherAndKnowIt) {
  QueryGate gate;
  const QueryGate::Pass first = gate.enter({});
  EXPECT_TRUE(first.has_been_alone());
  {
    const QueryGate::Pass second = gate.enter({});
    EXPECT_FALSE(first.has_been_alone());
    EXPECT_FALSE(second.has_been_alone());
  }
  EXPECT_FALSE(first.has_been_alone()) << "a thread was inside";
}

TEST(FetchQueryGate, OneThatComesAfterAllHaveLeftIsAlone) {
  QueryGate gate;
  {
    const QueryGate::Pass first = gate.enter({});
  }
  const QueryGate::Pass second = gate.enter({});
  EXPECT_TRUE(second.has_been_alone());
}

TEST(FetchQueryGate, OneAloneWaitsForOthersAndHoldsBackThoseWhoCome) {
  QueryGate gate;
  std::atomic<int> order{0};
  std::atomic<bool> waits{false};
  int alone_at = 0;
  int later_at = 0;
  std::jthread alone;
  std::jthread later;
  {
    const QueryGate::Pass first = gate.enter({});
    alone = std::jthread([&] {
      const QueryGate::Pass pass = gate.enter_alone([&] { waits = true; });
      alone_at = ++order;
      EXPECT_TRUE(pass.has_been_alone());
    });
    while (!waits) std::this_thread::yield();
    std::atomic<bool> queued{false};
    later = std::jthread([&] {
      const QueryGate::Pass pass = gate.enter([&] { queued = true; });
      later_at = ++order;
    });
    while (!queued) std::this_thread::yield();
    EXPECT_EQ(order, 0) << "neither enters while the first is inside";
  }
  alone.join();
  later.join();
  EXPECT_EQ(alone_at, 1);
  EXPECT_EQ(later_at, 2);
}

TEST(FetchQueryGate, AWaitThatIsEndedLeavesTheGateOpenToOthers) {
  QueryGate gate;
  {
    const QueryGate::Pass first = gate.enter({});
    EXPECT_THROW(static_cast<void>(gate.enter_alone([] { throw std::runtime_error("Ctrl-C"); })), std::runtime_error);
    const QueryGate::Pass second = gate.enter({});
  }
  const QueryGate::Pass alone = gate.enter_alone({});
  EXPECT_TRUE(alone.has_been_alone());
}

TEST(FetchQueryGate, ManyThreadsAreNeverBesideOneThatIsAlone) {
  QueryGate gate;
  std::atomic<int> inside{0};
  std::atomic<bool> met{false};
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        if ((i + t) % 3 == 0) {
          const QueryGate::Pass pass = gate.enter_alone({});
          if (inside.fetch_add(1) != 0) met = true;
          inside.fetch_sub(1);
        } else {
          const QueryGate::Pass pass = gate.enter({});
          inside.fetch_add(1);
          inside.fetch_sub(1);
        }
      }
    });
  }
  threads.clear();
  EXPECT_FALSE(met);
}

}  // namespace
}  // namespace headrace::fetch
