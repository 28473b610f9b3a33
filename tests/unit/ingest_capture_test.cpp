#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "headrace/base/error.hpp"
#include "headrace/ingest/capture_source.hpp"
#include "ingest/stream_bytes.hpp"
#include "tests/capture_writer.hpp"
#include "tests/ingest_support.hpp"
#include "tests/temporary_folder.hpp"

namespace headrace::ingest {
namespace {

using testing::Bytes;
using testing::CaptureWriter;
using testing::cpu_ring;
using ::testing::HasSubstr;
using ::testing::Property;
using testing::take;
using testing::take_all;
using testing::TakenPacket;
using ::testing::Throws;

constexpr std::uint32_t kEthernet = 1;
constexpr std::uint32_t kRawIp = 101;

/// A packet of stream bytes whose first bytes are `start`.
Bytes packet(std::size_t bytes, std::initializer_list<unsigned> start = {}) {
  Bytes made(bytes);
  StreamBytes(bytes).fill(0, made);
  std::size_t at = 0;
  for (const unsigned one : start) made[at++] = static_cast<std::byte>(one);
  return made;
}

/// An Ethernet frame that holds IPv4.
Bytes frame(std::size_t bytes) {
  Bytes made = packet(bytes);
  made[12] = std::byte{8};
  made[13] = std::byte{0};
  return made;
}

class Capture : public ::testing::Test {
 protected:
  std::string write(const Bytes& bytes) {
    const auto path = (folder_.path() / "packets.pcap").string();
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return path;
  }
  std::vector<TakenPacket> read(CaptureWriter& writer, std::size_t burst = 16) {
    const auto source = open_capture(ring_, write(writer.bytes()));
    layer_ = source->layer();
    return take_all(*source, ring_, burst);
  }
  /// Message of the error for a file, reported when opening it or after `before` packets.
  std::string failure(const Bytes& bytes, std::size_t before = 0) {
    try {
      const auto source = open_capture(ring_, write(bytes));
      std::vector<TakenPacket> taken;
      Result<std::size_t> got = std::size_t{1};
      while (got.ok() && !source->ended()) got = take(*source, ring_, taken);
      if (got.ok()) got = take(*source, ring_, taken);
      EXPECT_EQ(taken.size(), before);
      EXPECT_TRUE(source->ended());
      EXPECT_TRUE(!got.ok() && got.error().code == Errc::corrupt_data);
      return source->failure();
    } catch (const DataError& error) {
      EXPECT_EQ(before, 0U) << error.what();
      return error.what();
    }
  }

  headrace::testing::TemporaryFolder folder_;
  Ring ring_ = cpu_ring();
  Layer layer_ = Layer::payload;
};

class CaptureOrders : public Capture, public ::testing::WithParamInterface<bool> {};

TEST_P(CaptureOrders, ReadsPcapOfMicrosecondsAndNanoseconds) {
  for (const bool nanoseconds : {false, true}) {
    CaptureWriter writer(GetParam());
    writer.pcap_header(nanoseconds, kEthernet);
    writer.pcap_packet(1'700'000'000, 123, frame(60));
    writer.pcap_packet(1'700'000'001, 456, frame(1514));
    const auto taken = read(writer);
    ASSERT_EQ(taken.size(), 2U);
    EXPECT_EQ(layer_, Layer::ethernet);
    EXPECT_EQ(taken[0].bytes, frame(60));
    EXPECT_EQ(taken[1].bytes, frame(1514));
    EXPECT_EQ(taken[0].packet.received_ns, 1'700'000'000'000'000'000U + 123 * (nanoseconds ? 1 : 1000));
    EXPECT_EQ(taken[1].packet.received_ns, 1'700'000'001'000'000'000U + 456 * (nanoseconds ? 1 : 1000));
    EXPECT_FALSE(taken[0].packet.checksum_verified);
    EXPECT_FALSE(taken[0].packet.truncated);
  }
}

TEST_P(CaptureOrders, ReadsEveryBlockOfPcapng) {
  CaptureWriter writer(GetParam());
  writer.section();
  writer.interface(kEthernet);                // microseconds
  writer.interface(kEthernet, 9);             // nanoseconds
  writer.other(5, 40);                        // statistics
  writer.interface(kEthernet, 0x80 | 10, 7);  // 1/1024 s, from 7 s on
  writer.enhanced(0, 5'000'001, frame(61));
  writer.enhanced(1, 5'000'000'001, frame(62));
  writer.enhanced(2, 512, frame(63));
  writer.simple(frame(64), 64);
  writer.old_packet(1, 42, frame(65));
  writer.other(0x0BAD, 3 << 20);  // larger than the reader ever holds
  writer.section();
  writer.interface(kEthernet, 3);
  writer.enhanced(0, 9, frame(66), 2000);
  const auto taken = read(writer);
  const std::uint64_t times[] = {5'000'001'000, 5'000'000'001, 7'500'000'000, 7'500'000'000, 42, 9'000'000};
  ASSERT_EQ(taken.size(), 6U);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(taken[i].bytes, frame(61 + i));
    EXPECT_EQ(taken[i].packet.received_ns, times[i]) << i;
    EXPECT_EQ(taken[i].packet.truncated, i == 5);
  }
}

INSTANTIATE_TEST_SUITE_P(ByteOrders, CaptureOrders, ::testing::Bool(),
                         [](const auto& tested) { return tested.param ? "big" : "little"; });

TEST_F(Capture, SectionsMayDifferInByteOrder) {
  CaptureWriter little(false);
  little.section();
  little.interface(kEthernet);
  little.enhanced(0, 1, frame(60));
  CaptureWriter big(true);
  big.section();
  big.interface(kEthernet);
  big.enhanced(0, 2, frame(70));
  little.put_bytes(big.bytes());
  const auto taken = read(little);
  ASSERT_EQ(taken.size(), 2U);
  EXPECT_EQ(taken[1].bytes, frame(70));
  EXPECT_EQ(taken[1].packet.received_ns, 2000U);
}

TEST_F(Capture, ReadsThroughItsWindow) {
  CaptureWriter writer(false);
  writer.pcap_header(true, kEthernet);
  for (std::uint32_t i = 0; i < 4000; ++i) writer.pcap_packet(0, i, frame(100 + i % 1400));
  const auto taken = read(writer, 7);
  ASSERT_EQ(taken.size(), 4000U);
  for (std::size_t i = 0; i < 4000; ++i) ASSERT_EQ(taken[i].bytes, frame(100 + i % 1400)) << i;
}

TEST_F(Capture, LinkHeadersAreTakenOff) {
  const Bytes ip = packet(80, {0x45});
  const Bytes ip6 = packet(80, {0x60});
  struct Case {
    std::uint32_t link_type;
    std::size_t header_bytes;
  };
  for (const Case& one : {Case{0, 4}, {12, 0}, {14, 0}, {101, 0}, {108, 4}, {113, 16}, {228, 0}, {229, 0}, {276, 20}}) {
    CaptureWriter writer(false);
    writer.pcap_header(false, one.link_type);
    for (const Bytes* inner : {&ip, &ip6}) {
      Bytes whole = packet(one.header_bytes);
      whole.insert(whole.end(), inner->begin(), inner->end());
      writer.pcap_packet(0, 0, whole);
    }
    writer.pcap_packet(0, 0, packet(one.header_bytes + 4, {}));  // cut short, or not IP
    writer.pcap_packet(0, 0, Bytes(one.header_bytes / 2));
    const auto taken = read(writer);
    EXPECT_EQ(layer_, Layer::ip);
    ASSERT_GE(taken.size(), 2U) << one.link_type;
    EXPECT_EQ(taken[0].bytes, ip);
    EXPECT_EQ(taken[1].bytes, ip6);
  }
}

TEST_F(Capture, InterfacesOfTwoLayersAreBroughtToTheFirsts) {
  const Bytes ip = packet(80, {0x45});
  Bytes ethernet = frame(14);
  ethernet.insert(ethernet.end(), ip.begin(), ip.end());
  Bytes tagged = packet(12);
  for (const unsigned one : {0x81U, 0U, 0U, 5U, 8U, 0U}) tagged.push_back(static_cast<std::byte>(one));
  tagged.insert(tagged.end(), ip.begin(), ip.end());
  Bytes arp = frame(60);
  arp[13] = std::byte{6};

  CaptureWriter first_ip(false);
  first_ip.section();
  first_ip.interface(kRawIp);
  first_ip.interface(kEthernet);
  for (const Bytes* one : {&ethernet, &tagged, &arp}) first_ip.enhanced(1, 0, *one);
  first_ip.enhanced(0, 0, ip);
  const auto as_ip = read(first_ip);
  EXPECT_EQ(layer_, Layer::ip);
  ASSERT_EQ(as_ip.size(), 3U);
  for (const TakenPacket& one : as_ip) EXPECT_EQ(one.bytes, ip);

  CaptureWriter first_ethernet(false);
  first_ethernet.section();
  first_ethernet.interface(kEthernet);
  first_ethernet.interface(kRawIp);
  first_ethernet.enhanced(1, 0, ip);
  first_ethernet.enhanced(0, 0, arp);
  const auto as_ethernet = read(first_ethernet);
  EXPECT_EQ(layer_, Layer::ethernet);
  ASSERT_EQ(as_ethernet.size(), 2U);
  EXPECT_EQ(Bytes(as_ethernet[0].bytes.begin() + 12, as_ethernet[0].bytes.begin() + 14),
            (Bytes{std::byte{8}, std::byte{0}}));
  EXPECT_EQ(Bytes(as_ethernet[0].bytes.begin() + 14, as_ethernet[0].bytes.end()), ip);
  EXPECT_EQ(as_ethernet[1].bytes, arp);
}

TEST_F(Capture, PacketsLargerThanASlotAreCut) {
  CaptureWriter writer(false);
  writer.pcap_header(false, kEthernet);
  writer.pcap_packet(0, 0, frame(2049));
  writer.pcap_packet(0, 0, frame(2048));
  const auto source = open_capture(ring_, write(writer.bytes()));
  const auto taken = take_all(*source, ring_);
  ASSERT_EQ(taken.size(), 2U);
  EXPECT_TRUE(taken[0].packet.truncated);
  EXPECT_EQ(taken[0].bytes.size(), 2048U);
  EXPECT_FALSE(taken[1].packet.truncated);
  EXPECT_EQ(source->counters().truncated, 1U);
}

TEST_F(Capture, ReplaysWithItsGaps) {
  CaptureWriter writer(false);
  writer.pcap_header(false, kEthernet);
  writer.pcap_packet(10, 0, frame(60));
  writer.pcap_packet(10, 30'000, frame(60));
  writer.pcap_packet(10, 20'000, frame(60));  // out of order: no gap
  writer.pcap_packet(10, 60'000, frame(60));
  const auto path = write(writer.bytes());
  const auto source = open_capture(ring_, path, {.speed = 2});
  const auto begin = SteadyClock::now();
  const auto taken = take_all(*source, ring_);
  EXPECT_GE(SteadyClock::now() - begin, std::chrono::milliseconds(30));
  ASSERT_EQ(taken.size(), 4U);
  const auto since = [&](std::size_t index) { return taken[index].packet.received_ns - taken[0].packet.received_ns; };
  EXPECT_EQ(since(1), 15'000'000U);
  EXPECT_EQ(since(3), 30'000'000U);
  EXPECT_THROW((void)open_capture(ring_, path, {.speed = -1}), UsageError);
  EXPECT_THROW((void)open_capture(ring_, path, {.speed = 1e-9}), UsageError);
}

TEST_F(Capture, GivesNothingWithoutSlotsAndLosesNothing) {
  Ring small = cpu_ring(2048, 2);
  CaptureWriter writer(false);
  writer.pcap_header(false, kEthernet);
  for (std::uint32_t i = 0; i < 5; ++i) writer.pcap_packet(0, i, frame(60 + i));
  const auto source = open_capture(small, write(writer.bytes()));
  std::vector<Packet> packets(4);
  EXPECT_EQ(*source->receive(packets, {}), 2U);
  EXPECT_EQ(*source->receive(packets, {}), 0U);
  EXPECT_FALSE(source->ended());
  small.release(2);
  EXPECT_EQ(take_all(*source, small).size(), 3U);
}

TEST_F(Capture, SaysWhatIsNoCapture) {
  EXPECT_THAT([&] { (void)open_capture(ring_, "/nowhere/x.pcap"); },
              Throws<SystemError>(Property(&std::exception::what, HasSubstr("there is no file /nowhere/x.pcap"))));
  EXPECT_THAT([&] { (void)open_capture(ring_, folder_.path().string()); },
              Throws<UsageError>(Property(&std::exception::what, HasSubstr("is not a file"))));
  EXPECT_THAT(failure({}), HasSubstr("byte 0: the file is neither pcap nor pcapng: it has only 0 bytes"));
  EXPECT_THAT(failure(packet(100, {0x50, 0x4B, 3, 4})), HasSubstr("it starts with 50 4b 03 04"));
  CaptureWriter writer(false);
  writer.put32(0xA1B2CD34);
  EXPECT_THAT(failure(writer.bytes()), HasSubstr("Kuznetzov"));
}

TEST_F(Capture, SaysWhereAPcapFileIsDamaged) {
  CaptureWriter writer(false);
  writer.pcap_header(false, kEthernet);
  writer.pcap_packet(0, 0, frame(60));
  writer.pcap_packet(0, 0, frame(60));
  const Bytes whole = writer.bytes();
  const auto cut = [&](std::size_t bytes) { return Bytes(whole.begin(), whole.begin() + static_cast<long>(bytes)); };
  EXPECT_THAT(failure(cut(20)), HasSubstr("byte 0: the file ends inside the file header: 20 of 24 bytes are present"));
  EXPECT_THAT(failure(cut(110), 1), HasSubstr("byte 100: the file ends inside a packet header: 10 of 16"));
  EXPECT_THAT(failure(cut(150), 1), HasSubstr("byte 100: the file ends inside a packet: 50 of 76 bytes are present"));
  Bytes large = whole;
  large[100 + 11] = std::byte{0x7F};
  EXPECT_THAT(failure(large, 1), HasSubstr("byte 108: a packet of 2130706492 bytes"));
  Bytes version = whole;
  version[4] = std::byte{9};
  EXPECT_THAT(failure(version), HasSubstr("byte 4: pcap version 9 is not supported, only version 2"));
  Bytes link = whole;
  link[20] = std::byte{105};
  EXPECT_THAT(failure(link), HasSubstr("link type 105 (IEEE 802.11) is not supported; Ethernet, raw IP"));
  link[21] = std::byte{3};
  EXPECT_THAT(failure(link), HasSubstr("link type 873 (unknown)"));
}

TEST_F(Capture, SaysWhereAPcapngFileIsDamaged) {
  CaptureWriter writer(false);
  writer.section();                  // bytes 0 to 27
  writer.interface(kEthernet);       // 28 to 51
  writer.enhanced(0, 1, frame(60));  // 52 to 143
  const Bytes whole = writer.bytes();
  ASSERT_EQ(whole.size(), 144U);
  const auto with = [&](std::size_t at, std::uint32_t value) {
    Bytes bytes = whole;
    std::memcpy(bytes.data() + at, &value, sizeof value);
    return bytes;
  };
  const auto cut = [&](std::size_t bytes) { return Bytes(whole.begin(), whole.begin() + static_cast<long>(bytes)); };
  EXPECT_THAT(failure(cut(20)), HasSubstr("byte 0: the file ends inside a section header"));
  EXPECT_THAT(failure(cut(40)), HasSubstr("byte 28: the file ends inside an interface block"));
  EXPECT_THAT(failure(cut(60)), HasSubstr("byte 52: the file ends inside a block header: 8 of 12"));
  EXPECT_THAT(failure(cut(100)), HasSubstr("byte 52: the file ends inside a packet block: 48 of 92"));
  EXPECT_THAT(failure(with(8, 0)), HasSubstr("byte 8: the section has no byte-order magic"));
  EXPECT_THAT(failure(with(12, 7)), HasSubstr("byte 12: pcapng version 7"));
  EXPECT_THAT(failure(with(24, 0)),
              HasSubstr("byte 24: the block's length is 28 bytes at its start, but 0 at its end"));
  EXPECT_THAT(failure(with(56, 90)), HasSubstr("byte 56: a block of type 6 cannot have 90 bytes"));
  EXPECT_THAT(failure(with(56, 0)), HasSubstr("byte 56: a block of type 6 cannot have 0 bytes"));
  EXPECT_THAT(failure(with(56, 0x7FFFFFFC)), HasSubstr("byte 56: a block of type 6 has 2147483644 bytes"));
  EXPECT_THAT(failure(with(60, 3)), HasSubstr("byte 60: the packet is from interface 3, but the section has 1"));
  EXPECT_THAT(failure(with(72, 61)), HasSubstr("byte 72: a packet cannot have 61 bytes in a block of 92"));
  EXPECT_THAT(failure(with(140, 96)),
              HasSubstr("byte 140: the block's length is 92 bytes at its start, but 96 at its end"));

  CaptureWriter later(false);
  later.section();
  later.interface(kEthernet);
  later.interface(220);
  later.enhanced(0, 1, frame(60));
  later.enhanced(1, 1, frame(60));
  EXPECT_THAT(failure(later.bytes(), 1), HasSubstr("byte 168: link type 220 (USB, Linux, padded) is not supported"));

  CaptureWriter without(false);
  without.section();
  without.enhanced(0, 1, frame(60));
  EXPECT_THAT(failure(without.bytes()), HasSubstr("the packet is from interface 0, but the section has 0"));

  CaptureWriter option(false);
  option.section();
  option.interface(kEthernet, 9);
  Bytes long_option = option.bytes();
  long_option[28 + 16 + 2] = std::byte{200};
  EXPECT_THAT(failure(long_option), HasSubstr("byte 44: option 9 of 200 bytes extends past the end of its block"));
  long_option = option.bytes();
  long_option[28 + 20] = std::byte{20};
  EXPECT_THAT(failure(long_option), HasSubstr("the time resolution 20 is out of range"));
}

TEST_F(Capture, AnEmptyOneEndsAtOnce) {
  CaptureWriter writer(true);
  writer.section();
  EXPECT_TRUE(read(writer).empty());
  CaptureWriter classic(true);
  classic.pcap_header(false, kRawIp);
  EXPECT_TRUE(read(classic).empty());
}

}  // namespace
}  // namespace headrace::ingest
