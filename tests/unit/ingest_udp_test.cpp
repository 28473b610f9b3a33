#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "base/file_descriptor.hpp"
#include "headrace/base/error.hpp"
#include "headrace/ingest/udp_source.hpp"
#include "ingest/net/address.hpp"
#include "ingest/stream_bytes.hpp"
#include "tests/ingest_support.hpp"

namespace headrace::ingest {
namespace {

using testing::Bytes;
using testing::cpu_ring;
using testing::take_until;
using testing::TakenPacket;

constexpr int kUdpSegment = 103;  // UDP_SEGMENT

Bytes stream(std::uint64_t offset, std::size_t count) {
  Bytes bytes(count);
  StreamBytes(1).fill(offset, bytes);
  return bytes;
}

/// A kernel socket that sends to a loopback port.
class Sender {
 public:
  Sender(const std::string& address, std::uint16_t port) : to_(parse_address(address, port)) {
    socket_ = FileDescriptor(::socket(to_.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  }
  void send(std::span<const std::byte> bytes) const {
    ASSERT_EQ(::sendto(socket_.get(), bytes.data(), bytes.size(), 0, to_.get(), to_.bytes),
              static_cast<ssize_t>(bytes.size()))
        << std::strerror(errno);
  }
  [[nodiscard]] bool cut_every(int bytes) const {
    return ::setsockopt(socket_.get(), IPPROTO_UDP, kUdpSegment, &bytes, sizeof bytes) == 0;
  }

 private:
  SocketAddress to_;
  FileDescriptor socket_;
};

auto at_least(std::size_t count) {
  return [count](const std::vector<TakenPacket>& taken) { return taken.size() >= count; };
}

class UdpSourceOn : public ::testing::TestWithParam<const char*> {};

TEST_P(UdpSourceOn, GivesDatagramsAsTheyWereSent) {
  Ring ring = cpu_ring();
  std::unique_ptr<UdpSource> source;
  try {
    source = open_udp(ring, {.address = GetParam(), .merge = false});
  } catch (const SystemError& error) {
    GTEST_SKIP() << error.what();  // IPv6 is not available
  }
  EXPECT_EQ(source->layer(), Layer::payload);
  const Sender sender(GetParam(), source->port());
  std::vector<TakenPacket> taken;
  for (std::size_t i = 0; i < 40; ++i) sender.send(stream(i * 1000, 1000 + i));
  take_until(*source, ring, taken, at_least(40));
  ASSERT_EQ(taken.size(), 40U);
  for (std::size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(taken[i].bytes, stream(i * 1000, 1000 + i));
    EXPECT_TRUE(taken[i].packet.checksum_verified);
    EXPECT_FALSE(taken[i].packet.truncated);
    EXPECT_EQ(taken[i].packet.segment_bytes, 0U);
  }
  EXPECT_EQ(source->counters().packets, 40U);
}

INSTANTIATE_TEST_SUITE_P(Families, UdpSourceOn, ::testing::Values("127.0.0.1", "::1"),
                         [](const auto& tested) { return tested.param[0] == ':' ? "ipv6" : "ipv4"; });

TEST(UdpSource, MergedDatagramsSayWhereToCut) {
  Ring ring = cpu_ring(65536, 16);
  const auto source = open_udp(ring, {.address = "127.0.0.1"});
  const Sender sender("127.0.0.1", source->port());
  if (!sender.cut_every(1000)) GTEST_SKIP() << "this kernel does not send merged datagrams";
  const Bytes sent = stream(0, 20'500);
  sender.send(sent);
  std::vector<TakenPacket> taken;
  Bytes got;
  take_until(*source, ring, taken, [&](const auto& all) {
    got.clear();
    for (const TakenPacket& one : all) got.insert(got.end(), one.bytes.begin(), one.bytes.end());
    return got.size() >= sent.size();
  });
  EXPECT_EQ(got, sent);
  ASSERT_EQ(taken.size(), 1U) << "the loopback passes merged datagrams on";
  EXPECT_EQ(taken[0].packet.segment_bytes, 1000U);
}

TEST(UdpSource, CountsWhatDoesNotFit) {
  Ring ring = cpu_ring(256, 16);
  const auto source = open_udp(ring, {.address = "127.0.0.1", .merge = false});
  const Sender sender("127.0.0.1", source->port());
  sender.send(stream(0, 256));
  sender.send(stream(0, 257));
  sender.send({});
  std::vector<TakenPacket> taken;
  take_until(*source, ring, taken, at_least(3));
  EXPECT_FALSE(taken[0].packet.truncated);
  EXPECT_TRUE(taken[1].packet.truncated);
  EXPECT_EQ(taken[1].bytes, stream(0, 256));
  EXPECT_TRUE(taken[2].bytes.empty());
  EXPECT_EQ(source->counters().truncated, 1U);
}

TEST(UdpSource, CountsTheKernelsDrops) {
  Ring ring = cpu_ring();
  const auto source = open_udp(ring, {.address = "127.0.0.1", .kernel_buffer_bytes = 4096, .merge = false});
  const Sender sender("127.0.0.1", source->port());
  for (int i = 0; i < 200; ++i) sender.send(stream(0, 1000));
  std::vector<TakenPacket> taken;
  take_until(*source, ring, taken, at_least(1), 1);
  while (*testing::take(*source, ring, taken) != 0) continue;
  sender.send(stream(0, 1));  // carries the count
  take_until(*source, ring, taken, [](const auto& all) { return all.back().bytes.size() == 1; });
  EXPECT_EQ(source->counters().packets + source->counters().dropped, 201U);
  EXPECT_GT(source->counters().dropped, 0U);
}

TEST(UdpSource, ReceivesAGroup) {
  Ring ring = cpu_ring();
  const auto source =
      open_udp(ring, {.address = "239.255.77.1", .multicast_group = "239.255.77.1", .interface = "lo", .merge = false});
  const SocketAddress group = parse_address("239.255.77.1", source->port());
  const FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM, 0));
  in_addr loopback{.s_addr = htonl(INADDR_LOOPBACK)};
  ASSERT_EQ(::setsockopt(socket.get(), IPPROTO_IP, IP_MULTICAST_IF, &loopback, sizeof loopback), 0);
  const Bytes sent = stream(0, 100);
  if (::sendto(socket.get(), sent.data(), sent.size(), 0, group.get(), group.bytes) < 0) {
    GTEST_SKIP() << "no multicast on this loopback: " << std::strerror(errno);
  }
  std::vector<TakenPacket> taken;
  take_until(*source, ring, taken, at_least(1));
  EXPECT_EQ(taken[0].bytes, sent);
}

TEST(UdpSource, WaitsNoLongerThanAskedAndStopsWithoutSlots) {
  Ring ring = cpu_ring(256, 2);
  const auto source = open_udp(ring, {.address = "127.0.0.1", .merge = false});
  std::vector<Packet> packets(4);
  EXPECT_EQ(*source->receive(packets, Duration{}), 0U);
  const Sender sender("127.0.0.1", source->port());
  for (int i = 0; i < 3; ++i) sender.send(stream(0, 10));
  std::size_t got = 0;
  while (got < 2) got += *source->receive(packets, testing::kGuard);
  EXPECT_EQ(*source->receive(packets, Duration{}), 0U);  // no slot is free
  ring.release(ring.published());
  EXPECT_EQ(*source->receive(packets, testing::kGuard), 1U);
}

TEST(UdpSource, SaysWhatIsWrong) {
  using ::testing::HasSubstr;
  using ::testing::Property;
  using ::testing::Throws;
  Ring ring = cpu_ring();
  const auto opening = [&](UdpOptions options) {
    options.merge = false;
    return [&ring, options] { (void)open_udp(ring, options); };
  };
  const auto says = [](const char* words) { return Property(&std::exception::what, HasSubstr(words)); };
  EXPECT_THAT(opening({.address = "localhost"}),
              Throws<UsageError>(says("'localhost' is not an IPv4 or IPv6 address")));
  EXPECT_THAT(opening({.address = "192.0.2.1"}), Throws<SystemError>(says("Cannot assign requested address")));
  EXPECT_THAT(opening({.multicast_group = "10.0.0.1"}), Throws<UsageError>(says("10.0.0.1 is not a multicast group")));
  EXPECT_THAT(opening({.multicast_group = "ff02::1"}), Throws<UsageError>(says("IP version")));
  EXPECT_THAT(opening({.multicast_group = "239.1.1.1", .interface = "nowhere0"}),
              Throws<UsageError>(says("there is no network interface 'nowhere0'; this machine has:")));
  EXPECT_THAT(opening({.interface = "lo"}), Throws<UsageError>(says("only be given with a multicast group")));
  EXPECT_THAT(opening({.kernel_buffer_bytes = 0}), Throws<UsageError>(says("buffer")));
  const auto first = open_udp(ring, {.address = "127.0.0.1", .merge = false});
  EXPECT_THAT(opening({.address = "127.0.0.1", .port = first->port()}), Throws<SystemError>(says("in use")));
  EXPECT_THAT([&] { (void)open_udp(ring, {.address = "127.0.0.1"}); }, Throws<UsageError>(says("65535")));
}

}  // namespace
}  // namespace headrace::ingest
