#pragma once

#include <cstdint>
#include <optional>

#include "base/file_descriptor.hpp"
#include "headrace/ingest/xdp_source.hpp"

namespace headrace::ingest {

/// Which packets go to the sockets.
struct XdpFilter {
  std::optional<std::uint32_t> address;  ///< IPv4, in the machine's byte order.
  std::uint16_t udp_port = 0;            ///< 0: any port and protocol.
};

/// The program at an interface's hook, and the map in which it finds the socket of a queue. The destructor detaches it.
class XdpProgram {
 public:
  /// Loads the program; attach() activates it. Throws SystemError.
  XdpProgram(const XdpFilter& filter, std::uint32_t queue_end);

  void set_socket(std::uint32_t queue, int socket) const;
  void attach(unsigned interface, const XdpOptions& options);

 private:
  FileDescriptor sockets_;
  FileDescriptor program_;
  FileDescriptor link_;
};

}  // namespace headrace::ingest
