#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/base/error.hpp"
#include "ingest/net/subnet.hpp"

namespace headrace::ingest {
namespace {

constexpr IpAddress kZero{};

TEST(Subnet, AHostWithoutAPrefixIsInTheSmallestSubnet) {
  const auto shown = [](const char* text) {
    const HostPair pair = pair_of(parse_host(text));
    return format_subnet(pair.own) + " " + to_string(pair.own.address) + " " + to_string(pair.peer);
  };
  EXPECT_EQ(shown("10.0.0.2"), "10.0.0.0/30 10.0.0.2 10.0.0.1");
  EXPECT_EQ(shown("10.0.0.1"), "10.0.0.0/30 10.0.0.1 10.0.0.2");
  EXPECT_EQ(shown("10.0.0.3"), "10.0.0.0/29 10.0.0.3 10.0.0.1");
  EXPECT_EQ(shown("10.0.0.4"), "10.0.0.0/29 10.0.0.4 10.0.0.1");
  EXPECT_EQ(shown("10.0.0.8"), "10.0.0.0/28 10.0.0.8 10.0.0.1");
  EXPECT_EQ(shown("10.1.2.77/24"), "10.1.2.0/24 10.1.2.77 10.1.2.1");
  EXPECT_EQ(shown("fd00:9::2"), "fd00:9::/126 fd00:9::2 fd00:9::1");
  EXPECT_EQ(shown("fd00:9::1"), "fd00:9::/126 fd00:9::1 fd00:9::2");
  EXPECT_EQ(shown("fd00:9::3"), "fd00:9::/126 fd00:9::3 fd00:9::1") << "IPv6 has no broadcast address";
  EXPECT_EQ(shown("fd00:9::4"), "fd00:9::/125 fd00:9::4 fd00:9::1")
      << "the first address of a subnet belongs to its routers";
  EXPECT_EQ(shown("2001:db8:0:1::ffff:7/64"), "2001:db8:0:1::/64 2001:db8:0:1::ffff:7 2001:db8:0:1::1");
  for (const char* wrong : {"",
                            "10.0.0",
                            "10.0.0.2/",
                            "10.0.0.2/0",
                            "10.0.0.2/31",
                            "10.0.0.2/2 4",
                            "10.0.0.0/24",
                            "10.0.0.255/24",
                            "10.0.0.2/-3",
                            "224.0.0.5",
                            "255.255.255.255",
                            "127.0.0.2",
                            "::1",
                            "::",
                            "fd00:9::2/127",
                            "fd00:9::2/0",
                            "fd00:9::2/200",
                            "fd00:9::/64",
                            "ff02::1",
                            "fe80::2",
                            "::ffff:10.0.0.2",
                            "fd00:9::2%lo",
                            "[fd00:9::2]"}) {
    EXPECT_THROW((void)parse_host(wrong), UsageError) << wrong;
  }
}

TEST(Subnet, AddressesAreShownWithTheirPort) {
  EXPECT_EQ(to_string(IpAddress::v4(0x0A000001), 9000), "10.0.0.1:9000");
  EXPECT_EQ(to_string(parse_host("FD00:9:0::2").address, 80), "[fd00:9::2]:80");
}

TEST(Subnet, Overlaps) {
  const Subnet wide{.address = IpAddress::v4(0x0A000000), .prefix = 8};
  const Subnet narrow{.address = IpAddress::v4(0x0A010203), .prefix = 30};
  const Subnet other{.address = IpAddress::v4(0x0B000001), .prefix = 30};
  EXPECT_TRUE(wide.overlaps(narrow));
  EXPECT_TRUE(narrow.overlaps(wide));
  EXPECT_FALSE(narrow.overlaps(other));
  EXPECT_TRUE(other.overlaps({.address = kZero, .prefix = 0}));
  const Subnet six = parse_host("fd00:9::2/64");
  EXPECT_TRUE(six.overlaps(parse_host("fd00:9::ffff:1/120")));
  EXPECT_FALSE(six.overlaps(parse_host("fd00:9:0:1::1/64")));
  EXPECT_TRUE(six.overlaps(parse_host("fd00:8::1/30")));
  EXPECT_FALSE(six.overlaps({.address = kZero, .prefix = 0})) << "of the other version";
}

TEST(Subnet, TheFirstFreeOneIsChosen) {
  const auto chosen = [](int version, const std::vector<Subnet>& taken) {
    return to_string(choose_pair(version, taken).own.address);
  };
  EXPECT_EQ(chosen(4, {}), "198.18.0.2");
  EXPECT_EQ(chosen(4, {{.address = IpAddress::v4(0xC6120000), .prefix = 24}}), "198.18.1.2");
  EXPECT_EQ(chosen(4, {{.address = IpAddress::v4(0xC6120005), .prefix = 32}}), "198.18.0.2");
  EXPECT_THROW((void)choose_pair(4, {{.address = IpAddress::v4(0xC0000000), .prefix = 4}}), UsageError);
  EXPECT_EQ(chosen(6, {}), "2001:2::2");
  EXPECT_EQ(chosen(6, {{.address = IpAddress::v4(0), .prefix = 1}, parse_host("2001:2::77/64")}), "2001:2:0:1::2");
  EXPECT_EQ(to_string(choose_pair(6, {}).peer), "2001:2::1");
  EXPECT_THROW((void)choose_pair(6, {parse_host("2001:2::1/20")}), UsageError);
}

}  // namespace
}  // namespace headrace::ingest
