#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headrace::ingest {

/// An IPv4 address, in the machine's byte order, with the prefix of its subnet.
struct Subnet {
  std::uint32_t address = 0;
  int prefix = 0;  ///< 0 to 32.

  [[nodiscard]] std::uint32_t mask() const noexcept { return prefix == 0 ? 0 : ~std::uint32_t{0} << (32 - prefix); }
  [[nodiscard]] bool overlaps(const Subnet& other) const noexcept {
    const std::uint32_t both = prefix < other.prefix ? mask() : other.mask();
    return (address & both) == (other.address & both);
  }
  /// Neither the subnet's own address nor its broadcast address.
  [[nodiscard]] bool is_host() const noexcept {
    return prefix <= 30 && (address & ~mask()) != 0 && (address & ~mask()) != ~mask();
  }
};

/// "10.0.0.2".
[[nodiscard]] std::string format_ipv4(std::uint32_t address);
/// "10.0.0.0/30": the subnet, without the host's part.
[[nodiscard]] std::string format_subnet(const Subnet& subnet);

/// "10.0.0.2/24" or "10.0.0.2", which is taken to be in the smallest subnet in which it is a host's. Throws UsageError.
[[nodiscard]] Subnet parse_host(const std::string& text);

/// Two hosts of one subnet.
struct HostPair {
  Subnet own;              ///< Headrace's.
  std::uint32_t peer = 0;  ///< The kernel's.
};

/// The other end for a host: the first other one of its subnet.
[[nodiscard]] HostPair pair_of(const Subnet& own) noexcept;

/// The first pair of 198.18.0.0/15 (RFC 2544: for measuring network devices) whose /30 overlaps none of `taken`.
/// Throws UsageError when there is none.
[[nodiscard]] HostPair choose_pair(const std::vector<Subnet>& taken);

/// Every IPv4 destination but the default that this network namespace has a route to, in any table. Throws SystemError.
[[nodiscard]] std::vector<Subnet> routed_subnets();

}  // namespace headrace::ingest
