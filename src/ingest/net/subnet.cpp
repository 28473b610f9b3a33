#include "ingest/net/subnet.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "headrace/base/error.hpp"

namespace headrace::ingest {

std::string format_ipv4(std::uint32_t address) {
  return fmt::format("{}.{}.{}.{}", address >> 24, address >> 16 & 0xFF, address >> 8 & 0xFF, address & 0xFF);
}

std::string format_subnet(const Subnet& subnet) {
  return fmt::format("{}/{}", format_ipv4(subnet.address & subnet.mask()), subnet.prefix);
}

Subnet parse_host(const std::string& text) {
  const std::size_t slash = text.find('/');
  in_addr address{};
  if (::inet_pton(AF_INET, text.substr(0, slash).c_str(), &address) != 1) {
    throw UsageError(fmt::format("'{}' is no IPv4 address, such as 10.0.0.2 or 10.0.0.2/24", text));
  }
  Subnet host{.address = ntohl(address.s_addr), .prefix = 30};
  if (slash == std::string::npos) {
    while (host.prefix > 8 && !host.is_host()) --host.prefix;
  } else {
    const char* const end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data() + slash + 1, end, host.prefix);
    if (problem != std::errc{} || stop != end || host.prefix < 1 || host.prefix > 30) {
      throw UsageError(fmt::format("'{}': a subnet's prefix is from 1 to 30", text));
    }
  }
  if (!host.is_host()) throw UsageError(fmt::format("{} is no host's address in {}", text, format_subnet(host)));
  return host;
}

HostPair pair_of(const Subnet& own) noexcept {
  const std::uint32_t first = (own.address & own.mask()) + 1;
  return {.own = own, .peer = own.address == first ? first + 1 : first};
}

HostPair choose_pair(const std::vector<Subnet>& taken) {
  constexpr Subnet kBenchmarks{.address = 0xC6120000, .prefix = 15};
  for (std::uint32_t at = 0; at < ~kBenchmarks.mask(); at += 4) {
    const Subnet own{.address = kBenchmarks.address + at + 2, .prefix = 30};
    const auto clash = [&](const Subnet& other) { return own.overlaps(other); };
    if (std::none_of(taken.begin(), taken.end(), clash)) return pair_of(own);
  }
  throw UsageError("all of 198.18.0.0/15 is routed elsewhere: give the address that is to be received on");
}

}  // namespace headrace::ingest
