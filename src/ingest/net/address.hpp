#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

namespace headrace::ingest {

/// An IPv4 or IPv6 address and a port in the form of sockets.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;

  [[nodiscard]] int family() const noexcept { return storage.ss_family; }
  [[nodiscard]] const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
  [[nodiscard]] sockaddr* get() noexcept { return reinterpret_cast<sockaddr*>(&storage); }
  [[nodiscard]] std::uint16_t port() const noexcept;
};

/// Throws UsageError unless `address` is a numeric address; names are not looked up.
[[nodiscard]] SocketAddress parse_address(const std::string& address, std::uint16_t port);

/// The index of a network interface. Throws UsageError that lists the interfaces if there is none of that name.
[[nodiscard]] unsigned interface_index(const std::string& name);
/// The same for an interface that is to receive. Throws SystemError if it is down.
[[nodiscard]] unsigned receiving_interface(const std::string& name);
/// Why an interface has stopped receiving: it was deleted or brought down. Empty if neither.
[[nodiscard]] std::string interface_loss(const std::string& name, unsigned index);

}  // namespace headrace::ingest
