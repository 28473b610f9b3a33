#include "ingest/net/address.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <net/if.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/file_descriptor.hpp"
#include "headrace/base/error.hpp"

namespace headrace::ingest {

namespace {

bool is_up(const std::string& name) {
  const FileDescriptor control(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::memcpy(request.ifr_name, name.data(), std::min(name.size(), sizeof request.ifr_name - 1));
  if (!control.valid() || ::ioctl(control.get(), SIOCGIFFLAGS, &request) != 0)
    throw_errno("reading the flags of " + name);
  return (request.ifr_flags & IFF_UP) != 0;
}

}  // namespace

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
    throw UsageError(fmt::format("'{}' is not an IPv4 or IPv6 address", address));
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
  throw UsageError(fmt::format("there is no network interface '{}'; this machine has: {}", name, others),
                   Errc::not_found);
}

unsigned receiving_interface(const std::string& name) {
  const unsigned index = interface_index(name);
  if (!is_up(name)) {
    throw SystemError(
        Errc::system,
        fmt::format("the network interface {} is down; bring it up first (ip link set {} up)", name, name), ENETDOWN);
  }
  return index;
}

std::string interface_loss(const std::string& name, unsigned index) {
  std::array<char, IFNAMSIZ> now{};
  if (::if_indextoname(index, now.data()) == nullptr) {
    return fmt::format("the network interface {} has been deleted", name);
  }
  return is_up(now.data()) ? std::string() : fmt::format("the network interface {} has been brought down", name);
}

}  // namespace headrace::ingest
