#include "headrace/device/detail/pair_sorter.hpp"

#include <algorithm>
#include <numeric>
#include <random>

#include "devices.hpp"
#include "headrace/base/error.hpp"

namespace headrace::testing {

namespace {

class PairSorterTest : public DeviceTest {
 protected:
  /// The values of sorted pairs; value i was at i before.
  std::vector<std::uint32_t> sorted(const std::vector<std::uint64_t>& keys, std::uint32_t key_bits) {
    const Stream stream(device());
    PairSorter sorter(stream, keys.size());
    std::vector<std::uint32_t> values(keys.size());
    std::iota(values.begin(), values.end(), 0U);
    EXPECT_OK(stream.copy(sorter.keys(), keys.data(), keys.size() * sizeof(std::uint64_t)));
    EXPECT_OK(stream.copy(sorter.values(), values.data(), values.size() * sizeof(std::uint32_t)));
    EXPECT_OK(sorter.sort(key_bits));
    std::vector<std::uint64_t> keys_after(keys.size());
    EXPECT_OK(stream.copy(values.data(), sorter.values(), values.size() * sizeof(std::uint32_t)));
    EXPECT_OK(stream.copy(keys_after.data(), sorter.keys(), keys.size() * sizeof(std::uint64_t)));
    EXPECT_OK(stream.wait());
    for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(keys_after[i], keys[values[i]]);
    return values;
  }

  static std::vector<std::uint32_t> expected(const std::vector<std::uint64_t>& keys, std::uint32_t key_bits) {
    const std::uint64_t mask = ~std::uint64_t{0} >> (64 - key_bits);
    std::vector<std::uint32_t> values(keys.size());
    std::iota(values.begin(), values.end(), 0U);
    std::ranges::stable_sort(values, {}, [&](std::uint32_t i) { return keys[i] & mask; });
    return values;
  }
};

TEST_P(PairSorterTest, SortsByTheBitsAndKeepsTheOrderOfEquals) {
  std::mt19937_64 random(1);
  for (const std::size_t count : {0, 1, 2, 1000, 200'003}) {
    std::vector<std::uint64_t> keys(count);
    std::ranges::generate(keys, random);
    for (const std::uint32_t key_bits : {1U, 9U, 33U, 64U}) {
      EXPECT_EQ(sorted(keys, key_bits), expected(keys, key_bits)) << count << " pairs by " << key_bits << " bits";
    }
  }
}

TEST_P(PairSorterTest, KeysOfFewDifferentDigitsAreSorted) {
  std::vector<std::uint64_t> keys(50'000);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = (i % 3) << 40 | 7;
  EXPECT_EQ(sorted(keys, 64), expected(keys, 64));
}

TEST_P(PairSorterTest, WhatCannotBeSortedIsRefused) {
  const Stream stream(device());
  PairSorter sorter(stream, 10);
  EXPECT_EQ(sorter.sort(0).error().code, Errc::invalid_argument);
  EXPECT_EQ(sorter.sort(65).error().code, Errc::invalid_argument);
  EXPECT_THROW(PairSorter(stream, PairSorter::kPairsMax + 1), UsageError);
}

HEADRACE_ON_EVERY_DEVICE(PairSorterTest);

}  // namespace

}  // namespace headrace::testing
