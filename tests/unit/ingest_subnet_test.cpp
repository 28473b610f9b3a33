#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/base/error.hpp"
#include "ingest/net/subnet.hpp"

namespace headrace::ingest {
namespace {

TEST(Subnet, AHostWithoutAPrefixIsInTheSmallestSubnet) {
  const auto shown = [](const char* text) {
    const HostPair pair = pair_of(parse_host(text));
    return format_subnet(pair.own) + " " + format_ipv4(pair.own.address) + " " + format_ipv4(pair.peer);
  };
  EXPECT_EQ(shown("10.0.0.2"), "10.0.0.0/30 10.0.0.2 10.0.0.1");
  EXPECT_EQ(shown("10.0.0.1"), "10.0.0.0/30 10.0.0.1 10.0.0.2");
  EXPECT_EQ(shown("10.0.0.3"), "10.0.0.0/29 10.0.0.3 10.0.0.1");
  EXPECT_EQ(shown("10.0.0.4"), "10.0.0.0/29 10.0.0.4 10.0.0.1");
  EXPECT_EQ(shown("10.0.0.8"), "10.0.0.0/28 10.0.0.8 10.0.0.1");
  EXPECT_EQ(shown("10.1.2.77/24"), "10.1.2.0/24 10.1.2.77 10.1.2.1");
  for (const char* wrong : {"", "10.0.0", "10.0.0.2/", "10.0.0.2/0", "10.0.0.2/31", "10.0.0.2/2 4", "10.0.0.0/24",
                            "10.0.0.255/24", "::1", "10.0.0.2/-3"}) {
    EXPECT_THROW((void)parse_host(wrong), UsageError) << wrong;
  }
}

TEST(Subnet, Overlaps) {
  const Subnet wide{.address = 0x0A000000, .prefix = 8};
  const Subnet narrow{.address = 0x0A010203, .prefix = 30};
  const Subnet other{.address = 0x0B000001, .prefix = 30};
  EXPECT_TRUE(wide.overlaps(narrow));
  EXPECT_TRUE(narrow.overlaps(wide));
  EXPECT_FALSE(narrow.overlaps(other));
  EXPECT_TRUE(other.overlaps({.address = 0, .prefix = 0}));
}

TEST(Subnet, TheFirstFreeOneIsChosen) {
  EXPECT_EQ(format_ipv4(choose_pair({}).own.address), "198.18.0.2");
  EXPECT_EQ(format_ipv4(choose_pair({{.address = 0xC6120000, .prefix = 24}}).own.address), "198.18.1.2");
  EXPECT_EQ(format_ipv4(choose_pair({{.address = 0xC6120005, .prefix = 32}}).own.address), "198.18.0.2");
  EXPECT_THROW((void)choose_pair({{.address = 0xC0000000, .prefix = 4}}), UsageError);
}

}  // namespace
}  // namespace headrace::ingest
