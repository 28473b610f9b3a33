#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

namespace headrace::ingest {

/// An IPv4 or IPv6 address and a port, as sockets take them.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;

  [[nodiscard]] int family() const noexcept { return storage.ss_family; }
  [[nodiscard]] const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
  [[nodiscard]] sockaddr* get() noexcept { return reinterpret_cast<sockaddr*>(&storage); }
  [[nodiscard]] std::uint16_t port() const noexcept;
};

/// Throws UsageError when `address` is no number of an address; names are not looked up.
[[nodiscard]] SocketAddress parse_address(const std::string& address, std::uint16_t port);

/// The index of a network interface. Throws UsageError that names those there are.
[[nodiscard]] unsigned interface_index(const std::string& name);
/// The same of one that is to receive. Throws SystemError where it is down.
[[nodiscard]] unsigned receiving_interface(const std::string& name);
/// What has become of an interface that has stopped receiving: deleted, or put down; empty where neither is.
[[nodiscard]] std::string interface_loss(const std::string& name, unsigned index);

}  // namespace headrace::ingest
