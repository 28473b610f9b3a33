#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "base/file_descriptor.hpp"
#include "headrace/base/error.hpp"
#include "headrace/ingest/detail/wire.hpp"
#include "headrace/ingest/tun_source.hpp"
#include "ingest/net/address.hpp"
#include "ingest/net/subnet.hpp"
#include "ingest/sources/headers.hpp"
#include "ingest/stream_bytes.hpp"
#include "tests/contract/network.hpp"
#include "tests/ingest_support.hpp"

namespace headrace::ingest {
namespace {

using headrace::testing::command;
using headrace::testing::in_namespace;
using headrace::testing::without_rights;
using testing::Bytes;
using testing::cpu_ring;
using ::testing::HasSubstr;
using testing::internet_checksum;
using testing::load_big;
using ::testing::Property;
using testing::take_until;
using testing::TakenPacket;
using ::testing::Throws;

constexpr std::uint8_t kIcmp = 1;
constexpr std::uint8_t kTcp = 6;
constexpr unsigned kSyn = 2;

/// Runs a test in a namespace if TUN devices can be made, and otherwise skips it.
void with_tun(const std::function<void()>& body) {
  std::string lack;
  const std::string no_namespace = in_namespace([&] {
    try {
      Ring ring = cpu_ring(65536, 4);
      (void)open_tun(ring);
    } catch (const SystemError& error) {
      if (error.code() != Errc::no_permission && error.code() != Errc::not_supported) throw;
      lack = error.what();
      return;
    }
    body();
  });
  if (!no_namespace.empty() || !lack.empty()) GTEST_SKIP() << no_namespace << lack;
}

/// An IPv4 packet from `source` with its header's checksum.
Bytes ipv4(std::uint8_t protocol, const IpAddress& source, const IpAddress& destination,
           std::span<const std::byte> inner) {
  Bytes packet(kIpv4Bytes + inner.size());
  packet[0] = std::byte{0x45};
  store_be16(packet.data() + 2, static_cast<std::uint16_t>(packet.size()));
  packet[8] = std::byte{64};
  packet[9] = std::byte{protocol};
  std::memcpy(packet.data() + 12, source.bytes.data(), 4);
  std::memcpy(packet.data() + 16, destination.bytes.data(), 4);
  store_be16(packet.data() + 10, internet_checksum(std::span(packet).first(kIpv4Bytes)));
  std::copy(inner.begin(), inner.end(), packet.begin() + kIpv4Bytes);
  return packet;
}

bool is(const TakenPacket& taken, std::uint8_t protocol) {
  return taken.bytes.size() > kIpv4Bytes && load_big(taken.bytes, 0, 1) == 0x45 &&
         load_big(taken.bytes, 9, 1) == protocol;
}

auto any_of(std::uint8_t protocol) {
  return [protocol](const std::vector<TakenPacket>& all) {
    return std::any_of(all.begin(), all.end(), [&](const TakenPacket& one) { return is(one, protocol); });
  };
}

const TakenPacket& first_of(const std::vector<TakenPacket>& all, std::uint8_t protocol) {
  return *std::find_if(all.begin(), all.end(), [&](const TakenPacket& one) { return is(one, protocol); });
}

/// A TCP socket that connects without waiting.
FileDescriptor connect_to(const IpAddress& address, std::uint16_t port) {
  const SocketAddress to = parse_address(to_string(address), port);
  FileDescriptor socket(::socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK, 0));
  EXPECT_EQ(::connect(socket.get(), to.get(), to.bytes), -1);
  EXPECT_EQ(errno, EINPROGRESS);
  return socket;
}

TEST(TunSource, TheKernelAnswersAPing) {
  with_tun([] {
    Ring ring = cpu_ring(65536, 16);
    const auto source = open_tun(ring);
    EXPECT_EQ(source->layer(), Layer::ip);
    EXPECT_TRUE(source->name().starts_with("headrace")) << source->name();
    EXPECT_THAT(to_string(source->address()), ::testing::StartsWith("198.18."));
    Bytes echo(64);
    StreamBytes(1).fill(0, std::span(echo).subspan(8));
    echo[0] = std::byte{8};  // request
    store_be16(echo.data() + 4, 77);
    store_be16(echo.data() + 2, internet_checksum(echo));
    ASSERT_TRUE(source->send(ipv4(kIcmp, source->address(), source->peer_address(), echo)).ok());
    std::vector<TakenPacket> taken;
    take_until(*source, ring, taken, any_of(kIcmp));
    const TakenPacket& answer = first_of(taken, kIcmp);
    EXPECT_EQ(IpAddress::v4(static_cast<std::uint32_t>(load_big(answer.bytes, 12, 4))), source->peer_address());
    EXPECT_EQ(IpAddress::v4(static_cast<std::uint32_t>(load_big(answer.bytes, 16, 4))), source->address());
    EXPECT_EQ(load_big(answer.bytes, 20, 1), 0U) << "an echo's reply";
    EXPECT_EQ(Bytes(answer.bytes.begin() + 28, answer.bytes.end()), Bytes(echo.begin() + 8, echo.end()));
    EXPECT_EQ(source->counters().sent, 1U);
    EXPECT_EQ(source->counters().sent_bytes, 84U);
  });
}

TEST(TunSource, AConnectionBeginsWithASyn) {
  with_tun([] {
    Ring ring = cpu_ring(65536, 16);
    const auto source = open_tun(ring, {.address = "10.9.0.2", .mtu = 9000});
    EXPECT_EQ(to_string(source->address()), "10.9.0.2");
    EXPECT_EQ(to_string(source->peer_address()), "10.9.0.1");
    const FileDescriptor socket = connect_to(source->address(), 9000);
    std::vector<TakenPacket> taken;
    take_until(*source, ring, taken, any_of(kTcp));
    const Bytes& syn = first_of(taken, kTcp).bytes;
    EXPECT_EQ(load_big(syn, 22, 2), 9000U);
    EXPECT_EQ(load_big(syn, 33, 1), kSyn);
    EXPECT_EQ(load_big(syn, 40, 2), 0x0204U);
    EXPECT_EQ(load_big(syn, 42, 2), 8960U) << "the MSS of the MTU";
  });
}

/// A receiver's answer to a SYN: just a window.
Bytes syn_ack(const TunSource& source, const Bytes& syn) {
  Bytes tcp(24);
  store_be16(tcp.data(), static_cast<std::uint16_t>(load_big(syn, 22, 2)));
  store_be16(tcp.data() + 2, static_cast<std::uint16_t>(load_big(syn, 20, 2)));
  store_be32(tcp.data() + 4, 1000);
  store_be32(tcp.data() + 8, static_cast<std::uint32_t>(load_big(syn, 24, 4)) + 1);
  store_be16(tcp.data() + 12, 0x6012);
  store_be16(tcp.data() + 14, 65535);
  store_be32(tcp.data() + 20, 0x020405B4);  // an MSS of 1460
  std::uint64_t pseudo = kTcp + tcp.size();
  for (const IpAddress& address : {source.address(), source.peer_address()}) {
    for (std::size_t i = 0; i < 4; ++i) pseudo += std::uint64_t{address.bytes[i]} << (i % 2 == 0 ? 8 : 0);
  }
  store_be16(tcp.data() + 16, internet_checksum(tcp, pseudo));
  return ipv4(kTcp, source.address(), source.peer_address(), tcp);
}

struct Stream {
  Bytes bytes;
  std::size_t largest = 0;
  std::uint16_t segment_bytes = 0;
  bool verified = true;
};

/// The first bytes that the kernel sends on a new connection.
Stream first_bytes(bool offloads, std::size_t count) {
  Ring ring = cpu_ring(65536, 64);
  const auto source = open_tun(ring, {.offloads = offloads});
  const FileDescriptor socket = connect_to(source->address(), 9000);
  std::vector<TakenPacket> taken;
  take_until(*source, ring, taken, any_of(kTcp));
  if (::testing::Test::HasFatalFailure()) return {};
  const Bytes syn = first_of(taken, kTcp).bytes;
  EXPECT_TRUE(source->send(syn_ack(*source, syn)).ok());
  pollfd writable{.fd = socket.get(), .events = POLLOUT, .revents = 0};
  EXPECT_EQ(::poll(&writable, 1, 60'000), 1);
  Bytes sent(count);
  StreamBytes(5).fill(0, sent);
  EXPECT_EQ(::send(socket.get(), sent.data(), sent.size(), 0), static_cast<ssize_t>(count));
  const std::uint64_t first = load_big(syn, 24, 4) + 1;
  Stream stream{.bytes = Bytes(count)};
  std::vector<bool> have(count);
  take_until(*source, ring, taken, [&](const std::vector<TakenPacket>& all) {
    for (const TakenPacket& one : all) {
      if (!is(one, kTcp) || one.bytes.size() <= 40 || load_big(one.bytes, 33, 1) == kSyn) continue;
      const std::size_t header = 20 + load_big(one.bytes, 32, 1) / 16 * 4;
      const auto offset = static_cast<std::uint32_t>(load_big(one.bytes, 24, 4) - first);
      for (std::size_t i = header; i < one.bytes.size(); ++i) {
        stream.bytes[offset + i - header] = one.bytes[i];
        have[offset + i - header] = true;
      }
      if (one.bytes.size() <= stream.largest) continue;
      stream.largest = one.bytes.size();
      stream.segment_bytes = one.packet.segment_bytes;
      stream.verified = one.packet.checksum_verified;
    }
    return std::find(have.begin(), have.end(), false) == have.end();
  });
  EXPECT_EQ(stream.bytes, sent);
  return stream;
}

TEST(TunSource, SuperPacketsComeWithTheirSegments) {
  with_tun([] {
    const Stream stream = first_bytes(true, 12'000);
    EXPECT_GT(stream.largest, 3000U);
    EXPECT_EQ(stream.segment_bytes, 1460U);
    EXPECT_TRUE(stream.verified);
  });
}

TEST(TunSource, WithoutOffloadsSegmentsComeAlone) {
  with_tun([] {
    const Stream stream = first_bytes(false, 12'000);
    EXPECT_EQ(stream.largest, 1500U);
    EXPECT_EQ(stream.segment_bytes, 0U);
    EXPECT_FALSE(stream.verified);
  });
}

TEST(TunSource, TheDeviceGoesWithTheSource) {
  with_tun([] {
    Ring ring = cpu_ring(65536, 16);
    for (int i = 0; i < 3; ++i) {
      const auto source = open_tun(ring, {.name = "once"});
      EXPECT_NE(::if_nametoindex("once"), 0U);
      EXPECT_THAT([&] { (void)open_tun(ring, {.name = "once"}); },
                  Throws<SystemError>(Property(&std::exception::what, HasSubstr("once is already in use"))));
    }
    EXPECT_EQ(::if_nametoindex("once"), 0U);
    // A failed set-up leaves nothing behind either.
    command("ip addr add 10.9.0.1/24 dev lo");
    EXPECT_THROW((void)open_tun(ring, {.address = "10.9.0.2", .name = "once"}), UsageError);
    EXPECT_EQ(::if_nametoindex("once"), 0U);
  });
}

TEST(TunSource, SubnetsDoNotClash) {
  with_tun([] {
    Ring ring = cpu_ring(65536, 16);
    command("ip addr add 198.18.0.1/29 dev lo");
    command("ip route add 198.18.0.8/29 dev lo table 77");
    const auto first = open_tun(ring);
    EXPECT_EQ(to_string(first->address()), "198.18.0.18");
    const auto second = open_tun(ring);
    EXPECT_EQ(to_string(second->address()), "198.18.0.22");
    EXPECT_THAT(
        [&] { (void)open_tun(ring, {.address = "198.18.0.14"}); },
        Throws<UsageError>(Property(&std::exception::what, HasSubstr("198.18.0.12/30 overlaps 198.18.0.8/29"))));
  });
}

TEST(TunSource, AConnectionOfIpv6BeginsWithASyn) {
  with_tun([] {
    Ring ring = cpu_ring(65536, 16);
    const auto source = open_tun(ring, {.address = "fd00:9::2"});
    EXPECT_EQ(to_string(source->address()), "fd00:9::2");
    EXPECT_EQ(to_string(source->peer_address()), "fd00:9::1");
    EXPECT_THAT([&] { (void)open_tun(ring, {.address = "fd00:9::1"}); },
                Throws<UsageError>(Property(&std::exception::what, HasSubstr("fd00:9::/126 overlaps fd00:9::"))));
    EXPECT_EQ(to_string(open_tun(ring, {.address = "::"})->address()), "2001:2::2");
    const FileDescriptor socket = connect_to(source->address(), 9000);
    std::vector<TakenPacket> taken;
    const auto is_syn = [](const TakenPacket& one) {
      return load_big(one.bytes, 0, 1) >> 4 == 6 && load_big(one.bytes, 6, 1) == kTcp;
    };
    take_until(*source, ring, taken,
               [&](const std::vector<TakenPacket>& all) { return std::any_of(all.begin(), all.end(), is_syn); });
    const Bytes& syn = std::find_if(taken.begin(), taken.end(), is_syn)->bytes;
    EXPECT_EQ(load_big(syn, 42, 2), 9000U);
    EXPECT_EQ(load_big(syn, 53, 1), kSyn);
    EXPECT_EQ(load_big(syn, 62, 2), 1440U) << "the MSS of the MTU";
    EXPECT_EQ(taken.size(), 1U) << "the kernel sends nothing itself";
  });
}

// A burst of clients that connect at once exceeds the kernel's default queues for such devices.
TEST(TunSource, ThousandsWhoConnectAtOnceAreAllHeard) {
  with_tun([] {
    constexpr std::size_t kClients = 2500;
    Ring ring = cpu_ring(1 << 22, 64);
    const auto source = open_tun(ring, {.address = "10.9.0.2"});
    for (std::size_t i = 0; i < kClients; ++i) (void)connect_to(source->address(), 9000);  // closing leaves the SYN
    std::vector<TakenPacket> taken;
    for (std::size_t before = 0; taken.size() < kClients; before = taken.size()) {
      ASSERT_TRUE(testing::take(*source, ring, taken).ok());
      if (taken.size() == before) break;
    }
    EXPECT_EQ(taken.size(), kClients) << "nothing was lost before it was read";
  });
}

TEST(TunSource, ADeletedDeviceIsNamed) {
  with_tun([] {
    Ring ring = cpu_ring(65536, 16);
    const auto source = open_tun(ring, {.name = "shortlived"});
    command("ip link del shortlived");
    std::vector<Packet> packets(4);
    EXPECT_EQ(source->receive(packets, testing::kGuard).error().native, EBADFD);
    EXPECT_EQ(source->failure(), "the network device shortlived has been deleted");
    EXPECT_EQ(source->send(Bytes(40)).error().native, EBADFD);
  });
}

TEST(TunSource, AClosedSourceKeepsItsCountersAlone) {
  with_tun([] {
    Ring ring = cpu_ring(65536, 1);
    const auto source = open_tun(ring, {.address = "10.9.0.2", .name = "once"});
    std::vector<Packet> packets(4);
    const FileDescriptor one = connect_to(source->address(), 1);
    EXPECT_EQ(*source->receive(packets, testing::kGuard), 1U);
    source->close();
    source->close();
    EXPECT_EQ(::if_nametoindex("once"), 0U);
    EXPECT_EQ(source->counters().packets, 1U);
    ring.release(1);
    const auto again = open_tun(ring, {.address = "10.9.0.2", .name = "once"});
    const FileDescriptor two = connect_to(again->address(), 1);
    EXPECT_EQ(*again->receive(packets, testing::kGuard), 1U);
  });
}

TEST(TunSource, StopsWithoutSlotsAndWaitsNoLongerThanAsked) {
  with_tun([] {
    Ring ring = cpu_ring(65536, 1);
    const auto source = open_tun(ring);
    std::vector<Packet> packets(4);
    EXPECT_EQ(*source->receive(packets, testing::kShort), 0U);
    const FileDescriptor one = connect_to(source->address(), 1);
    const FileDescriptor two = connect_to(source->address(), 2);
    EXPECT_EQ(*source->receive(packets, testing::kGuard), 1U);
    EXPECT_EQ(*source->receive(packets, Duration{}), 0U);  // no slot is free
    ring.release(1);
    EXPECT_EQ(*source->receive(packets, testing::kGuard), 1U);
  });
}

TEST(TunSource, RefusesWhatCannotBe) {
  const auto says = [](const char* words) { return Property(&std::exception::what, HasSubstr(words)); };
  Ring ring = cpu_ring(65536, 4);
  Ring small = cpu_ring(2048, 4);
  const auto opening = [](Ring& to, const TunOptions& options) {
    return [&to, options] { (void)open_tun(to, options); };
  };
  EXPECT_THAT(opening(small, {}), Throws<UsageError>(says("up to 65535 bytes, but the ring's slots have only 2048")));
  EXPECT_THAT(opening(small, {.mtu = 9000, .offloads = false}), Throws<UsageError>(says("up to 9000 bytes")));
  EXPECT_THAT(opening(ring, {.mtu = 60}), Throws<UsageError>(says("from 68 to 65535, not 60")));
  EXPECT_THAT(opening(ring, {.mtu = 65536}), Throws<UsageError>(says("not 65536")));
  EXPECT_THAT(opening(ring, {.address = "10.0.0"}),
              Throws<UsageError>(says("'10.0.0' is not an IPv4 or IPv6 address")));
  EXPECT_THAT(opening(ring, {.address = "10.0.0.2/31"}), Throws<UsageError>(says("prefix")));
  EXPECT_THAT(opening(ring, {.address = "10.0.0.2/30x"}), Throws<UsageError>(says("prefix")));
  EXPECT_THAT(opening(ring, {.address = "10.0.0.4/30"}), Throws<UsageError>(says("not a host address in 10.0.0.4/30")));
  EXPECT_THAT(opening(ring, {.address = "fd00:9::2", .mtu = 1000}),
              Throws<UsageError>(says("the MTU for IPv6 must be from 1280 to 65535, not 1000")));
  EXPECT_THAT(opening(ring, {.address = "fd00:9::2/127"}),
              Throws<UsageError>(says("the prefix length of a subnet must be from 1 to 126")));
  EXPECT_THAT(opening(ring, {.address = "fe80::2"}), Throws<UsageError>(says("link-local")));
  EXPECT_THAT(opening(ring, {.name = ""}), Throws<UsageError>(says("1 to 15 characters")));
  EXPECT_THAT(opening(ring, {.name = "a-name-that-is-long"}), Throws<UsageError>(says("1 to 15 characters")));
}

TEST(TunSource, WithoutRightsItNamesTheCapability) {
  std::string said;
  const bool ran = without_rights([&] {
    Ring ring = cpu_ring(65536, 4);
    try {
      (void)open_tun(ring);
    } catch (const SystemError& error) {
      EXPECT_TRUE(error.code() == Errc::no_permission || error.code() == Errc::not_supported);
      said = error.what();
    }
  });
  if (!ran) GTEST_SKIP() << "needs root, whose capabilities the test drops";
  if (said.find("/dev/net/tun is not available") != std::string::npos) GTEST_SKIP() << said;
  EXPECT_THAT(said, HasSubstr("CAP_NET_ADMIN"));
}

}  // namespace
}  // namespace headrace::ingest
