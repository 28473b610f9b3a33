#pragma once

#include <string>
#include <vector>

#include "headrace/ingest/detail/ip_address.hpp"

namespace headrace::ingest {

/// An address with the prefix of its subnet.
struct Subnet {
  IpAddress address;
  int prefix = 0;  ///< 0 to 32, or to 128.

  [[nodiscard]] bool overlaps(const Subnet& other) const noexcept;
  /// Neither the subnet's own address (of IPv6: its routers' anycast address, RFC 4291 2.6.1) nor, of IPv4, its
  /// broadcast address.
  [[nodiscard]] bool is_host() const noexcept;
};

/// "10.0.0.0/30", "fd00::/126": the subnet, without the host's part.
[[nodiscard]] std::string format_subnet(const Subnet& subnet);

/// "10.0.0.2/24", "fd00::2/64", or without a prefix, which is taken to be in the smallest subnet in which it is a
/// host's. Throws UsageError, also for addresses that belong to no single host: multicast, loopback, IPv4 inside of
/// IPv6.
[[nodiscard]] Subnet parse_host(const std::string& text);

/// Two hosts of one subnet.
struct HostPair {
  Subnet own;      ///< Headrace's.
  IpAddress peer;  ///< The kernel's.
};

/// The other end for a host: the first other one of its subnet.
[[nodiscard]] HostPair pair_of(const Subnet& own) noexcept;

/// The first pair of 198.18.0.0/15 (RFC 2544) whose /30 overlaps none of `taken`, or of 2001:2::/48 (RFC 5180) whose
/// /64 does not: both are for measuring network devices. Throws UsageError when there is none.
/// @param version  4 or 6.
[[nodiscard]] HostPair choose_pair(int version, const std::vector<Subnet>& taken);

}  // namespace headrace::ingest
