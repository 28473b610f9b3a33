#include "ingest/address.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <net/if.h>

#include <cstring>

#include "headrace/base/error.hpp"

namespace headrace::ingest {

std::uint16_t SocketAddress::port() const noexcept {
  // The port lies at the same place in both families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
}

SocketAddress parse_address(const std::string& address, std::uint16_t port) {
  SocketAddress parsed;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&parsed.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&parsed.storage);
  if (::inet_pton(AF_INET, address.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    parsed.bytes = sizeof *v4;
  } else if (::inet_pton(AF_INET6, address.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    parsed.bytes = sizeof *v6;
  } else {
    throw UsageError(fmt::format("'{}' is no IPv4 or IPv6 address", address));
  }
  return parsed;
}

unsigned interface_index(const std::string& name) {
  const unsigned index = ::if_nametoindex(name.c_str());
  if (index != 0) return index;
  std::string others;
  if (struct if_nameindex* const all = ::if_nameindex()) {
    for (const struct if_nameindex* one = all; one->if_index != 0; ++one) {
      others += others.empty() ? one->if_name : std::string(", ") + one->if_name;
    }
    ::if_freenameindex(all);
  }
  throw UsageError(fmt::format("there is no network interface '{}'; there are: {}", name, others), Errc::not_found);
}

}  // namespace headrace::ingest
