#pragma once

#include <vector>

#include "ingest/net/subnet.hpp"

/// Routes and addresses of this network namespace, by netlink.
namespace headrace::ingest {

/// The destinations of all IPv4 and IPv6 routes in any table, except default routes. Throws SystemError.
[[nodiscard]] std::vector<Subnet> routed_subnets();

/// Gives a network device an address that is usable at once: IPv6 duplicate address detection is off. Returns the error
/// number if the kernel refuses, else 0. Throws SystemError if the kernel cannot be asked.
[[nodiscard]] int add_address(unsigned device, const IpAddress& address, int prefix);

}  // namespace headrace::ingest
