#pragma once

#include <vector>

#include "ingest/net/subnet.hpp"

/// Routes and addresses of this network namespace, by netlink.
namespace headrace::ingest {

/// Every IPv4 and IPv6 destination but the defaults that there is a route to, in any table. Throws SystemError.
[[nodiscard]] std::vector<Subnet> routed_subnets();

/// Gives a network device an address, at once: of IPv6 it is not looked whether another host has it. The error number
/// where the kernel refuses it, else 0. Throws SystemError where the kernel cannot be asked.
[[nodiscard]] int add_address(unsigned device, const IpAddress& address, int prefix);

}  // namespace headrace::ingest
