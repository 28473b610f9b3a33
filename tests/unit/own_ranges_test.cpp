#include "device/own_ranges.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace headrace::detail {
namespace {

const void* at(std::uintptr_t address) {
  return reinterpret_cast<const void*>(address);  // NOLINT(performance-no-int-to-ptr): never read
}

TEST(OwnRanges, FindsWhatContainsAnAddress) {
  OwnRanges ranges;
  EXPECT_FALSE(ranges.find(at(100)));
  ranges.add({.begin = 100, .end = 200, .known = true, .kernels_reach = true});
  ranges.add({.begin = 200, .end = 210, .known = true, .host_reads = false});
  EXPECT_FALSE(ranges.find(at(99)));
  EXPECT_EQ(ranges.find(at(100))->end, 200U);
  EXPECT_TRUE(ranges.find(at(199))->kernels_reach);
  EXPECT_FALSE(ranges.find(at(200))->host_reads);
  EXPECT_EQ(ranges.find(at(209))->begin, 200U);
  EXPECT_FALSE(ranges.find(at(210)));
}

TEST(OwnRanges, ForgetsWhatIsRemoved) {
  OwnRanges ranges;
  ranges.add({.begin = 100, .end = 200});
  ranges.add({.begin = 300, .end = 400});
  ranges.remove(at(100));
  ranges.remove(at(150));  // no range starts there
  EXPECT_FALSE(ranges.find(at(150)));
  EXPECT_TRUE(ranges.find(at(350)));
  ranges.add({.begin = 100, .end = 120});  // the address is reused
  EXPECT_TRUE(ranges.find(at(119)));
  EXPECT_FALSE(ranges.find(at(150)));
}

TEST(OwnRanges, ManyThreads) {
  OwnRanges ranges;
  ranges.add({.begin = 50, .end = 60});
  std::atomic<int> missed{0};
  std::vector<std::jthread> threads;
  for (std::uintptr_t t = 1; t <= 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        ranges.add({.begin = t * 1000, .end = t * 1000 + 10});
        if (!ranges.find(at(t * 1000 + 5)) || !ranges.find(at(55))) ++missed;
        ranges.remove(at(t * 1000));
        if (ranges.find(at(t * 1000 + 5))) ++missed;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(missed.load(), 0);
}

}  // namespace
}  // namespace headrace::detail
