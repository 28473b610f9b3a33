#include "ingest/builder/mirror.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/device/stream.hpp"
#include "ingest/slot_lead.hpp"

namespace headrace::ingest {
namespace {

constexpr std::uint32_t kPayload = 1460;

class IngestMirror : public ::testing::Test {
 protected:
  /// `count` payloads from slot `first` on, `pitch` bytes apart.
  static EvenPieces run(std::size_t first, std::uint32_t count, std::size_t pitch, std::size_t lead,
                        std::uint32_t length = kPayload) {
    return {.first = {.ring_offset = first * pitch + lead, .stream_offset = 0, .length = length},
            .pitch = count > 1 ? pitch : 0,
            .count = count};
  }

  struct Brought {
    std::uint64_t copies;
    std::uint64_t bytes;
    bool operator==(const Brought&) const = default;
  };
  /// Cost of `runs`; every payload must have arrived.
  static Brought bring(RingAccess access, const std::vector<EvenPieces>& runs) {
    const Device device = Device::parse("cpu");
    const Buffer ring(device, MemoryKind::pinned, kMiB);
    for (std::size_t i = 0; i < ring.bytes(); ++i) ring.data()[i] = static_cast<std::byte>(i * 2654435761U >> 13);
    Mirror mirror(device, ring, access, 64);
    for (const EvenPieces& of : runs) mirror.add(of);
    Stream stream(device);
    EXPECT_TRUE(mirror.bring(stream));
    EXPECT_TRUE(stream.wait());
    for (const EvenPieces& of : runs) {
      for (std::uint32_t i = 0; i < of.count; ++i) {
        const std::size_t at = of.first.ring_offset + i * of.pitch;
        EXPECT_EQ(std::memcmp(mirror.data() + at, ring.data() + at, of.first.length), 0) << at;
      }
    }
    return {mirror.copy_count(), mirror.copy_bytes()};
  }
};

TEST_F(IngestMirror, PayloadsOnLinesComeAlone) {
  EXPECT_EQ(bring(RingAccess::automatic, {run(0, 100, 1536, 64)}), (Brought{1, 100 * 1472}));
  EXPECT_EQ(bring(RingAccess::slots, {run(0, 100, 1536, 64)}), (Brought{1, 99 * 1536 + 1472}));
}

TEST_F(IngestMirror, OthersComeWithWhatLiesBetween) {
  EXPECT_EQ(bring(RingAccess::automatic, {run(0, 100, 1536, 54)}), (Brought{1, 99 * 1536 + 1472})) << "off lines";
  EXPECT_EQ(bring(RingAccess::automatic, {run(0, 100, 1520, 64)}), (Brought{1, 99 * 1520 + 1472})) << "second one off";
  EXPECT_EQ(bring(RingAccess::automatic, {run(0, 100, 128, 64, 64)}), (Brought{1, 99 * 128 + 64})) << "short";
  EXPECT_EQ(bring(RingAccess::payloads, {run(0, 100, 1520, 54)}), (Brought{1, 100 * 1472})) << "asked for";
  EXPECT_EQ(bring(RingAccess::payloads, {run(0, 100, 1514, 54)}),
            (Brought{1, align_up(99 * 1514 + 54 + kPayload, 16) - 48}))
      << "no whole lines";
}

TEST_F(IngestMirror, RunsThatGoOnAreOneCopy) {
  for (const RingAccess access : {RingAccess::automatic, RingAccess::payloads}) {
    EXPECT_EQ(bring(access, {run(0, 1, 1536, 64), run(1, 99, 1536, 64), run(100, 1, 1536, 64)}),
              (Brought{1, 101 * 1472}));
    EXPECT_EQ(bring(access, {run(0, 1, 1536, 64), run(1, 1, 1536, 64), run(2, 1, 1536, 64)}), (Brought{1, 3 * 1472}));
    EXPECT_EQ(bring(access, {run(0, 50, 1536, 64), run(51, 50, 1536, 64)}), (Brought{2, 100 * 1472})) << "one left out";
    EXPECT_EQ(bring(access, {run(0, 50, 1536, 64), run(50, 1, 1536, 64, 1000), run(51, 49, 1536, 64)}).copies, 3U);
  }
  EXPECT_EQ(bring(RingAccess::automatic, {run(0, 1, 1520, 54), run(1, 1, 1520, 54), run(2, 1, 1520, 54, 700)}),
            (Brought{1, 2 * 1520 + 720}));
}

TEST_F(IngestMirror, OrderMayTurnRound) {
  EXPECT_EQ(bring(RingAccess::automatic, {run(9, 1, 1536, 64), run(3, 1, 1536, 64)}).copies, 2U);
  EXPECT_EQ(bring(RingAccess::automatic, {run(500, 9, 1536, 64), run(0, 9, 1536, 64)}), (Brought{2, 18 * 1472}));
}

TEST_F(IngestMirror, WhatLiesFarApartIsNotBrought) {
  EXPECT_EQ(bring(RingAccess::slots, {run(0, 3, 128 * kKiB, 54)}), (Brought{3, 3 * 1472}));
}

TEST(IngestSlotLead, PutsPayloadsOnLines) {
  EXPECT_EQ(slot_lead(Layer::ethernet, Transport::tcp), 62U);
  EXPECT_EQ(slot_lead(Layer::ip, Transport::tcp), 12U);
  EXPECT_EQ(slot_lead(Layer::ethernet, Transport::udp), 22U);
  EXPECT_EQ(slot_lead(Layer::ip, Transport::udp, 8), 28U);
  EXPECT_EQ(slot_lead(Layer::payload, Transport::udp), 0U);
  EXPECT_EQ(slot_lead(Layer::payload, Transport::udp, 64), 0U);
  EXPECT_EQ(slot_lead(Layer::payload, Transport::udp, 70), 58U);
}

}  // namespace
}  // namespace headrace::ingest
