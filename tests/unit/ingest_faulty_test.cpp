#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "headrace/base/error.hpp"
#include "headrace/ingest/synthetic_source.hpp"
#include "ingest/faulty_source.hpp"
#include "tests/ingest_support.hpp"

namespace headrace::ingest {
namespace {

using testing::cpu_ring;
using testing::load_big;
using testing::take_all;
using testing::TakenPacket;

constexpr std::uint64_t kPackets = 20'000;

SyntheticTraffic traffic() { return {.layer = Layer::payload, .payloads = {{64, 1}}, .packets = kPackets}; }

struct Outcome {
  std::vector<std::uint64_t> numbers;
  std::vector<TakenPacket> packets;
  FaultCounters faults;
  SourceCounters counters;
};

Outcome run(const Faults& faults, std::size_t burst = 16) {
  Ring between = cpu_ring(256, 128);
  Ring ring = cpu_ring(256, 64);
  const auto source = make_faulty_source(ring, make_synthetic_source(between, traffic()), between, faults);
  Outcome outcome;
  outcome.packets = take_all(*source, ring, burst);
  for (const TakenPacket& one : outcome.packets) outcome.numbers.push_back(load_big(one.bytes, 0, 8));
  outcome.faults = source->faults();
  outcome.counters = source->counters();
  return outcome;
}

std::vector<std::uint64_t> in_order() {
  std::vector<std::uint64_t> numbers(kPackets);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

TEST(Faulty, WithoutFaultsGivesWhatItGets) { EXPECT_EQ(run({}).numbers, in_order()); }

TEST(Faulty, LosesTheShareAskedFor) {
  for (const double share : {0.001, 0.01, 0.05}) {
    const Outcome outcome = run({.loss = share});
    const double expected = share * kPackets;
    EXPECT_NEAR(static_cast<double>(outcome.faults.lost), expected, 6 * std::sqrt(expected));
    EXPECT_EQ(outcome.numbers.size(), kPackets - outcome.faults.lost);
    EXPECT_EQ(outcome.counters.dropped, outcome.faults.lost);
    EXPECT_TRUE(std::is_sorted(outcome.numbers.begin(), outcome.numbers.end()));
  }
  EXPECT_TRUE(run({.loss = 1}).numbers.empty());
}

TEST(Faulty, DuplicatesComeRightAfter) {
  const Outcome outcome = run({.duplication = 0.05});
  EXPECT_GT(outcome.faults.duplicated, 0U);
  EXPECT_EQ(outcome.numbers.size(), kPackets + outcome.faults.duplicated);
  EXPECT_TRUE(std::is_sorted(outcome.numbers.begin(), outcome.numbers.end()));
}

TEST(Faulty, ReorderedOnesAllComeAndNotTooLate) {
  for (const std::size_t burst : {std::size_t{1}, std::size_t{16}, std::size_t{64}}) {
    Outcome outcome = run({.reordering = 0.05, .reorder_distance = 5}, burst);
    EXPECT_GT(outcome.faults.reordered, 0U);
    std::uint64_t late = 0;
    for (std::size_t i = 1; i < outcome.numbers.size(); ++i)
      late += outcome.numbers[i] < outcome.numbers[i - 1] ? 1 : 0;
    EXPECT_GT(late, 0U);
    for (std::size_t i = 0; i < outcome.numbers.size(); ++i) {
      EXPECT_LE(i < outcome.numbers[i] ? outcome.numbers[i] - i : i - outcome.numbers[i], 16U) << i;
    }
    std::sort(outcome.numbers.begin(), outcome.numbers.end());
    EXPECT_EQ(outcome.numbers, in_order());
  }
}

TEST(Faulty, CorruptedOnesDifferByOneBitAndSaySo) {
  const Outcome clean = run({});
  const Outcome outcome = run({.corruption = 0.05});
  ASSERT_EQ(outcome.packets.size(), clean.packets.size());
  std::uint64_t corrupted = 0;
  for (std::size_t i = 0; i < kPackets; ++i) {
    int bits = 0;
    for (std::size_t at = 0; at < 64; ++at) {
      bits += std::popcount(std::to_integer<unsigned>(outcome.packets[i].bytes[at] ^ clean.packets[i].bytes[at]));
    }
    ASSERT_LE(bits, 1);
    EXPECT_EQ(outcome.packets[i].packet.checksum_verified, bits == 0);
    corrupted += static_cast<std::uint64_t>(bits);
  }
  EXPECT_EQ(corrupted, outcome.faults.corrupted);
  EXPECT_GT(corrupted, 0U);
}

TEST(Faulty, IsTheSameForTheSameSeed) {
  const Faults faults{.loss = 0.05, .duplication = 0.05, .corruption = 0.05, .reordering = 0.05};
  Faults other = faults;
  other.seed = 2;
  EXPECT_EQ(run(faults).numbers, run(faults, 5).numbers);
  EXPECT_NE(run(faults).numbers, run(other).numbers);
}

/// Counts the packets that are sent.
class Sink : public Source {
 public:
  Layer layer() const noexcept override { return Layer::ip; }
  Result<std::size_t> receive(std::span<Packet>, Duration) noexcept override { return Errc::stopped; }
  bool ended() const noexcept override { return false; }
  Status send(std::span<const std::byte> packet) noexcept override {
    ++counters_.sent;
    counters_.sent_bytes += packet.size();
    return {};
  }
  SourceCounters counters() const noexcept override { return counters_; }
  std::string failure() const override { return "as asked"; }

 private:
  SourceCounters counters_;
};

TEST(Faulty, LosesWhatIsSentAndPassesErrorsOn) {
  Ring between = cpu_ring(256, 8);
  Ring ring = cpu_ring(256, 8);
  const auto source = make_faulty_source(ring, std::make_unique<Sink>(), between, {.loss_sent = 0.5});
  const std::byte packet[3] = {};
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(source->send(packet).ok());
  EXPECT_EQ(source->counters().sent + source->faults().lost_sent, 1000U);
  EXPECT_GT(source->counters().sent, 300U);
  EXPECT_GT(source->faults().lost_sent, 300U);
  std::vector<Packet> packets(4);
  const auto got = source->receive(packets, testing::kShort);
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code, Errc::stopped);
  EXPECT_EQ(source->failure(), "as asked");
}

TEST(Faulty, RefusesWhatCannotBe) {
  Ring between = cpu_ring(256, 8);
  Ring ring = cpu_ring(256, 8);
  Ring small = cpu_ring(256, 8);
  Ring large = cpu_ring(4096, 8);
  const auto make = [&](Ring& to, Ring& from, const Faults& faults) {
    return make_faulty_source(to, std::make_unique<Sink>(), from, faults);
  };
  EXPECT_THROW((void)make(ring, between, {.loss = 1.5}), UsageError);
  EXPECT_THROW((void)make(ring, between, {.corruption = -0.1}), UsageError);
  EXPECT_THROW((void)make(ring, between, {.reordering = std::nan("")}), UsageError);
  EXPECT_THROW((void)make(ring, between, {.reorder_distance = 0}), UsageError);
  EXPECT_THROW((void)make(ring, between, {.reorder_distance = 65}), UsageError);
  EXPECT_THROW((void)make(small, large, {}), UsageError);
}

}  // namespace
}  // namespace headrace::ingest
