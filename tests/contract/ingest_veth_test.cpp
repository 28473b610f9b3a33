#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "base/file_descriptor.hpp"
#include "headrace/base/error.hpp"
#include "headrace/config.hpp"
#include "headrace/ingest/detail/wire.hpp"
#include "headrace/ingest/packet_socket_source.hpp"
#include "headrace/ingest/xdp_source.hpp"
#include "ingest/net/address.hpp"
#include "ingest/sources/headers.hpp"
#include "ingest/stream_bytes.hpp"
#include "tests/contract/network.hpp"
#include "tests/ingest_support.hpp"

namespace headrace::ingest {
namespace {

using headrace::testing::command;
using headrace::testing::in_namespace;
using headrace::testing::make_veth;
using headrace::testing::without_rights;
using testing::Bytes;
using testing::cpu_ring;
using ::testing::HasSubstr;
using testing::load_big;
using ::testing::Property;
using testing::take_until;
using testing::TakenPacket;
using ::testing::Throws;

constexpr int kUdpSegment = 103;  // UDP_SEGMENT
constexpr std::size_t kHeaders = kEthernetBytes + kIpv4Bytes + kUdpBytes;

auto says(const char* words) { return Property(&std::exception::what, HasSubstr(words)); }

/// Runs a test between two ends of a veth pair, or skips it if there can be none.
void with_veth(const std::function<void()>& body, const std::string& mtu = "1500") {
  const std::string lack = in_namespace([&] {
    make_veth(mtu);
    if (!::testing::Test::HasFatalFailure()) body();
  });
  if (!lack.empty()) GTEST_SKIP() << lack;
}

/// A kernel UDP socket on the left, whose datagrams arrive on the right.
class Left {
 public:
  explicit Left(std::uint16_t port, int cut_every = 0) : to_(parse_address("10.77.0.2", port)) {
    socket_ = FileDescriptor(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (cut_every != 0) {
      EXPECT_EQ(::setsockopt(socket_.get(), IPPROTO_UDP, kUdpSegment, &cut_every, sizeof cut_every), 0);
    }
  }
  void send(std::span<const std::byte> bytes) const {
    ASSERT_EQ(::sendto(socket_.get(), bytes.data(), bytes.size(), 0, to_.get(), to_.bytes),
              static_cast<ssize_t>(bytes.size()))
        << std::strerror(errno);
  }
  /// A datagram that begins with its number.
  void send(std::uint32_t number, std::size_t bytes) const {
    Bytes payload(bytes);
    StreamBytes(number).fill(0, payload);
    store_be32(payload.data(), number);
    send(payload);
  }

 private:
  SocketAddress to_;
  FileDescriptor socket_;
};

bool is_udp_to(const TakenPacket& taken, std::uint16_t port) {
  return taken.bytes.size() >= kHeaders && load_big(taken.bytes, 12, 2) == kEthertypeIpv4 &&
         load_big(taken.bytes, 23, 1) == IPPROTO_UDP && load_big(taken.bytes, 36, 2) == port;
}

std::vector<TakenPacket> udp_to(const std::vector<TakenPacket>& all, std::uint16_t port) {
  std::vector<TakenPacket> some;
  std::copy_if(all.begin(), all.end(), std::back_inserter(some),
               [&](const TakenPacket& one) { return is_udp_to(one, port); });
  return some;
}

auto datagrams(std::uint16_t port, std::size_t count) {
  return [=](const std::vector<TakenPacket>& all) { return udp_to(all, port).size() >= count; };
}

/// Every datagram sent by Left::send(number, bytes), once and unchanged.
void expect_numbers(const std::vector<TakenPacket>& all, std::uint32_t count, std::size_t bytes) {
  std::map<std::uint64_t, int> seen;
  for (const TakenPacket& one : all) {
    ASSERT_EQ(one.bytes.size(), kHeaders + bytes);
    const auto number = load_big(one.bytes, kHeaders, 4);
    ++seen[number];
    Bytes expected(bytes);
    StreamBytes(number).fill(0, expected);
    ASSERT_TRUE(std::equal(expected.begin() + 4, expected.end(), one.bytes.begin() + kHeaders + 4)) << number;
    EXPECT_FALSE(one.packet.truncated);
  }
  EXPECT_EQ(seen.size(), count);
  for (const auto& [number, times] : seen) EXPECT_EQ(times, 1) << number;
}

/// A packet socket closes a block when its time is up, however little it holds: a receiver that does not look while a
/// slow machine sends runs out of blocks.
void take_what_is_there(Source& source, Ring& ring, std::vector<TakenPacket>& to) {
  const auto got = testing::take(source, ring, to, Duration{});
  ASSERT_TRUE(got.ok()) << got.error().native;
}

TEST(PacketSocketSource, GivesFramesAsTheyWereSent) {
  with_veth([] {
    Ring ring = cpu_ring();
    const auto source = open_packet_socket(ring, {.interface = "right", .udp_port = 9000});
    EXPECT_EQ(source->layer(), Layer::ethernet);
    const Left sender(9000);
    const Left other(9001);
    std::vector<TakenPacket> taken;
    for (std::uint32_t i = 0; i < 300; ++i) {
      sender.send(i, 1000);
      other.send(i, 1000);
      take_what_is_there(*source, ring, taken);
    }
    take_until(*source, ring, taken, [](const auto& all) { return all.size() >= 300; });
    expect_numbers(taken, 300, 1000);
    EXPECT_TRUE(taken[0].packet.checksum_verified) << "it has not left this machine";
    EXPECT_EQ(source->counters().packets, 300U) << "the filter lets one port through";
    EXPECT_EQ(source->counters().dropped, 0U);
    const auto now = static_cast<std::uint64_t>(SteadyClock::now().count());
    EXPECT_LE(taken[0].packet.received_ns, now);
    EXPECT_GE(taken[0].packet.received_ns + 600'000'000'000U, now);
  });
}

TEST(PacketSocketSource, MergedDatagramsSayWhereToCut) {
  with_veth([] {
    Ring ring = cpu_ring(65536 + 256, 16);
    const auto source = open_packet_socket(ring, {.interface = "right", .udp_port = 9000});
    const Left sender(9000, 1000);
    Bytes sent(10'500);
    StreamBytes(1).fill(0, sent);
    sender.send(sent);
    std::vector<TakenPacket> taken;
    take_until(*source, ring, taken, datagrams(9000, 1));
    ASSERT_EQ(taken.size(), 1U);
    EXPECT_EQ(taken[0].packet.segment_bytes, 1000U);
    EXPECT_EQ(Bytes(taken[0].bytes.begin() + kHeaders, taken[0].bytes.end()), sent);
  });
}

TEST(PacketSocketSource, SendsFramesAndDoesNotSeeItsOwn) {
  with_veth([] {
    Ring left_ring = cpu_ring();
    Ring right_ring = cpu_ring();
    const auto left = open_packet_socket(left_ring, {.interface = "left"});
    const auto right = open_packet_socket(right_ring, {.interface = "right"});
    Bytes frame(kHeaders + 100);
    StreamBytes(1).fill(0, frame);
    write_udp(std::span(frame).subspan(kEthernetBytes),
              {.source = 0x0A4D0002, .destination = 0x0A4D0001, .source_port = 5, .destination_port = 6});
    write_ethernet(frame.data(), kEthertypeIpv4);
    const Status sent = right->send(frame);
    ASSERT_TRUE(sent.ok()) << to_string(sent.error().code) << " " << sent.error().native;
    std::vector<TakenPacket> taken;
    take_until(*left, left_ring, taken, datagrams(6, 1));
    EXPECT_EQ(udp_to(taken, 6)[0].bytes, frame);
    std::vector<TakenPacket> echoed;
    (void)testing::take(*right, right_ring, echoed);
    EXPECT_TRUE(udp_to(echoed, 6).empty());
    EXPECT_EQ(right->counters().sent_bytes, frame.size());
  });
}

TEST(PacketSocketSource, AGroupSharesWhatComes) {
  with_veth([] {
    Ring rings[] = {cpu_ring(), cpu_ring()};
    std::vector<std::unique_ptr<Source>> sources;
    for (Ring& ring : rings) {
      sources.push_back(open_packet_socket(
          ring, {.interface = "right", .udp_port = 9000, .group = 7, .fanout = Fanout::round_robin}));
    }
    EXPECT_THAT([&] { (void)open_packet_socket(rings[0], {.interface = "left", .group = 7, .fanout = Fanout::hash}); },
                Throws<UsageError>(says("group 7 already exists")));
    const Left sender(9000);
    std::vector<TakenPacket> all;
    for (std::uint32_t i = 0; i < 200; ++i) {
      sender.send(i, 500);
      for (std::size_t one = 0; one < 2; ++one) take_what_is_there(*sources[one], rings[one], all);
    }
    const auto give_up = std::chrono::steady_clock::now() + testing::kGuard;
    while (all.size() < 200 && std::chrono::steady_clock::now() < give_up) {
      for (std::size_t i = 0; i < 2; ++i) ASSERT_TRUE(testing::take(*sources[i], rings[i], all).ok());
    }
    expect_numbers(all, 200, 500);
    EXPECT_GT(sources[0]->counters().packets, 0U);
    EXPECT_GT(sources[1]->counters().packets, 0U);
  });
}

TEST(PacketSocketSource, CutsWhatIsLargerThanASlotAndCountsDrops) {
  with_veth([] {
    Ring ring = cpu_ring(512, 16);
    const auto source =
        open_packet_socket(ring, {.interface = "right", .udp_port = 9000, .block_bytes = 1 << 17, .block_count = 2});
    const Left sender(9000);
    for (std::uint32_t i = 0; i < 1000; ++i) sender.send(i, 1400);  // far more than the kernel's ring holds
    std::vector<TakenPacket> taken;
    while (*testing::take(*source, ring, taken, std::chrono::milliseconds(200)) != 0) continue;
    EXPECT_EQ(source->counters().packets + source->counters().dropped, 1000U);
    EXPECT_GT(source->counters().dropped, 0U);
    EXPECT_EQ(source->counters().truncated, source->counters().packets);
    EXPECT_EQ(taken[0].bytes.size(), 512U);
  });
}

TEST(PacketSocketSource, SaysWhatIsWrong) {
  with_veth([] {
    Ring ring = cpu_ring();
    const auto opening = [&](const PacketSocketOptions& options) {
      return [&ring, options] { (void)open_packet_socket(ring, options); };
    };
    EXPECT_THAT(opening({.interface = "nowhere0"}),
                Throws<UsageError>(says("there is no network interface 'nowhere0'; this machine has: lo")));
    EXPECT_THAT(opening({.interface = "right", .block_bytes = 100'000}), Throws<UsageError>(says("not 100000")));
    EXPECT_THAT(opening({.interface = "right", .block_bytes = 4096}), Throws<UsageError>(says("not 4096")));
    EXPECT_THAT(opening({.interface = "right", .block_count = 1}),
                Throws<UsageError>(says("2 to 524,288 blocks, not 1")));
    EXPECT_THAT(opening({.interface = "right", .block_timeout_ms = 0}), Throws<UsageError>(says("at least 1 ms")));
    const auto source = open_packet_socket(ring, {.interface = "right"});
    std::vector<Packet> packets(4);
    std::vector<TakenPacket> taken;
    while (*testing::take(*source, ring, taken) != 0) continue;
    command("ip link del left");
    Result<std::size_t> got = std::size_t{0};
    const auto give_up = std::chrono::steady_clock::now() + testing::kGuard;
    while (got.ok() && std::chrono::steady_clock::now() < give_up) got = testing::take(*source, ring, taken);
    ASSERT_FALSE(got.ok()) << "the interface is gone";
    EXPECT_EQ(got.error().native, ENETDOWN);
    EXPECT_EQ(source->failure(), "the network interface right has been deleted");
  });
}

/// Runs a test with AF_XDP, or skips it if it is not built or not available.
void with_xdp(const std::function<void()>& body, const std::string& mtu = "1500") {
  if (!kBuiltWithXdp) {
    Ring ring = cpu_ring();
    EXPECT_THAT([&] { (void)open_xdp(ring, {.interface = "lo"}); }, Throws<UsageError>(says("libxdp-dev")));
    GTEST_SKIP() << "built without AF_XDP";
  }
  std::string lack;
  with_veth(
      [&] {
        try {
          Ring ring = cpu_ring();
          (void)open_xdp(ring, {.interface = "right", .hook = XdpHook::generic, .frames = 64});
        } catch (const SystemError& error) {
          if (error.code() != Errc::no_permission && error.code() != Errc::not_supported) throw;
          lack = error.what();
          return;
        }
        body();
      },
      mtu);
  if (!lack.empty()) GTEST_SKIP() << lack;
}

class XdpSourceAt : public ::testing::TestWithParam<XdpHook> {};

TEST_P(XdpSourceAt, GivesFramesOfEveryQueue) {
  with_xdp([] {
    Ring ring = cpu_ring();
    const auto source = open_xdp(ring, {.interface = "right", .hook = GetParam()});
    EXPECT_EQ(source->layer(), Layer::ethernet);
    std::vector<Left> senders;
    for (int i = 0; i < 16; ++i) senders.emplace_back(std::uint16_t{9000});  // flows, spread over queues
    for (std::uint32_t i = 0; i < 480; ++i) senders[i % 16].send(i, 1000);
    std::vector<TakenPacket> taken;
    take_until(*source, ring, taken, datagrams(9000, 480));
    expect_numbers(udp_to(taken, 9000), 480, 1000);
    EXPECT_FALSE(taken[0].packet.checksum_verified);
    EXPECT_EQ(source->counters().dropped, 0U);
    EXPECT_EQ(source->counters().packets, taken.size());
  });
}

TEST_P(XdpSourceAt, PutsLargeFramesTogether) {
  with_xdp(
      [] {
        Ring ring = cpu_ring(9216, 64);
        std::unique_ptr<Source> source;
        try {
          source = open_xdp(ring, {.interface = "right", .hook = GetParam(), .trust_checksums = true});
        } catch (const SystemError& error) {
          GTEST_SKIP() << error.what();  // before Linux 6.6
        }
        const Left sender(9000);
        for (std::uint32_t i = 0; i < 100; ++i) sender.send(i, 8900);
        std::vector<TakenPacket> taken;
        take_until(*source, ring, taken, datagrams(9000, 100));
        expect_numbers(udp_to(taken, 9000), 100, 8900);
        EXPECT_TRUE(taken[0].packet.checksum_verified) << "as asked";
      },
      "9000");
}

TEST_P(XdpSourceAt, TakesOnlyWhatTheFilterNames) {
  with_xdp([] {
    Ring ring = cpu_ring();
    const auto by_port = open_xdp(ring, {.interface = "right", .udp_port = 9000, .hook = GetParam()});
    const Left wanted(9000);
    const Left other(9001);
    const auto send_both = [&] {
      for (std::uint32_t i = 0; i < 50; ++i) {
        other.send(i, 200);
        wanted.send(i, 200);
      }
    };
    send_both();
    std::vector<TakenPacket> taken;
    take_until(*by_port, ring, taken, datagrams(9000, 50));
    EXPECT_EQ(taken.size(), 50U) << "nothing else";
  });
  with_xdp([] {
    Ring ring = cpu_ring();
    const auto by_address = open_xdp(ring, {.interface = "right", .address = "10.77.0.2", .hook = GetParam()});
    command("ip neigh add 10.77.0.3 lladdr 02:00:00:00:00:02 dev left");
    const SocketAddress elsewhere = parse_address("10.77.0.3", 9000);
    const FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM, 0));
    const Left wanted(9000);
    for (std::uint32_t i = 0; i < 50; ++i) {
      ASSERT_EQ(::sendto(socket.get(), "away", 4, 0, elsewhere.get(), elsewhere.bytes), 4);
      wanted.send(i, 200);
    }
    std::vector<TakenPacket> taken;
    take_until(*by_address, ring, taken, datagrams(9000, 50));
    EXPECT_EQ(taken.size(), 50U) << "nothing else";
  });
}

TEST_P(XdpSourceAt, SendsFrames) {
  with_xdp([] {
    Ring ring = cpu_ring();
    Ring left_ring = cpu_ring();
    const auto source = open_xdp(ring, {.interface = "right", .hook = GetParam()});
    const auto left = open_packet_socket(left_ring, {.interface = "left", .udp_port = 6});
    Bytes frame(kHeaders + 100);
    StreamBytes(1).fill(0, frame);
    write_udp(std::span(frame).subspan(kEthernetBytes),
              {.source = 0x0A4D0002, .destination = 0x0A4D0001, .source_port = 5, .destination_port = 6});
    write_ethernet(frame.data(), kEthertypeIpv4);
    constexpr std::size_t kCount = 1000;  // more than there are frames for sending
    std::vector<TakenPacket> taken;
    const auto give_up = std::chrono::steady_clock::now() + testing::kGuard;
    std::size_t sent = 0;
    while (sent < kCount && std::chrono::steady_clock::now() < give_up) {
      const Status status = source->send(frame);
      if (status) ++sent;
      ASSERT_TRUE(status.ok() || status.error().code == Errc::full);
      take_what_is_there(*left, left_ring, taken);
    }
    take_until(*left, left_ring, taken, [](const auto& all) { return all.size() >= kCount; });
    for (const TakenPacket& one : taken) ASSERT_EQ(one.bytes, frame);
    EXPECT_EQ(source->counters().sent, kCount);
    EXPECT_EQ(source->send(Bytes(5000)).error().code, Errc::invalid_argument);
    EXPECT_EQ(source->send({}).error().code, Errc::invalid_argument);
  });
}

INSTANTIATE_TEST_SUITE_P(Hooks, XdpSourceAt, ::testing::Values(XdpHook::driver, XdpHook::generic),
                         [](const auto& tested) { return tested.param == XdpHook::driver ? "driver" : "generic"; });

TEST(XdpSource, CountsWhatFindsNoFrame) {
  with_xdp([] {
    Ring ring = cpu_ring();
    const auto source =
        open_xdp(ring, {.interface = "right", .udp_port = 9000, .hook = XdpHook::generic, .frames = 64});
    const Left sender(9000);
    for (std::uint32_t i = 0; i < 500; ++i) sender.send(i, 500);
    std::vector<TakenPacket> taken;
    while (*testing::take(*source, ring, taken, std::chrono::milliseconds(200)) != 0) continue;
    EXPECT_EQ(source->counters().packets + source->counters().dropped, 500U);
    EXPECT_GT(source->counters().dropped, 0U);
  });
}

TEST(XdpSource, SaysWhatIsWrong) {
  with_xdp([] {
    Ring ring = cpu_ring();
    const auto opening = [&](const XdpOptions& options) { return [&ring, options] { (void)open_xdp(ring, options); }; };
    EXPECT_THAT(opening({.interface = "nowhere0"}),
                Throws<UsageError>(says("there is no network interface 'nowhere0'")));
    EXPECT_THAT(opening({.interface = "right", .first_queue = 4}),
                Throws<UsageError>(says("right has 4 receive queues")));
    EXPECT_THAT(opening({.interface = "right", .first_queue = 2, .queue_count = 3}),
                Throws<UsageError>(says("3 starting at queue 2")));
    EXPECT_THAT(opening({.interface = "right", .frames = 100}), Throws<UsageError>(says("power of two")));
    EXPECT_THAT(opening({.interface = "right", .address = "::1"}), Throws<UsageError>(says("not an IPv4 address")));
    const auto first = open_xdp(ring, {.interface = "right", .queue_count = 1});
    EXPECT_THAT(opening({.interface = "right", .queue_count = 1}),
                Throws<SystemError>(says("another socket is bound to that queue")));
    EXPECT_THAT(opening({.interface = "right", .first_queue = 1}), Throws<SystemError>(says("another XDP program")));
  });
}

TEST(PacketSocketSource, WithoutRightsItNamesTheCapability) {
  const bool ran = without_rights([] {
    Ring ring = cpu_ring();
    EXPECT_THAT([&] { (void)open_packet_socket(ring, {.interface = "lo"}); }, Throws<SystemError>(says("CAP_NET_RAW")));
  });
  if (!ran) GTEST_SKIP() << "needs root, whose capabilities the test drops";
}

TEST(XdpSource, WithoutRightsItNamesTheCapabilities) {
  if (!kBuiltWithXdp) GTEST_SKIP() << "built without AF_XDP";
  const bool ran = without_rights([] {
    Ring ring = cpu_ring();
    EXPECT_THAT([&] { (void)open_xdp(ring, {.interface = "lo"}); },
                Throws<SystemError>(says("CAP_NET_ADMIN and CAP_BPF")));
  });
  if (!ran) GTEST_SKIP() << "needs root, whose capabilities the test drops";
}

}  // namespace
}  // namespace headrace::ingest
