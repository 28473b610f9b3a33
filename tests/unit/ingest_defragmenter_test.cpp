// IP fragments that are reassembled in the slots of a ring.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "ingest/defragmenter.hpp"
#include "ingest/parse.hpp"
#include "tests/ingest_peer.hpp"
#include "tests/ingest_support.hpp"

namespace headrace::ingest {
namespace {

using testing::Bytes;
using testing::cpu_ring;
using testing::Peer;
using testing::udp_packet;

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::size_t kSlot = 70'000;

/// Cuts an IP packet into fragments with `each` bytes of payload, a multiple of 8.
std::vector<Bytes> cut(const Bytes& packet, std::uint32_t each, std::uint32_t id) {
  const bool four = std::to_integer<unsigned>(packet[0]) >> 4 == 4;
  const std::size_t header = four ? 20 : 40;
  std::vector<Bytes> made;
  for (std::size_t at = header; at < packet.size(); at += each) {
    const std::size_t end = std::min(packet.size(), at + each);
    Bytes one(packet.begin(), packet.begin() + static_cast<std::ptrdiff_t>(header));
    const bool more = end < packet.size();
    const auto place = static_cast<std::uint32_t>(at - header);
    if (four) {
      store_be16(one.data() + 2, static_cast<std::uint32_t>(header + end - at));
      store_be16(one.data() + 4, id);
      store_be16(one.data() + 6, place / 8 | (more ? 0x2000U : 0U));
      store_be16(one.data() + 10, 0);
      store_be16(one.data() + 10, testing::plain_checksum(one));
    } else {
      store_be16(one.data() + 4, static_cast<std::uint32_t>(8 + end - at));
      const auto next = std::to_integer<std::uint32_t>(one[6]);
      store_8(one.data() + 6, 44);
      testing::put(one, next << 24 | place | (more ? 1U : 0U), 4);
      testing::put(one, id, 4);
    }
    one.insert(one.end(), packet.begin() + static_cast<std::ptrdiff_t>(at),
               packet.begin() + static_cast<std::ptrdiff_t>(end));
    made.push_back(one);
  }
  return made;
}

class Fragments : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  [[nodiscard]] static Peer peer() { return {.version = GetParam()}; }
  [[nodiscard]] static Bytes datagram(std::size_t bytes, unsigned seed = 1) {
    std::mt19937 random(seed);
    Bytes payload(bytes);
    for (std::byte& one : payload) one = static_cast<std::byte>(random());
    return udp_packet(peer(), payload);
  }

  /// Passes a burst; returns what is left of it.
  std::vector<Bytes> pass(const std::vector<Bytes>& burst, Layer layer = Layer::ip) {
    return pass(burst, layer, ring_);
  }
  std::vector<Bytes> pass(const std::vector<Bytes>& burst, Layer layer, Ring& ring) {
    std::vector<Packet> packets;
    for (const Bytes& one : burst) {
      std::byte* const slot = ring.slot(position_++);
      std::copy(one.begin(), one.end(), slot);
      packets.push_back({.ring_offset = static_cast<std::uint64_t>(slot - ring.buffer().data()),
                         .received_ns = now_,
                         .length = static_cast<std::uint32_t>(one.size())});
    }
    const std::size_t left = defragmenter_.pass(packets, ring, layer);
    std::vector<Bytes> got;
    for (std::size_t i = 0; i < left; ++i) {
      const std::byte* const at = ring.buffer().data() + packets[i].ring_offset;
      got.emplace_back(at, at + packets[i].length);
      Headers headers;
      EXPECT_EQ(parse_headers(at, packets[i], layer, headers), ParseResult::ok);
    }
    return got;
  }
  /// The payload of UDP. Packets may differ in their headers (identification).
  [[nodiscard]] static Bytes payload(const Bytes& packet) {
    return {packet.begin() + (GetParam() == 4 ? 28 : 48), packet.end()};
  }

  Ring ring_ = cpu_ring(kSlot, 64);
  std::uint64_t position_ = 0;
  std::uint64_t now_ = 1000 * kSecond;
  Defragmenter defragmenter_;
};
INSTANTIATE_TEST_SUITE_P(Versions, Fragments, ::testing::Values(4U, 6U));

TEST_P(Fragments, WholePacketsPass) {
  const Bytes one = datagram(100);
  EXPECT_EQ(pass({one, one}), (std::vector<Bytes>{one, one}));
  EXPECT_EQ(defragmenter_.counters().fragments, 0U);
}

TEST_P(Fragments, InAnyOrderBecomeTheirDatagram) {
  const Bytes one = datagram(5000);
  std::vector<Bytes> fragments = cut(one, 1480, 7);
  std::mt19937 random(3);
  for (int i = 0; i < 20; ++i) {
    std::shuffle(fragments.begin(), fragments.end(), random);
    const auto got = pass(fragments);
    ASSERT_EQ(got.size(), 1U);
    EXPECT_EQ(payload(got[0]), payload(one));
  }
  EXPECT_EQ(defragmenter_.counters().datagrams, 20U);
  EXPECT_EQ(defragmenter_.counters().incomplete, 0U);
}

TEST_P(Fragments, OfSeveralDatagramsAreToldApart) {
  const Bytes one = datagram(3000, 1);
  const Bytes two = datagram(3000, 2);
  const auto first = cut(one, 1000, 1);
  const auto second = cut(two, 1000, 2);
  EXPECT_TRUE(pass({first[0], second[1], first[2], second[0]}).empty());
  EXPECT_EQ(defragmenter_.counters().incomplete, 2U);
  const auto got = pass({second[2], first[1], second[3], first[3], datagram(10)});
  ASSERT_EQ(got.size(), 3U);
  EXPECT_EQ(payload(got[0]), payload(two));
  EXPECT_EQ(payload(got[1]), payload(one));
}

TEST_P(Fragments, BehindEthernetAndTags) {
  const Bytes one = datagram(3000);
  std::vector<Bytes> frames;
  for (const Bytes& fragment : cut(one, 1480, 9)) {
    Bytes frame(12, std::byte{2});
    testing::put(frame, 0x81000005, 4);
    testing::put(frame, GetParam() == 4 ? 0x0800 : 0x86DD, 2);
    frame.insert(frame.end(), fragment.begin(), fragment.end());
    frames.push_back(frame);
  }
  const auto got = pass(frames, Layer::ethernet);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(Bytes(got[0].end() - 3000, got[0].end()), payload(one));
}

TEST_P(Fragments, TheLargestDatagram) {
  const Bytes one = datagram(GetParam() == 4 ? 65535 - 28 : 65535 - 8);
  const auto got = pass(cut(one, 1480, 5));
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(payload(got[0]), payload(one));
}

TEST_P(Fragments, ThatComeTwiceCountOnce) {
  const Bytes one = datagram(3000);
  const auto fragments = cut(one, 1480, 5);
  const auto got = pass({fragments[0], fragments[0], fragments[2], fragments[2], fragments[1]});
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(payload(got[0]), payload(one));
  EXPECT_EQ(defragmenter_.counters().duplicates, 2U);
}

TEST_P(Fragments, ThatOverlapAreRefusedWithTheirDatagram) {
  const Bytes one = datagram(3000);
  const auto right = cut(one, 1480, 5);
  const auto others = cut(one, 1000, 5);
  EXPECT_TRUE(pass({right[0], others[1], right[1], right[2], right[0]}).empty());
  EXPECT_EQ(defragmenter_.counters().overlapping, 1U);
  EXPECT_EQ(defragmenter_.counters().incomplete, 0U);
  now_ += 61 * kSecond;
  EXPECT_EQ(pass(right).size(), 1U);
}

TEST_P(Fragments, BehindTheLastAreRefused) {
  const auto longer = cut(datagram(3000), 1000, 5);
  const auto shorter = cut(datagram(1500), 1000, 5);
  EXPECT_TRUE(pass({longer[0], longer[2], shorter[1]}).empty());
  EXPECT_EQ(defragmenter_.counters().overlapping, 1U);
}

TEST_P(Fragments, WaitForOthersNotForever) {
  const auto fragments = cut(datagram(3000), 1480, 5);
  EXPECT_TRUE(pass({fragments[0], fragments[1]}).empty());
  now_ += 61 * kSecond;
  EXPECT_TRUE(pass({fragments[2]}).empty());
  EXPECT_EQ(defragmenter_.counters().timed_out, 1U);
  EXPECT_EQ(defragmenter_.counters().incomplete, 1U);
}

TEST_P(Fragments, TakeNoMoreMemoryThanThereIs) {
  for (std::uint32_t id = 0; id < 2000; ++id) {
    EXPECT_TRUE(pass({cut(datagram(8000), 4000, id)[0]}).empty());
  }
  const auto counters = defragmenter_.counters();
  EXPECT_GT(counters.no_memory, 500U);
  EXPECT_LT(counters.incomplete, 1100U);
  EXPECT_EQ(counters.no_memory + counters.incomplete, 2000U);
  EXPECT_EQ(pass({cut(datagram(8000), 4000, 1999)[1], cut(datagram(8000), 4000, 1999)[2]}).size(), 1U);
}

TEST_P(Fragments, WithLengthsThatCannotBeAreRefused) {
  auto odd = cut(datagram(3000), 1480, 5)[0];
  odd.pop_back();
  store_be16(odd.data() + (GetParam() == 4 ? 2 : 4),
             static_cast<std::uint32_t>(odd.size() - (GetParam() == 4 ? 0 : 40)));
  if (GetParam() == 4) {
    store_be16(odd.data() + 10, 0);
    store_be16(odd.data() + 10, testing::plain_checksum(Bytes(odd.begin(), odd.begin() + 20)));
  }
  auto cut_off = cut(datagram(3000), 1480, 5)[1];
  cut_off.erase(cut_off.end() - 100, cut_off.end());
  auto far = cut(datagram(3000), 1480, 5)[2];
  store_be16(far.data() + (GetParam() == 4 ? 6 : 42), GetParam() == 4 ? 0x1FFF : 0xFFF8);
  if (GetParam() == 4) {
    store_be16(far.data() + 10, 0);
    store_be16(far.data() + 10, testing::plain_checksum(Bytes(far.begin(), far.begin() + 20)));
  }
  EXPECT_TRUE(pass({odd, cut_off, far}).empty());
  EXPECT_EQ(defragmenter_.counters().malformed, 3U);
}

TEST_P(Fragments, ThatDoNotFitASlotAreRefused) {
  Ring small = cpu_ring(2048, 64);
  EXPECT_TRUE(pass(cut(datagram(3000), 1480, 5), Layer::ip, small).empty());
  EXPECT_EQ(defragmenter_.counters().malformed, 1U);
}

TEST(AtomicFragments, AreWholePackets) {
  const Bytes one = udp_packet({.version = 6}, Bytes(100, std::byte{7}));
  const Bytes atomic = cut(one, 8000, 1)[0];
  Ring ring = cpu_ring(kSlot, 4);
  std::copy(atomic.begin(), atomic.end(), ring.slot(0));
  Packet packet{.length = static_cast<std::uint32_t>(atomic.size())};
  Defragmenter defragmenter;
  ASSERT_EQ(defragmenter.pass({&packet, 1}, ring, Layer::ip), 1U);
  EXPECT_EQ(Bytes(ring.slot(0), ring.slot(0) + packet.length), one);
}

}  // namespace
}  // namespace headrace::ingest
