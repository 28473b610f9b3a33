#include "ingest/net/subnet.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "headrace/base/error.hpp"

namespace headrace::ingest {

namespace {

constexpr int kPrefixLeast = 8;  ///< The shortest prefix to try for an address without one.

[[nodiscard]] bool bit(const IpAddress& address, int index) noexcept {
  return (address.bytes[static_cast<std::size_t>(index) / 8] >> (7 - index % 8) & 1) != 0;
}

/// The first `count` bits of `address`, followed by zeros.
[[nodiscard]] IpAddress first_bits(const IpAddress& address, int count) noexcept {
  IpAddress made{.version = address.version};
  for (int i = 0; i < count; ++i) {
    if (bit(address, i)) made.bytes[static_cast<std::size_t>(i) / 8] |= static_cast<std::uint8_t>(0x80U >> (i % 8));
  }
  return made;
}

/// The subnet's host number `number`, 1 or 2.
[[nodiscard]] IpAddress host_of(const Subnet& subnet, std::uint8_t number) noexcept {
  IpAddress made = first_bits(subnet.address, subnet.prefix);
  made.bytes[static_cast<std::size_t>(made.bits()) / 8 - 1] |= number;
  return made;
}

[[nodiscard]] std::optional<IpAddress> parse_ip(const std::string& text) {
  IpAddress parsed;
  if (::inet_pton(AF_INET, text.c_str(), parsed.bytes.data()) == 1) return parsed;
  parsed.version = 6;
  if (::inet_pton(AF_INET6, text.c_str(), parsed.bytes.data()) == 1) return parsed;
  return {};
}

/// The kind of an address that cannot be a host's here; empty if it can.
[[nodiscard]] std::string_view kind_of(const IpAddress& address) noexcept {
  const auto starts = [&](const char* text, int prefix) {
    return Subnet{.address = address, .prefix = prefix}.overlaps({.address = *parse_ip(text), .prefix = prefix});
  };
  if (starts("224.0.0.0", 3) || starts("ff00::", 8)) return "a multicast or reserved address";
  if (starts("127.0.0.0", 8) || starts("::1", 128)) return "a loopback address";
  if (starts("::ffff:0:0", 96)) return "an IPv4-mapped IPv6 address; give the IPv4 address instead";
  if (starts("fe80::", 10)) return "a link-local address, which needs an interface";
  return {};
}

}  // namespace

std::string to_string(const IpAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(address.version == 4 ? AF_INET : AF_INET6, address.bytes.data(), text.data(), text.size());
  return text.data();
}

std::string to_string(const IpAddress& address, std::uint16_t port) {
  const std::string text = to_string(address);
  return address.version == 4 ? fmt::format("{}:{}", text, port) : fmt::format("[{}]:{}", text, port);
}

bool Subnet::overlaps(const Subnet& other) const noexcept {
  if (address.version != other.address.version) return false;
  const int both = std::min(prefix, other.prefix);
  return first_bits(address, both) == first_bits(other.address, both);
}

bool Subnet::is_host() const noexcept {
  bool any = false;
  bool all = true;
  for (int i = prefix; i < address.bits(); ++i) {
    any = any || bit(address, i);
    all = all && bit(address, i);
  }
  return prefix <= address.bits() - 2 && any && (!all || address.version != 4);
}

std::string format_subnet(const Subnet& subnet) {
  return fmt::format("{}/{}", to_string(first_bits(subnet.address, subnet.prefix)), subnet.prefix);
}

Subnet parse_host(const std::string& text) {
  const std::size_t slash = text.find('/');
  const std::optional<IpAddress> address = parse_ip(text.substr(0, slash));
  if (!address) {
    throw UsageError(
        fmt::format("'{}' is not an IPv4 or IPv6 address, such as 10.0.0.2, 10.0.0.2/24 or fd00::2/64", text));
  }
  if (const std::string_view kind = kind_of(*address); !kind.empty()) {
    throw UsageError(fmt::format("{} is {}", to_string(*address), kind));
  }
  const int longest = address->bits() - 2;
  Subnet host{.address = *address, .prefix = longest};
  if (slash == std::string::npos) {
    while (host.prefix > kPrefixLeast && !host.is_host()) --host.prefix;
  } else {
    const char* const end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data() + slash + 1, end, host.prefix);
    if (problem != std::errc{} || stop != end || host.prefix < 1 || host.prefix > longest) {
      throw UsageError(fmt::format("'{}': the prefix length of a subnet must be from 1 to {}", text, longest));
    }
  }
  if (!host.is_host()) {
    throw UsageError(fmt::format("{} is not a host address in {}", to_string(*address), format_subnet(host)));
  }
  return host;
}

HostPair pair_of(const Subnet& own) noexcept {
  const IpAddress first = host_of(own, 1);
  return {.own = own, .peer = own.address == first ? host_of(own, 2) : first};
}

HostPair choose_pair(int version, const std::vector<Subnet>& taken) {
  constexpr std::uint32_t kBenchmarks = 0xC6120000;  // 198.18.0.0/15: 32,768 subnets of 4 addresses
  constexpr std::uint32_t kPairs = 1U << 15;
  for (std::uint32_t i = 0; i < (version == 4 ? kPairs : 1U << 16); ++i) {
    Subnet own{.address = IpAddress::v4(kBenchmarks + 4 * i + 2), .prefix = 30};
    if (version == 6) {  // 2001:2:0:i::2
      own = {.address = {.bytes = {0x20, 0x01, 0, 2}, .version = 6}, .prefix = 64};
      own.address.bytes[6] = static_cast<std::uint8_t>(i >> 8);
      own.address.bytes[7] = static_cast<std::uint8_t>(i);
      own.address.bytes[15] = 2;
    }
    const auto clash = [&](const Subnet& other) { return own.overlaps(other); };
    if (std::none_of(taken.begin(), taken.end(), clash)) return pair_of(own);
  }
  throw UsageError(fmt::format("{} is already routed elsewhere; give the address to receive on",
                               version == 4 ? "198.18.0.0/15" : "2001:2::/48"));
}

}  // namespace headrace::ingest
