#pragma once

#include <string>
#include <vector>

#include "headrace/ingest/detail/ip_address.hpp"

namespace headrace::ingest {

/// An address with the prefix of its subnet.
struct Subnet {
  IpAddress address;
  int prefix = 0;  ///< 0 to 32 (IPv6: 128).

  [[nodiscard]] bool overlaps(const Subnet& other) const noexcept;
  /// True unless it is the subnet's own address (for IPv6 its routers' anycast address, RFC 4291 2.6.1) or, for IPv4,
  /// its broadcast address.
  [[nodiscard]] bool is_host() const noexcept;
};

/// "10.0.0.0/30", "fd00::/126": the subnet without the host part.
[[nodiscard]] std::string format_subnet(const Subnet& subnet);

/// Reads "10.0.0.2/24" or "fd00::2/64". Without a prefix, takes the smallest subnet in which the address can be a
/// host's. Throws UsageError for anything else, and for multicast, loopback, link-local and IPv4-mapped addresses.
[[nodiscard]] Subnet parse_host(const std::string& text);

/// Two hosts of one subnet.
struct HostPair {
  Subnet own;      ///< Headrace's.
  IpAddress peer;  ///< The kernel's.
};

/// A host and its peer: the first other host of its subnet.
[[nodiscard]] HostPair pair_of(const Subnet& own) noexcept;

/// The first pair of 198.18.0.0/15 (RFC 2544) whose /30 overlaps none of `taken`, or of 2001:2::/48 (RFC 5180) whose
/// /64 does not. Both ranges are reserved for benchmarks of network devices. Throws UsageError if there is none.
/// @param version  4 or 6.
[[nodiscard]] HostPair choose_pair(int version, const std::vector<Subnet>& taken);

}  // namespace headrace::ingest
