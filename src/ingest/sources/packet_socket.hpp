#pragma once

#include "base/file_descriptor.hpp"
#include "headrace/ingest/packet_socket_source.hpp"
#include "ingest/sources/mapping.hpp"

namespace headrace::ingest {

/// A packet socket with its receive ring, bound to an interface.
struct PacketSocket {
  FileDescriptor file;
  Mapping ring;
};

/// Throws what open_packet_socket() throws.
[[nodiscard]] PacketSocket make_packet_socket(const PacketSocketOptions& options);

}  // namespace headrace::ingest
