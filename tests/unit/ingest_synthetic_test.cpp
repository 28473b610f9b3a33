#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "headrace/base/error.hpp"
#include "headrace/ingest/synthetic_source.hpp"
#include "ingest/sources/headers.hpp"
#include "ingest/stream_bytes.hpp"
#include "tests/ingest_support.hpp"

namespace headrace::ingest {
namespace {

using testing::Bytes;
using testing::cpu_ring;
using testing::internet_checksum;
using testing::load_big;
using testing::take_all;
using testing::TakenPacket;

Bytes stream(std::uint64_t seed, std::uint64_t offset, std::size_t count) {
  Bytes bytes(count);
  StreamBytes(seed).fill(offset, bytes);
  return bytes;
}

TEST(StreamBytes, AnyPartIsThatOfTheWhole) {
  constexpr std::size_t kBytes = 200'000;
  const Bytes whole = stream(7, 0, kBytes);
  for (const std::size_t offset :
       {std::size_t{0}, std::size_t{1}, std::size_t{8}, std::size_t{32765}, std::size_t{65536}}) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{7}, std::size_t{9}, std::size_t{40000}}) {
      const Bytes part = stream(7, offset, count);
      EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(offset)))
          << offset << ' ' << count;
    }
  }
}

TEST(StreamBytes, DiffersBySeedAndDoesNotRepeat) {
  EXPECT_NE(stream(1, 0, 64), stream(2, 0, 64));
  std::set<std::uint64_t> seen;
  for (std::uint64_t block = 0; block < 64; ++block) seen.insert(load_big(stream(1, block * 32768, 8), 0, 8));
  EXPECT_EQ(seen.size(), 64U);
}

TEST(Checksum, IsThatOfTheStandardsExample) {
  const std::uint8_t words[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};  // RFC 1071, 3
  EXPECT_EQ(internet_checksum(std::as_bytes(std::span(words))), static_cast<std::uint16_t>(~0xddf2));
  EXPECT_EQ(internet_checksum(std::as_bytes(std::span(words, 3))), static_cast<std::uint16_t>(~(0x0001 + 0xf200)));
}

TEST(Synthetic, PayloadsAreTheStreamInOrder) {
  Ring ring = cpu_ring();
  const auto source = make_synthetic_source(
      ring,
      {.layer = Layer::payload, .payloads = {{100, 1}, {1400, 2}}, .number_offset = 4, .packets = 500, .seed = 3});
  const std::vector<TakenPacket> all = take_all(*source, ring);
  ASSERT_EQ(all.size(), 500U);
  std::uint64_t offset = 0;
  std::size_t small = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Bytes& bytes = all[i].bytes;
    small += bytes.size() == 100 ? 1 : 0;
    EXPECT_EQ(load_big(bytes, 0, 4), 0U);
    EXPECT_EQ(load_big(bytes, 4, 8), i);
    EXPECT_EQ(Bytes(bytes.begin() + 12, bytes.end()), stream(3, offset, bytes.size() - 12));
    offset += bytes.size() - 12;
  }
  EXPECT_NEAR(static_cast<double>(small), 500.0 / 3, 60);
  EXPECT_EQ(source->counters().packets, 500U);
  EXPECT_EQ(source->counters().bytes, offset + 500 * 12);
  EXPECT_EQ(source->send({}).error().code, Errc::not_supported);
}

TEST(Synthetic, HeadersAreValid) {
  Ring ring = cpu_ring();
  const auto source = make_synthetic_source(
      ring, {.payloads = {{33, 1}}, .number_width = 4, .first_number = 0xFFFFFFFF, .packets = 2, .port = 4791});
  const std::vector<TakenPacket> all = take_all(*source, ring);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(load_big(all[0].bytes, 42, 4), 0xFFFFFFFFU);
  EXPECT_EQ(load_big(all[1].bytes, 42, 4), 0U) << "wraps";
  for (const TakenPacket& one : all) {
    ASSERT_EQ(one.bytes.size(), 14U + 20 + 8 + 33);
    EXPECT_FALSE(one.packet.checksum_verified);
    const std::span<const std::byte> ip = std::span(one.bytes).subspan(14);
    EXPECT_EQ(internet_checksum(ip.first(20)), 0U);
    EXPECT_EQ(load_big(ip, 2, 2), ip.size());
    EXPECT_EQ(load_big(ip, 22, 2), 4791U);
    const std::uint64_t pseudo =
        load_big(ip, 12, 2) + load_big(ip, 14, 2) + load_big(ip, 16, 2) + load_big(ip, 18, 2) + 17 + (ip.size() - 20);
    EXPECT_EQ(internet_checksum(ip.subspan(20), pseudo), 0U);
  }
}

TEST(Synthetic, IsTheSameForTheSameSeed) {
  const auto make = [](std::uint64_t seed) {
    Ring ring = cpu_ring();
    const auto source =
        make_synthetic_source(ring, {.payloads = {{64, 1}, {900, 1}, {1400, 1}}, .packets = 100, .seed = seed});
    Bytes bytes;
    for (const TakenPacket& one : take_all(*source, ring, 7))
      bytes.insert(bytes.end(), one.bytes.begin(), one.bytes.end());
    return bytes;
  };
  EXPECT_EQ(make(5), make(5));
  EXPECT_NE(make(5), make(6));
}

TEST(Synthetic, StopsWhereNoSlotIsFree) {
  Ring ring = cpu_ring(2048, 8);
  const auto source = make_synthetic_source(ring, {});
  std::vector<Packet> packets(16);
  EXPECT_EQ(*source->receive(packets, testing::kShort), 8U);
  EXPECT_EQ(*source->receive(packets, testing::kShort), 0U);
  EXPECT_FALSE(source->ended());
  ring.release(3);
  EXPECT_EQ(*source->receive(packets, testing::kShort), 3U);
}

TEST(Synthetic, PacedPacketsAreStampedWithTheirSchedule) {
  Ring ring = cpu_ring();
  const auto source = make_synthetic_source(ring, {.packets = 20, .packets_per_second = 1000});
  const std::vector<TakenPacket> all = take_all(*source, ring);
  ASSERT_EQ(all.size(), 20U);
  for (std::size_t i = 1; i < all.size(); ++i) {
    EXPECT_EQ(all[i].packet.received_ns - all[i - 1].packet.received_ns, 1'000'000U);
  }
  EXPECT_LE(all.back().packet.received_ns, static_cast<std::uint64_t>(SteadyClock::now().count()));
}

TEST(Synthetic, PayloadsWrittenOnceStayButTheNumberGoesOn) {
  Ring ring = cpu_ring(2048, 4);
  const auto source = make_synthetic_source(
      ring, {.layer = Layer::payload, .packets = 8, .checksums = false, .payloads_once = true, .seed = 1});
  const std::vector<TakenPacket> all = take_all(*source, ring, 4);
  ASSERT_EQ(all.size(), 8U);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(load_big(all[i].bytes, 0, 8), i);
    EXPECT_TRUE(std::equal(all[i].bytes.begin() + 8, all[i].bytes.end(), all[i % 4].bytes.begin() + 8));
  }
}

TEST(Synthetic, RefusesTrafficThatCannotBe) {
  Ring ring = cpu_ring();
  const SyntheticTraffic wrong[] = {
      {.payloads = {}},
      {.payloads = {{4, 1}}},                       // no room for the number
      {.payloads = {{0, 1}}, .number_offset = {}},  // an empty packet
      {.payloads = {{2048, 1}}},                    // larger than a slot, with its headers
      {.payloads = {{100, 0}}},
      {.payloads = {{100, -1}, {200, 2}}},
      {.number_width = 3},
      {.packets_per_second = -1},
      {.packets_per_second = 1e-9},
      {.payloads_once = true},  // with checksums
  };
  for (const SyntheticTraffic& traffic : wrong) EXPECT_THROW((void)make_synthetic_source(ring, traffic), UsageError);
  Ring large = cpu_ring(1 << 17, 4);
  EXPECT_THROW((void)make_synthetic_source(large, {.payloads = {{70000, 1}}}), UsageError);
}

}  // namespace
}  // namespace headrace::ingest
