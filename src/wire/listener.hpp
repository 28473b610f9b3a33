#pragma once

#include <cstdint>
#include <string>

#include "base/file_descriptor.hpp"

namespace headrace::wire {

/// A TCP socket that listens and does not block. Those of one server share an address and a port, and the system shares
/// new connections out among them.
/// @param address  IPv4 or IPv6
/// @param port     0: any that is free
/// @param shared   another socket of this server listens there already; otherwise nobody may
/// Throws UsageError for what is no address, SystemError where it cannot be had.
[[nodiscard]] FileDescriptor listen_on(const std::string& address, std::uint16_t port, bool shared);

/// Whether only programs of this machine reach an address. Throws UsageError for what is no address.
[[nodiscard]] bool is_loopback(const std::string& address);

/// The port of a socket that listens.
[[nodiscard]] std::uint16_t port_of(const FileDescriptor& listener);

}  // namespace headrace::wire
