#include "measure/access_bench.hpp"

#include "headrace/base/detail/bytes.hpp"
#include "tests/contract/devices.hpp"

/// The access kernels and their checks, compared with plain host loops over the same draws.
namespace headrace::testing {
namespace {

using namespace measure;

constexpr std::size_t kTouchedPages = 3;
constexpr AccessPattern kPatterns[] = {AccessPattern::grid_stride, AccessPattern::block_stride,
                                       AccessPattern::random_warp, AccessPattern::zipf_rows, AccessPattern::hot_tenth};

class AccessBenchTest : public DeviceTest {
 protected:
  AccessBenchTest() : bench_(device()), data_(device(), MemoryKind::mapped, kTouchedPages * kPageBytes) {}

  /// The words, readable by the host.
  [[nodiscard]] std::uint32_t* words() const { return data_.as<std::uint32_t>(); }
  void fill() { bench_.fill(data_.data(), kTouchedPages); }
  void time(const AccessWork& work, std::uint32_t run) {
    EXPECT_GT(bench_.time(work, data_.data(), kTouchedPages, run).count(), 0);
  }
  [[nodiscard]] std::uint64_t wrong(const AccessWork& work, std::uint32_t run) {
    return bench_.wrong_units(work, data_.data(), kTouchedPages, run);
  }

  AccessBench bench_;
  Buffer data_;
};
HEADRACE_ON_EVERY_DEVICE(AccessBenchTest);

/// How often the host expects each 128 bytes to be touched, for patterns that do not draw.
std::vector<std::uint32_t> sweeps(AccessPattern pattern) {
  std::vector<std::uint32_t> times(kTouchedPages * kPageBytes / 128, 1);
  if (pattern != AccessPattern::hot_tenth) return times;
  for (std::size_t i = kTouchedPages * 9 / 10 * (kPageBytes / 128); i < times.size(); ++i) times[i] = 11;
  return times;
}

TEST_P(AccessBenchTest, ContentIsWhatItsFormulaSays) {
  fill();
  for (std::uint64_t i = 0; i < kTouchedPages * kPageBytes / 4; i += 997)
    ASSERT_EQ(words()[i], filled<std::uint32_t>(i));
  for (std::uint64_t i = 0; i < 100; ++i) {
    const auto unit = filled<Unit>(i);
    EXPECT_EQ(unit.c, filled<std::uint32_t>(4 * i + 2));
    EXPECT_EQ(written<Unit>(i, 9).d, written<std::uint32_t>(4 * i + 3, 9));
  }
}

TEST_P(AccessBenchTest, ReadsSumEveryWordTheyShould) {
  fill();
  for (const AccessPattern pattern : kPatterns) {
    for (const bool synchronised : {false, true}) {
      SCOPED_TRACE(::testing::Message() << to_string(pattern) << (synchronised ? ", synchronised" : ""));
      const AccessWork work{.pattern = pattern, .synchronised = synchronised};
      time(work, 1);
      const std::uint64_t sum = bench_.sum();
      EXPECT_EQ(sum, bench_.expected_sum(work, kTouchedPages));
      if (pattern == AccessPattern::zipf_rows) continue;  // the device's draws may differ from the host's
      std::uint64_t by_host = 0;
      const auto times = sweeps(pattern);
      for (std::uint64_t i = 0; i < kTouchedPages * kPageBytes / 4; ++i) {
        by_host += std::uint64_t{times[i / 32]} * filled<std::uint32_t>(i);
      }
      EXPECT_EQ(sum, by_host);
    }
  }
}

TEST_P(AccessBenchTest, ReadsOfDrawnRowsSumWhatTheHostDraws) {
  if (!on_cpu()) GTEST_SKIP() << "the last digit of a logarithm differs";
  fill();
  const AccessWork work{.pattern = AccessPattern::zipf_rows, .rows = RowOrder::scattered};
  time(work, 1);
  constexpr std::uint64_t kRows = kTouchedPages * kPageBytes / 512;
  const auto rows = ZipfRows::over(kRows, kRows, true, mixed(static_cast<std::uint64_t>(DrawSeed::timed)));
  std::uint64_t by_host = 0;
  for (std::uint64_t draw = 0; draw < kRows; ++draw) {
    for (std::uint64_t i = 0; i < 128; ++i) by_host += words()[rows.at(draw) * 128 + i];
  }
  EXPECT_EQ(bench_.sum(), by_host);
}

TEST_P(AccessBenchTest, WritesLeaveWhatTheyShouldAndTheHostSeesIt) {
  for (const auto operation : {AccessOperation::write, AccessOperation::read_modify_write}) {
    for (const AccessPattern pattern : kPatterns) {
      SCOPED_TRACE(::testing::Message() << to_string(pattern) << ", " << to_string(operation));
      const AccessWork work{.pattern = pattern, .operation = operation};
      fill();
      EXPECT_GT(wrong(work, 5), 0U) << "nothing has been done yet";
      time(work, 4);
      EXPECT_GT(wrong(work, 5), 0U) << "the result must not come from an earlier run";
      time(work, 5);
      EXPECT_EQ(wrong(work, 5), 0U);
      if (pattern == AccessPattern::zipf_rows) continue;
      for (std::uint64_t i = 0; i < kTouchedPages * kPageBytes / 4; i += 101) {
        const std::uint32_t expected =
            operation == AccessOperation::write ? written<std::uint32_t>(i, 5) : modified(filled<std::uint32_t>(i), 5);
        ASSERT_EQ(words()[i], expected) << i;
      }
    }
  }
}

TEST_P(AccessBenchTest, RowsThatAreNotDrawnStayAsTheyWere) {
  const AccessWork work{.pattern = AccessPattern::zipf_rows, .operation = AccessOperation::write};
  fill();
  time(work, 1);
  std::size_t kept = 0;
  for (std::uint64_t row = 0; row < kTouchedPages * kPageBytes / 512; ++row) {
    if (words()[row * 128] == filled<std::uint32_t>(row * 128)) ++kept;
  }
  EXPECT_GT(kept, kTouchedPages * kPageBytes / 512 / 4);
  EXPECT_EQ(wrong(work, 1), 0U);
}

TEST_P(AccessBenchTest, OneCorruptWordIsFound) {
  constexpr std::uint64_t kWord = 2 * kPageBytes / 4 + 12345;
  for (const AccessPattern pattern : kPatterns) {
    SCOPED_TRACE(to_string(pattern));
    fill();
    words()[pattern == AccessPattern::zipf_rows ? 77 : kWord] ^= 0x100;  // the first row is certainly drawn
    const AccessWork read{.pattern = pattern};
    time(read, 1);
    EXPECT_NE(bench_.sum(), bench_.expected_sum(read, kTouchedPages));
    for (const auto operation : {AccessOperation::write, AccessOperation::read_modify_write}) {
      const AccessWork work{.pattern = pattern, .operation = operation};
      fill();
      time(work, 1);
      words()[kWord] ^= 0x100;
      EXPECT_EQ(wrong(work, 1), 1U);
    }
    fill();
    words()[pattern == AccessPattern::zipf_rows ? 77 : kWord] ^= 0x100;
    const AccessWork modify{.pattern = pattern, .operation = AccessOperation::read_modify_write};
    time(modify, 1);
    EXPECT_EQ(wrong(modify, 1), 1U) << "a wrong read shows in the written data";
  }
}

TEST_P(AccessBenchTest, TouchesAreTheBytesOfTheDraws) {
  const auto total = [](const Touches& touches) {
    std::uint64_t sum = 0;
    for (const std::uint64_t bytes : touches.bytes) sum += bytes;
    return sum;
  };
  constexpr std::uint64_t kBytes = kTouchedPages * kPageBytes;
  for (const std::size_t granule : {4 * kKiB, 64 * kKiB, kPageBytes}) {
    for (const AccessPattern pattern : kPatterns) {
      const Touches touches = bench_.touches({.pattern = pattern}, kTouchedPages, granule, DrawSeed::timed);
      EXPECT_EQ(touches.bytes.size(), kBytes / granule);
      const std::uint64_t hot = pattern == AccessPattern::hot_tenth ? 10 * kPageBytes : 0;
      EXPECT_EQ(total(touches), kBytes + hot) << to_string(pattern);
    }
  }
  const AccessWork zipf{.pattern = AccessPattern::zipf_rows};
  const Touches timed = bench_.touches(zipf, kTouchedPages, kPageBytes, DrawSeed::timed);
  const Touches learnt = bench_.touches(zipf, kTouchedPages, kPageBytes, DrawSeed::learnt);
  EXPECT_GT(timed.bytes[0], 5 * timed.bytes[1]);
  EXPECT_NE(timed.bytes, learnt.bytes) << "a placement learns from draws that are not timed";
}

}  // namespace
}  // namespace headrace::testing
