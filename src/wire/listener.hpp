#pragma once

#include <cstdint>
#include <string>

#include "base/file_descriptor.hpp"

namespace headrace::wire {

/// A non-blocking listening TCP socket. The sockets of one server share an address and port, and the system distributes
/// new connections among them.
/// @param address  IPv4 or IPv6
/// @param port     0: any free port
/// @param shared   true if another socket of this server already listens there; otherwise no other socket may
/// Throws UsageError for an invalid address, SystemError if the system refuses.
[[nodiscard]] FileDescriptor listen_on(const std::string& address, std::uint16_t port, bool shared);

/// Whether only programs on this machine can reach an address. Throws UsageError for an invalid address.
[[nodiscard]] bool is_loopback(const std::string& address);

/// The port of a listening socket.
[[nodiscard]] std::uint16_t port_of(const FileDescriptor& listener);

}  // namespace headrace::wire
